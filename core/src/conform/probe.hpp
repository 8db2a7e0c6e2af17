// SPDX-License-Identifier: Apache-2.0
// What checks of a device are written with: its table's entries, which raise, and objects that go when the check ends.
#pragma once

#include <cstring>
#include <vector>

#include "conform/conform.hpp"

namespace perigee::conform {

[[noreturn]] inline void wrong(const std::string& what) { throw pg::Error(PG_E_INTERNAL, what); }
inline void need(bool holds, const std::string& what) {
  if (!holds) wrong(what);
}

class Probe {
 public:
  explicit Probe(Device& device) : device(device), t(*device.table()), self(device.self()), n(device.ordinal) {}
  Probe(const Probe&) = delete;
  ~Probe() {
    pg_error error = pg::make_error();
    for (uint64_t stream : streams_) t.stream_sync(self, n, stream, &error);
    for (auto [kind, buffer] : buffers_) t.free(self, n, kind, buffer, &error);
    for (uint64_t event : events_) t.event_destroy(self, n, event, &error);
    for (uint64_t stream : streams_) t.stream_destroy(self, n, stream, &error);
  }

  Device& device;
  const pg_device& t;
  void* const self;
  const uint32_t n;

  // Calls an entry with the plugin's self in front and an error behind; raises what it reports.
  template <class F, class... A>
  void ok(const char* what, F entry, A... arguments) {
    pg_error error = pg::make_error();
    const int32_t code = entry(self, arguments..., &error);
    if (code != PG_OK) wrong(std::string(what) + " fails: " + pg::message_of(code, error));
  }
  // The code of a call that should fail, which must come with a message.
  template <class F, class... A>
  int32_t refused(const char* what, F entry, A... arguments) {
    pg_error error = pg::make_error();
    const int32_t code = entry(self, arguments..., &error);
    need(code != PG_OK, std::string(what) + " is taken");
    need(error.message[0] != '\0', std::string(what) + " is refused without a message");
    return code;
  }

  pg_device_properties properties() {
    pg_device_properties p{};
    p.size = PG_SIZE(pg_device_properties, reserved);
    ok("properties", t.properties, n, &p);
    return p;
  }
  uint64_t alloc(uint64_t bytes, uint32_t kind = PG_MEMORY_DEVICE) {
    uint64_t buffer = 0;
    ok("alloc", t.alloc, n, kind, bytes, &buffer);
    need(buffer != 0, "alloc gives the handle 0");
    buffers_.emplace_back(kind, buffer);
    return buffer;
  }
  void free(uint64_t buffer, uint32_t kind = PG_MEMORY_DEVICE) {
    std::erase(buffers_, std::pair(kind, buffer));
    ok("free", t.free, n, kind, buffer);
  }
  uint64_t stream() {
    uint64_t stream = 0;
    ok("stream_create", t.stream_create, n, &stream);
    need(stream != 0, "stream_create gives the handle 0");
    streams_.push_back(stream);
    return stream;
  }
  uint64_t event() {
    uint64_t event = 0;
    ok("event_create", t.event_create, n, &event);
    need(event != 0, "event_create gives the handle 0");
    events_.push_back(event);
    return event;
  }
  uint64_t number() { return device.sequence("conform"); }
  void upload(uint64_t buffer, const void* from, uint64_t bytes, uint64_t stream, uint64_t offset = 0) {
    ok("upload", t.upload, n, buffer, offset, from, bytes, stream, number());
  }
  void download(void* to, uint64_t buffer, uint64_t bytes, uint64_t stream, uint64_t offset = 0) {
    ok("download", t.download, n, to, buffer, offset, bytes, stream, number());
  }
  void copy(const pg_tensor& to, const pg_tensor& from, uint64_t stream) {
    ok("copy", t.copy, n, &to, &from, stream, number());
  }
  void fill(const pg_tensor& to, pg_number value, uint64_t stream) {
    ok("fill", t.fill, n, &to, static_cast<const pg_number*>(&value), stream, number());
  }
  void sync(uint64_t stream) { ok("stream_sync", t.stream_sync, n, stream); }
  void record(uint64_t event, uint64_t stream) { ok("event_record", t.event_record, n, event, stream); }
  void wait(uint64_t event, uint64_t stream) { ok("event_wait", t.event_wait, n, event, stream); }

 private:
  std::vector<std::pair<uint32_t, uint64_t>> buffers_;
  std::vector<uint64_t> streams_, events_;
};

// Where elements lie in a buffer; keeps shape and strides.
struct View {
  View(uint32_t dtype, std::vector<int64_t> shape, std::vector<int64_t> stride, uint64_t buffer, uint64_t offset = 0)
      : shape(std::move(shape)), stride(std::move(stride)) {
    t.size = PG_SIZE(pg_tensor, components);
    t.dtype_code = static_cast<uint16_t>(dtype >> 16);
    t.dtype_bits = static_cast<uint16_t>(dtype & 0xffff);
    t.rank = static_cast<uint32_t>(this->shape.size());
    t.shape = this->shape.data();
    t.stride = this->stride.data();
    t.buffer = buffer;
    t.offset = offset;
  }
  View(const View&) = delete;
  operator const pg_tensor&() const { return t; }
  std::vector<int64_t> shape, stride;
  pg_tensor t{};
};

struct Check {
  const char *group, *name;
  void (*run)(Probe&);
  bool asynchronous = false;  // nothing to ask of a device whose calls are over when they return
};
std::vector<Check> memory_checks();
std::vector<Check> copy_checks();
std::vector<Check> stream_checks();
std::vector<Check> profiler_checks();                        // of a plugin with that interface
std::vector<Check> collective_checks(const Device& device);  // the same; none of a device that is the plugin's only one

}  // namespace perigee::conform
