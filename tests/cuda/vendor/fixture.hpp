// SPDX-License-Identifier: Apache-2.0
// What the tests of the vendor libraries' use share: device memory of the stand-in, numbers of a dtype, a host that
// keeps what was logged.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "standin.hpp"

namespace vendor_test {

// A host for pg::log; `lines` since the last clear.
std::vector<std::string>& log_lines();
void open_host();

struct Stream {
  cudaStream_t native = nullptr;
  Stream();
  ~Stream();
  void finish() const;
};

// Device memory, filled with random numbers of a dtype; the first element lies `skip` elements into the allocation.
class Data {
 public:
  Data(uint32_t dtype, int64_t count, uint32_t seed, int64_t skip = 0);
  Data(const Data&) = delete;
  ~Data();
  void* address() const { return address_; }
  double at(int64_t i) const;
  void set(int64_t i, double value);

 private:
  uint32_t dtype_;
  void* allocation_ = nullptr;
  void* address_ = nullptr;
};

class Workspace {
 public:
  explicit Workspace(uint64_t bytes);
  ~Workspace();
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

// How far apart two numbers may be: relative to the size of the sum they stand for.
double tolerance(uint32_t dtype, int64_t terms);

uint64_t calls_of(const char* name);

}  // namespace vendor_test
