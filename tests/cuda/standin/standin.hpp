// SPDX-License-Identifier: Apache-2.0
// The stand-in's own side, for tests that steer it and for stand-ins of vendor libraries that run work on its streams.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace standin {

// ---- for stand-ins of vendor libraries ----

// Queues `body` on a stream of the current device; `name` is for error injection ("cublasLtMatmul": nth execution).
cudaError_t enqueue(cudaStream_t stream, const char* name, std::function<void()> body);
cudaError_t enqueue(cudaStream_t stream, std::function<void()> body);
// Counts a call, and answers what injection, an absent driver or a lost device make of it. `name` is the function's.
cudaError_t enter(const char* name);
// A library that loads its parts when a handle is made, and so ends before whoever had exit handlers registered by then
// (PERIGEE_STANDIN_EXIT); what destroys an object of its afterwards ends the process.
void load_vendor();
void refuse_after_exit(const char* function);
// Whether [address, address + bytes) lies in memory that the current or any device may use. 0 bytes always do.
bool is_device_range(const void* address, size_t bytes);

// ---- for tests ----

// Forgets injected failures, lost devices, counts and settings, and reads PERIGEE_STANDIN_* again. Only while nothing
// is alive.
void reset();
// Forgets injected failures and lost devices, and puts away what is still alive: a new process, as it were.
void forget();
// The nth (from 1) call of a function from now on answers `code`. Sticky codes lose the current device. The names
// "kernel" and "copy" stand for the execution of work on a stream, which fails there, later.
void fail(const std::string& name, uint64_t nth, cudaError_t code);
// How often each function was called since the last reset or forget_calls.
std::map<std::string, uint64_t> calls();
void forget_calls();

struct Live {
  int64_t device_blocks, host_blocks, streams, events, graphs;
  bool operator==(const Live&) const = default;
};
Live live();
int64_t timed_events();  // of the live ones, those that keep the time

enum class Driver { kPresent, kAbsent, kOld, kNoDevice };
void set_driver(Driver driver);
void set_devices(int count);
void set_memory(uint64_t bytes);    // of a device
void set_jitter(int microseconds);  // each piece of work waits up to so long first
void set_capability(int device, int major, int minor);

}  // namespace standin
