// SPDX-License-Identifier: Apache-2.0
// Cotangents through activations: d times the slope at x, in one pass.
#include "elementwise.hpp"

namespace cpu {
namespace {

struct Slope final : pg::Kernel {
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) {
    if (!is_float(storage_of(scalar.dtype))) refuse(call);
  }
  Slope(const pg::KernelCall& call, const ScalarCall& scalar)
      : x_(scalar.program.step[0].operand[0].index),
        d_(scalar.program.step[0].operand[1].index),
        parameters_(call, scalar.program.step[0], scalar.dtype) {
    const Primitive op = scalar.program.step[0].primitive;
    Storage s = storage_of(scalar.dtype), type = kStorageOf[kComputeOf[s]];
    run_ = simd->slope[op][kComputeOf[s]];
    const bool direct = s == sBF16 && simd->slope_bf16[op] != nullptr;
    if (direct) type = s, run_ = simd->slope_bf16[op];
    loop_ = BlockLoop<3>({{&call.out(0), type}, {&call.in(x_), type}, {&call.in(d_), type}});
    if (direct) loop_.set_grain(kGrainBF16);
    if (pg::math::info(op).cost != pg::math::kCheap) loop_.set_grain(kGrainCostly);
  }
  void launch(const pg_launch& launch) override {
    void* base[3] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, x_)),
                     const_cast<void*>(pg::input(launch, d_))};
    auto packed = parameters_(launch);
    loop_.run(base, [run = run_, with = packed.data()](void* const* p, int64_t n) { run(p[1], p[2], p[0], n, with); });
  }

 private:
  uint32_t x_, d_;
  SlopeFn run_;
  ParameterBlock parameters_;
  BlockLoop<3> loop_;
};

}  // namespace

const ElementwiseForm kSlopeForm = elementwise_form<Slope>();

}  // namespace cpu
