// SPDX-License-Identifier: Apache-2.0
// The device side of the plugin: what perigee/device.hpp asks for, over Memory and Stream.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clock.hpp"
#include "collectives.hpp"
#include "memory.hpp"
#include "perigee/device.hpp"
#include "perigee/profiler.hpp"
#include "settings.hpp"
#include "stream.hpp"

namespace sim {

class Meeting;

// Of a collective, in order.
struct Member {
  uint32_t device = 0;
  pg::Ticket ticket{0, 0};
  std::vector<Touch> touches;  // empty, with the ticket's stream 0: takes no part
  uint64_t bytes = 0;
};

class Device {
 public:
  static constexpr const char *type = "sim", *aliases = "";

  explicit Device(Settings settings);

  uint32_t count(std::string& reason);
  void properties(uint32_t device, pg_device_properties& out);
  uint64_t alloc(uint32_t device, uint32_t kind, uint64_t bytes);
  void free(uint32_t device, uint32_t kind, uint64_t buffer);
  uint64_t stream_create(uint32_t device);
  void stream_destroy(uint32_t device, uint64_t stream);
  void stream_sync(uint32_t device, uint64_t stream);
  uint64_t event_create(uint32_t device);
  void event_destroy(uint32_t device, uint64_t event);
  void event_record(uint32_t device, uint64_t event, uint64_t stream);
  void event_wait(uint32_t device, uint64_t event, uint64_t stream);
  bool event_query(uint32_t device, uint64_t event);
  void event_sync(uint32_t device, uint64_t event);
  // Words of this plugin, for tests: "fail.alloc", "fail.launch", "fail.copy", "fail.collective", "lose": from now on,
  // the handle'th (0: none) as PERIGEE_SIM_FAIL would have it; with a "+" behind it, all from there on. "cut", "mend":
  // the link to device number `handle`.
  uint64_t native(uint32_t device, const char* what, uint64_t handle);
  double event_elapsed(uint32_t device, uint64_t start, uint64_t stop);
  void capture_begin(uint32_t device, uint64_t stream);
  uint64_t capture_end(uint32_t device, uint64_t stream);
  void plan_launch(uint32_t device, uint64_t plan, pg::Ticket ticket);
  void plan_destroy(uint32_t device, uint64_t plan);
  void upload(uint32_t device, pg_address target, const void* source, uint64_t bytes, pg::Ticket ticket);
  void download(uint32_t device, void* target, pg_address source, uint64_t bytes, pg::Ticket ticket);
  void copy(uint32_t device, const pg_tensor& target, const pg_tensor& source, pg::Ticket ticket);
  void fill(uint32_t device, const pg_tensor& target, const pg_number& value, pg::Ticket ticket);
  void peer(uint32_t target_device, pg_address target, uint32_t source_device, pg_address source, uint64_t bytes,
            pg::Ticket ticket);

  // For kernels: the bytes that a tensor at an address covers, and a place in a stream's queue.
  Use use(uint32_t device, const pg_tensor& tensor, pg_address address, const char* what);
  void launch(uint32_t device, pg::Ticket ticket, const char* op, const std::vector<Touch>& touches,
              std::function<void()> body);
  // The same for collectives: bytes at an address, and a place in the queues of all members' streams.
  Use use_bytes(uint32_t device, pg_address address, uint64_t bytes, const char* what);
  void queue_collective(const std::vector<Member>& members, uint32_t kind, size_t root,
                        const std::shared_ptr<Meeting>& meeting);
  void check_number(uint32_t device) { one(device); }
  // Throws where the call's dtypes are switched off.
  void check_coverage(const char* op, const pg_tensor& tensor) const;

  const Settings& settings() const { return settings_; }
  bool busy();
  void begin_telling();  // of what was done when

  pg::ActivityLog activities;  // noted by the streams' threads
  Collectives collectives{*this};

 private:
  struct One {  // a device
    One(uint32_t number, uint64_t limit, Order& order) : memory(number, limit, order) {}
    Memory memory;
    std::atomic<bool> lost{false};
  };
  One& one(uint32_t device);
  One& alive(uint32_t device);  // throws when the device is lost
  std::shared_ptr<Stream> stream(uint32_t device, uint64_t handle);
  std::shared_ptr<Event> event(uint64_t handle);
  struct Activity {  // what a profile is told of it
    uint32_t kind;
    uint64_t bytes;
    int32_t from = 0, to = 0;  // ends of the link of a transfer
  };
  // A piece of work of a plan: what launch or queue_copy was given.
  struct Piece {
    bool launch;
    uint64_t number;  // within the plan
    const char* what;
    std::vector<Touch> touches;
    Activity activity;
    std::function<void()> body;  // runs again and again
  };
  struct Plan {
    uint32_t device;
    std::vector<Piece> pieces;
  };
  bool capture(uint64_t stream, Piece piece);  // false: the stream is not being captured
  void refuse_capture(uint64_t stream, const char* what);
  void queue(uint32_t device, pg::Ticket ticket, const char* what, const std::vector<Touch>& touches, Activity activity,
             std::function<void()> body, const Period* period = nullptr);
  void queue_copy(uint32_t device, pg::Ticket ticket, const char* what, const std::vector<Touch>& touches,
                  Activity activity, std::function<void()> body);

  Settings settings_;  // faults change
  Order order_;
  VirtualClock clock_;
  const int process_;  // a child of fork has none of the threads
  std::vector<std::unique_ptr<One>> devices_;
  std::mutex faults_;  // of the counts, and of the settings' faults
  int64_t allocs_ = 0, launches_ = 0, copies_ = 0, collectives_ = 0;
  std::mutex mutex_;
  uint64_t serial_ = 0;
  std::map<uint64_t, std::pair<uint32_t, std::shared_ptr<Stream>>> streams_;
  std::map<uint64_t, std::shared_ptr<Event>> events_;
  std::map<uint64_t, std::shared_ptr<Plan>> captures_, plans_;  // by stream; by handle
};

// Number of bytes from element 0 to the end of the last; 0 for an empty tensor.
uint64_t extent_bytes(const pg_tensor& tensor);

}  // namespace sim
