// SPDX-License-Identifier: Apache-2.0
// What the stand-in knows: devices, memory, failures to come. Behind one lock, but for what runs on streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "standin.hpp"

namespace standin {

constexpr int kMaxDevices = 16;

struct Block {  // of device memory
  int device = 0;
  char* begin = nullptr;
  size_t bytes = 0;
  char* mapped = nullptr;  // a guard page, pages, a guard page
  size_t mapped_bytes = 0;
};

struct DeviceState {
  cudaError_t lost = cudaSuccess;  // the sticky error
  uint64_t used = 0;
  int major = 9, minor = 0;
  CUstream_st* default_stream = nullptr;
  std::set<int> peers;
};

struct Injection {
  std::string name;
  uint64_t left;  // calls until it fails
  cudaError_t code;
};

struct State {
  struct Handles {
    std::set<CUstream_st*> streams;
    std::set<CUevent_st*> events;
    std::vector<char*> blocks, host_blocks;
  };
  std::recursive_mutex mutex;
  Driver driver = Driver::kPresent;
  int devices = 1;
  uint64_t memory = uint64_t{4} << 30;
  size_t alignment = 512;  // of cudaMalloc
  std::atomic<int> jitter{0};
  bool ends_early = false;  // PERIGEE_STANDIN_EXIT=early
  std::atomic<bool> driver_gone{false}, vendor_gone{false};
  DeviceState device[kMaxDevices];
  std::map<const char*, Block> blocks;  // by first byte
  std::map<const char*, size_t> host_blocks;
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::set<const void*> graphs;
  std::list<Injection> injections;
  std::map<std::string, uint64_t> calls;
  std::list<Block> freed;  // not accessible, and not handed out again soon
};
State& state();

// Thread-local, as in CUDA.
struct ThreadState {
  int device = 0;
  cudaError_t last = cudaSuccess;
  bool in_host_function = false;
};
ThreadState& thread_state();

bool is_sticky(cudaError_t code);
// Remembers a failure as the thread's last.
cudaError_t finish(cudaError_t status);
// The injected failure of one execution of `name`, if it is due.
cudaError_t injected(const char* name);
// From a worker: the device fails, for good.
void lose(int device, cudaError_t code);
cudaError_t lost(int device);

// Ends the process: a mistake of the plugin that CUDA would not report.
[[noreturn]] void mistake(const std::string& message);

// The block that holds the range, or NULL.
const Block* find_block(const void* address, size_t bytes);

#define STANDIN_ENTER()                                                                                             \
  do {                                                                                                              \
    if (cudaError_t refused_ = standin::enter(__func__); refused_ != cudaSuccess) return standin::finish(refused_); \
  } while (false)

}  // namespace standin
