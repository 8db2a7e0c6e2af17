// SPDX-License-Identifier: Apache-2.0
// Cotangents through activations: d times the slope at x, in one pass.
#include "block_loop.hpp"
#include "parameter_block.hpp"

namespace cpu {
namespace {

SlopeOp find_slope(const pg::KernelCall& call) {
  if (call.is("gelu_grad")) return call.attr<int>("approximate") != 0 ? gGeluTanhGrad : gGeluGrad;
#define PG_ROW(name, Op) \
  if (call.is(#name)) return g##Op;
  PG_MATH_SLOPE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

// Those with an exponential or more in them.
bool costly(SlopeOp op) {
  return op == gEluGrad || op == gSiluGrad || op == gSoftplusGrad || op == gMishGrad || op >= gGeluGrad;
}

struct Slope final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call), refuse_turned(call);
    Storage s = storage_of(call.in(0));
    if (!is_float(s) || storage_of(call.in(1)) != s || storage_of(call.out(0)) != s) refuse(call);
  }
  Slope(const pg::KernelCall& call, pg::Plan&) : parameters_(call, call.in(0)) {
    SlopeOp op = find_slope(call);
    Storage s = storage_of(call.in(0)), type = kStorageOf[kComputeOf[s]];
    run_ = simd->slope[op][kComputeOf[s]];
    const bool direct = s == sBF16 && simd->slope_bf16[op] != nullptr;
    if (direct) type = s, run_ = simd->slope_bf16[op];
    loop_ = BlockLoop<3>({{&call.out(0), type}, {&call.in(0), type}, {&call.in(1), type}});
    if (direct) loop_.set_grain(kGrainBF16);
    if (costly(op)) loop_.set_grain(kGrainCostly);
  }
  void launch(const pg_launch& launch) override {
    void* base[3] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 0)),
                     const_cast<void*>(pg::input(launch, 1))};
    auto packed = parameters_(launch);
    loop_.run(base, [run = run_, with = packed.data()](void* const* p, int64_t n) { run(p[1], p[2], p[0], n, with); });
  }

 private:
  SlopeFn run_;
  ParameterBlock parameters_;
  BlockLoop<3> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Slope);
PG_MATH_SLOPE(PG_ROW)
#undef PG_ROW
PG_KERNEL("gelu_grad", Slope);

}  // namespace
}  // namespace cpu
