// SPDX-License-Identifier: Apache-2.0
// Tensors of nothing, or of another's shape: zeros_like ones_like arange. (fill is the device's entry: copy.cu.)
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
    fill_tensor(launch.native(), at_address(*launch.raw.outputs[0], launch.raw.output[0]), kValue);
  }
};
using Zeros = FillLike<0>;
using Ones = FillLike<1>;
PG_KERNEL("zeros_like", Zeros);
PG_KERNEL("ones_like", Ones);

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

}  // namespace
}  // namespace cuda::elementwise
