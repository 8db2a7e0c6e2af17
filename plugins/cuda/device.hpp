// SPDX-License-Identifier: Apache-2.0
// The device side of the plugin: what perigee/device.hpp asks for, over the CUDA runtime. Buffer handles are device
// addresses, stream handles are Streams (stream.hpp), event handles are Events (event.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "perigee/device.hpp"
#include "slots.hpp"
#include "stream.hpp"

namespace cuda {

struct Event;

class Device {
 public:
  static constexpr const char *type = "cuda", *aliases = "gpu";

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
  void upload(uint32_t device, pg_address target, const void* source, uint64_t bytes, pg::Ticket ticket);
  void download(uint32_t device, void* target, pg_address source, uint64_t bytes, pg::Ticket ticket);
  void copy(uint32_t device, const pg_tensor& target, const pg_tensor& source, pg::Ticket ticket);
  void fill(uint32_t device, const pg_tensor& target, const pg_number& value, pg::Ticket ticket);
  void peer(uint32_t target_device, pg_address target, uint32_t source_device, pg_address source, uint64_t bytes,
            pg::Ticket ticket);
  uint64_t native(uint32_t device, const char* what, uint64_t handle);

  void capture_begin(uint32_t device, uint64_t stream);
  uint64_t capture_end(uint32_t device, uint64_t stream);
  void plan_launch(uint32_t device, uint64_t plan, pg::Ticket ticket);
  void plan_destroy(uint32_t device, uint64_t plan);

  bool busy() const { return alive_.load() != 0; }

 private:
  Stream& enter(uint32_t device, uint64_t stream);  // makes the device current
  void connect(uint32_t device, uint32_t other);
  void drop_capture(Stream& stream);

  Slots slots_;
  std::atomic<int64_t> alive_{0};  // allocations, streams, events and plans
  std::mutex mutex_;
  std::vector<uint64_t> connected_;  // pairs of devices that have been made peers where they can be
};

}  // namespace cuda
