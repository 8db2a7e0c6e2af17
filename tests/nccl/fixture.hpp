// SPDX-License-Identifier: Apache-2.0
// The NCCL plugin beside the CUDA plugin, as a host has them.
#pragma once

#include "../contract/host.hpp"
#include "perigee/device_collectives.h"

namespace nccl_test {

using contract::Code;

// One process's view: devices, and an engine for them. The CUDA plugin is open once in a process; several of these
// share it.
class Engine {
 public:
  Engine();
  Engine(const Engine&) = delete;
  ~Engine();

  template <class F, class... A>
  Code call(F function, A... arguments) {
    Code out;
    out.code = function(self, arguments..., &out.error);
    return out;
  }
  const pg_device_collectives* table = nullptr;
  void* self = nullptr;

 private:
  const pg_plugin& entry_;
};

// Members of a group that one process has, with a stream each.
class Members {
 public:
  Members(Engine& engine, contract::Plugin& cuda, std::vector<uint32_t> devices);
  Members(const Members&) = delete;
  ~Members();

  Code make(pg_device_group info);
  Code make();  // of one process
  void destroy();
  pg_collective call(uint32_t kind, size_t member, uint64_t count, uint64_t input, uint64_t output);
  Code submit(const std::vector<pg_collective>& calls);  // size 0: none of that member
  // As the host waits: the stream, and what the engine says of its device then.
  Code sync(size_t member);

  template <class T>
  uint64_t tensor(size_t member, const std::vector<T>& values) {
    const uint64_t buffer = cuda.alloc(values.size() * sizeof(T), devices[member]);
    cuda.upload(buffer, values.data(), values.size() * sizeof(T), streams[member], devices[member]);
    cuda.sync(streams[member], devices[member]);  // `values` go
    return buffer;
  }
  template <class T>
  std::vector<T> read(size_t member, uint64_t buffer, size_t count) {
    std::vector<T> values(count);
    cuda.download(values.data(), buffer, count * sizeof(T), streams[member], devices[member]);
    REQUIRE(sync(member).code == PG_OK);
    return values;
  }

  Engine& engine;
  contract::Plugin& cuda;
  std::vector<uint32_t> devices;
  std::vector<uint64_t> streams;
  uint64_t group = 0;
};

// The plugin of devices that pg_host.device_native asks.
void set_devices(contract::Plugin* cuda);

}  // namespace nccl_test
