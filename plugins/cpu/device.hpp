// SPDX-License-Identifier: Apache-2.0
// The processor as a device: memory is the host's, every call has happened when it returns.
#pragma once

#include "perigee/device.hpp"

namespace cpu {

struct Device {
  static constexpr const char *type = "cpu", *aliases = "";
  uint32_t count(std::string& reason);
  void properties(uint32_t device, pg_device_properties& out);
  uint64_t alloc(uint32_t device, uint32_t kind, uint64_t bytes);
  void free(uint32_t device, uint32_t kind, uint64_t buffer);
  // Streams are formalities; events carry the time they were recorded at.
  uint64_t stream_create(uint32_t device);
  void stream_destroy(uint32_t, uint64_t) {}
  void stream_sync(uint32_t, uint64_t) {}
  uint64_t event_create(uint32_t device);
  void event_destroy(uint32_t device, uint64_t event);
  void event_record(uint32_t device, uint64_t event, uint64_t stream);
  void event_wait(uint32_t, uint64_t, uint64_t) {}
  bool event_query(uint32_t, uint64_t) { return true; }
  void event_sync(uint32_t, uint64_t) {}
  double event_elapsed(uint32_t device, uint64_t start, uint64_t stop);
  void upload(uint32_t device, pg_address target, const void* source, uint64_t bytes, pg::Ticket ticket);
  void download(uint32_t device, void* target, pg_address source, uint64_t bytes, pg::Ticket ticket);
  void copy(uint32_t device, const pg_tensor& target, const pg_tensor& source, pg::Ticket ticket);
  void fill(uint32_t device, const pg_tensor& target, const pg_number& value, pg::Ticket ticket);
};

}  // namespace cpu
