// SPDX-License-Identifier: Apache-2.0
// Devices as the core sees them: a plugin's pg_device, its streams, events, staged copies and memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory/memory.hpp"
#include "registry/plugin.hpp"

namespace perigee {

class Device;

// An event that has been recorded on a stream. Goes back to its device's pool when dropped.
class Event {
 public:
  Event() = default;
  Event(Device* device, uint64_t handle) : device_(device), handle_(handle) {}
  Event(Event&& other) noexcept : device_(other.device_), handle_(other.handle_) { other.device_ = nullptr; }
  Event& operator=(Event&& other) noexcept;
  ~Event();
  bool passed() const;  // also true when it never will be, because its stream failed
  void wait() const;
  uint64_t release() { return device_ == nullptr ? 0 : (device_ = nullptr, handle_); }  // who takes it gives it back
  explicit operator bool() const { return device_ != nullptr; }
  uint64_t handle() const { return handle_; }

 private:
  friend class Device;
  Device* device_ = nullptr;
  uint64_t handle_ = 0;
};

// One device. Lives until shutdown. Methods throw pg::Error.
class Device : private MemorySource {
 public:
  // `number`: in its name. More than one may stand for one device of the plugin, each with a share of its memory.
  Device(LoadedPlugin* plugin, const pg_device* table, uint32_t ordinal, int32_t id, uint32_t number);
  // One that is not here: a name that graphs are placed on (wished_device). It counts as an accelerator and has
  // nothing.
  Device(const std::string& type, uint32_t number, int32_t id);
  ~Device();

  const int32_t id;              // the number used everywhere in the process
  const uint32_t ordinal;        // within its plugin
  const uint32_t number;         // within its type
  const std::string type, name;  // "sim", "sim:1"
  pg_device_properties properties{};
  bool host_visible = false, synchronous = false, accelerator = false, absent = false;
  CachingAllocator allocator;

  LoadedPlugin* plugin() const { return plugin_; }
  const pg_device* table() const { return table_; }
  void* self() const;

  // Streams are numbered from 0; made when first used. The handle is what the plugin knows.
  uint64_t stream(uint32_t index);
  uint32_t stream_number(uint64_t handle) const;  // of one that stream() has answered; else 0
  // A number for work about to be submitted, by which an asynchronous failure is traced back to `what` (the name of an
  // operator; a pointer that lives as long as the process). Cheap; 0 on synchronous devices.
  uint64_t sequence(const char* what, const char* origin = nullptr);
  Event record(uint32_t stream);
  // Makes the stream wait for it, on the device where the event's is of the same plugin, else here.
  void wait(uint32_t stream, const Event& event);
  void synchronize(uint32_t stream);
  void synchronize();  // all streams
  // Waits for all streams without raising; what failed is kept for the next synchronize.
  void drain() noexcept override;
  // Submissions to one stream go one at a time: hold this around a launch. Costs nothing on a synchronous device, whose
  // calls are over when they return and may come from several threads. Recursive.
  std::unique_lock<std::recursive_mutex> lock(uint32_t stream);
  bool lost() const;  // a sticky failure: every later call fails at once
  // An engine queues collectives here and cannot make streams fail (pg_device_collectives.take_failure): it is asked
  // whenever somebody has waited for the device.
  void ask_after_waiting(LoadedPlugin* engine);

  // Dense bytes between the host and a block. upload copies `source` before it returns (staged where the device is
  // asynchronous); download returns when the bytes are there.
  void upload(pg_address target, const void* source, uint64_t bytes, uint32_t stream);
  void download(void* target, pg_address source, uint64_t bytes, uint32_t stream);
  // From pinned memory, without staging: it must stay as it is until the event has passed.
  Event upload_pinned(pg_address target, const void* source, uint64_t bytes, uint32_t stream);
  // On the device; both tensors carry buffers.
  void copy(const pg_tensor& target, const pg_tensor& source, uint32_t stream, const char* what);
  void fill(const pg_tensor& target, const pg_number& value, uint32_t stream, const char* what);
  // Dense bytes from another device: peer where the plugin offers it, else through the host. Ordered behind both
  // streams' earlier work.
  void copy_from(pg_address target, uint32_t stream, Device& other, pg_address source, uint32_t other_stream,
                 uint64_t bytes);

