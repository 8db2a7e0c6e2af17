// SPDX-License-Identifier: Apache-2.0
// Tensors of nothing, or of another's shape: zeros_like ones_like filled arange spaced. (fill is the device's entry:
// copy.cu.)
#include "../copy.hpp"
#include "../elementwise.cuh"
#include "../kernel.hpp"

namespace cuda::elementwise {
namespace {

template <int kValue>
class FillLike final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    storage_of(call.out(0));
    if (call.out(0).layout != 0 || call.out(0).class_id != PG_CLASS_DENSE) pg::fail_support("private layout");
  }
  FillLike(const pg::KernelCall&, pg::Plan&) {}
  void run(const Launch& launch) override {
    if (launch.out(0) == nullptr) return;
    fill_tensor(launch.native(), at_address(*launch.raw.outputs[0], launch.raw.output[0]),
                pg::make_number(int64_t{kValue}));
  }
};
using Zeros = FillLike<0>;
using Ones = FillLike<1>;
PG_KERNEL("zeros_like", Zeros);
PG_KERNEL("ones_like", Ones);

class Filled final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { Zeros::supports(call); }
  Filled(const pg::KernelCall& call, pg::Plan&) : value_(call.runtime<pg_number>("value")) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    if (launch.out(0) == nullptr) return;
    fill_tensor(launch.native(), at_address(*launch.raw.outputs[0], launch.raw.output[0]), value_(launch.raw));
  }

 private:
  pg::Runtime<pg_number> value_;
};
PG_KERNEL("filled", Filled);

// start + i * step, in float64.
struct Sequence : Function<double, double> {
  static constexpr int kInputs = 0;
  static constexpr bool kAnyOutput = true;
  double first, step;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const double (&)[1][V], double (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = first + static_cast<double>(at + i) * step;
  }
};

class Arange final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kAny); }
  Arange(const pg::KernelCall& call, pg::Plan&)
      : start_(call.runtime<double>("start")),
        step_(call.runtime<double>("step")),
        loop_({typed(call.out(0))}, Sequence::kWidths, 1, true) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    Sequence f;
    f.first = start_(launch.raw);
    f.step = step_(launch.raw);
    void* const data[1] = {launch.out(0)};
    elementwise::run(launch.native(), loop_, data, f);
  }

 private:
  pg::Runtime<double> start_, step_;
  Loop<1> loop_;
};
PG_KERNEL("arange", Arange);

// From the first number to the last in equal steps; the last is the one that was asked for.
struct Between : Function<double, double> {
  static constexpr int kInputs = 0;
  static constexpr bool kAnyOutput = true;
  double first, step, last;
  int64_t end;  // where the last stands; -1: nowhere
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const double (&)[1][V], double (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = at + i == end ? last : first + static_cast<double>(at + i) * step;
  }
};

class Spaced final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kAny); }
  Spaced(const pg::KernelCall& call, pg::Plan&)
      : first_(call.runtime<double>("first")),
        last_(call.runtime<double>("last")),
        count_(pg::element_count(call.out(0))),
        loop_({typed(call.out(0))}, Between::kWidths, 1, true) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    Between f;
    f.first = first_(launch.raw);
    f.last = last_(launch.raw);
    f.step = count_ > 1 ? (f.last - f.first) / static_cast<double>(count_ - 1) : 0;
    f.end = count_ > 1 ? count_ - 1 : -1;
    void* const data[1] = {launch.out(0)};
    elementwise::run(launch.native(), loop_, data, f);
  }

 private:
  pg::Runtime<double> first_, last_;
  int64_t count_;
  Loop<1> loop_;
};
PG_KERNEL("spaced", Spaced);

}  // namespace
}  // namespace cuda::elementwise
