// SPDX-License-Identifier: Apache-2.0
// Opens the CUDA plugin the way a host does, on the stand-in or on a GPU; tensors of one axis, and index_select over
// them.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perigee/plugin.hpp"

namespace test {

// Puts the stand-in into its first state. Each program defines it; on a GPU there is nothing to do.
void reset();
// Why the plugin has no device; empty: it has one.
std::string no_device();

struct Code {  // of a table call
  int32_t code;
  pg_error error;
  std::string message() const { return error.message; }
};

// A float or int64 vector on the device.
struct Vector {
  uint32_t dtype;
  int64_t count;
  int64_t stride = 1;
  uint64_t buffer = 0;
  pg_tensor meta() const;
};

class Gpu {
 public:
  Gpu();
  Gpu(const Gpu&) = delete;
  ~Gpu();

  template <class F, class... A>
  Code call(F function, A... arguments) {
    Code out{0, pg::make_error()};
    out.code = function(self, 0u, arguments..., &out.error);
    return out;
  }
  template <class F, class... A>
  void ok(F function, A... arguments) {
    Code out = call(function, arguments...);
    INFO(out.message());
    REQUIRE(out.code == PG_OK);
  }

  uint64_t stream();
  uint64_t event();
  Vector floats(std::vector<float> values);
  Vector integers(std::vector<int64_t> values);
  void write(const Vector& target, const std::vector<int64_t>& values);
  std::vector<float> read(const Vector& source);
  // y[i] = x[index[i]]
  Code select(const Vector& x, const Vector& index, const Vector& y, uint64_t stream, uint64_t sequence);
  Code fill(const Vector& target, double value, uint64_t stream);

  void* self = nullptr;
  const pg_device* device = nullptr;
  const pg_kernels* kernels = nullptr;

 private:
  Vector make(uint32_t dtype, int64_t count, const void* data);
  struct Prepared {
    uint32_t index;
    void* kernel;
  };
  std::vector<Prepared> prepared_;
  std::vector<uint64_t> streams_, events_, buffers_;
  uint64_t own_ = 0;  // for uploads and downloads
};

}  // namespace test

// Opens the plugin as `name`, and leaves the test where it has no device: a program for GPUs says so, once.
#define GPU(name)                         \
  test::reset();                          \
  if (!test::no_device().empty()) return; \
  test::Gpu name