  // Pinned host memory: for results that a kernel publishes (dynamic extents), and for batches on their way here;
  // reused.
  struct Pinned {
    Device* device = nullptr;
    void* data = nullptr;
    uint64_t bytes = 0;
  };
  Pinned pinned(uint64_t bytes);
  // The same for what goes up: takes back what uploads have read, and waits for some where much is in flight.
  Pinned staging(uint64_t bytes);
  void release(Pinned pinned);
  void release(Pinned pinned, Event event);  // when that has passed
  void empty_pinned() noexcept;              // gives back to the plugin what nobody uses

  // Waits for everything and frees streams, events, staging and memory. Called once, before the plugin is closed.
  void close() noexcept;

  // Throws what the plugin reported of `what`; an asynchronous failure is named by the operator that caused it. Marks
  // the device lost when the plugin says so. For launches too.
  [[noreturn]] void fail(int32_t code, const pg_error& error, const char* what);
  void warn(const char* what, const pg_error& error) noexcept;  // where nobody could catch it

 private:
  friend class Event;
  void check_collectives(bool take);  // throws what the engine says; `take`: once
  void check(int32_t code, const pg_error& error, const char* what) {
    if (code != PG_OK) fail(code, error, what);
  }
  // What the allocator asks.
  const std::string& source_name() const override { return name; }
  int32_t source_id() const override { return id; }
  uint64_t memory_total() const override { return properties.memory_total; }
  uint64_t memory_free() override;
  bool map(uint64_t bytes, uint64_t& buffer, pg_error& error) override;
  void unmap(uint64_t buffer) noexcept override;
  uint64_t mark(uint32_t stream) override;
  bool passed(uint64_t mark) override;
  void wait(uint64_t mark) noexcept override;
  void forget(uint64_t mark) noexcept override;
  void read_properties();
  void check_alive() const;
  void upload_staged(pg_address target, const char* source, uint64_t bytes, uint32_t stream);
  void reclaim_staging(uint64_t wanted);
  void download_staged(char* target, pg_address source, uint64_t bytes, uint32_t stream);
  bool copy_peer(pg_address target, uint32_t stream, Device& other, pg_address source, uint32_t other_stream,
                 uint64_t bytes);
  LoadedPlugin* plugin_;
  const pg_device* table_;
  struct State;
  std::unique_ptr<State> state_;
};

// All devices of all plugins that could be loaded, in the order cpu first, then by plugin name and ordinal; made when
// first asked for (loads device plugins), or for one type only.
const std::vector<Device*>& devices();
const std::vector<Device*>& known_devices();  // those of plugins that are loaded; loads none
Device& device(int32_t id);                   // throws PG_E_INVALID_ARGUMENT for numbers that do not exist
Device& find_device(
    const std::string& name);  // "cpu", "sim:1", "/gpu:0", "/device:GPU:1"; the error lists what there is
// The same; where there is none, one that is absent and stands for the name.
Device& wished_device(const std::string& name);
Device* present_device(const Device& wished);            // what answers to its name by now; NULL: nothing does
[[noreturn]] void fail_absent(const std::string& name);  // lists what there is, and why the rest is unavailable
Device* first_accelerator();  // that answers to a common name such as "gpu"; test instruments do if told to; NULL: none
// What a device is called on listings: "/gpu:0" where it answers to a common name, else "/sim:0".
std::string common_name(const Device& device);
Device* find_made_device(const std::string& type, uint32_t ordinal);  // NULL where there is none yet; loads nothing
// Several devices that stand for one, each with a limit of its own: the device itself first, then those made before,
// then new ones, whose numbers follow all others of the type. With fewer limits than there are parts it fails.
std::vector<Device*> split_device(Device& device, const std::vector<uint64_t>& limits);
// From now on only these are shown and found, in this order, besides the processors, which always are; NULL: all. A
// device that has given memory cannot be hidden.
void set_visible_devices(const std::vector<std::string>* names);
Device& default_device();  // cpu:0
// Where eager code makes what nothing else decides about: what the front end has set for the thread, or cpu:0.
Device& creation_device();

}  // namespace perigee
