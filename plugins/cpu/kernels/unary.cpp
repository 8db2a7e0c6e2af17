// SPDX-License-Identifier: Apache-2.0
// One-operand functions and predicates, with up to three runtime parameters.
#include "elementwise.hpp"

namespace cpu {
namespace {

struct Unary final : pg::Kernel {
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) {
    const Primitive op = scalar.program.step[0].primitive;
    const Storage s = storage_of(operand(call, scalar));
    if (s == sBool && (pg::math::info(op).types & pg::math::kOfBooleans) == 0) refuse(call);
    if (simd->unary[op][kComputeOf[s]] == nullptr) refuse(call);
  }

  Unary(const pg::KernelCall& call, const ScalarCall& scalar)
      : index_(scalar.program.step[0].operand[0].index),
        parameters_(call, scalar.program.step[0], pg::dtype_of(operand(call, scalar))) {
    const Primitive op = scalar.program.step[0].primitive;
    const Storage s = storage_of(operand(call, scalar));
    type_ = kStorageOf[kComputeOf[s]];
    run_ = simd->unary[op][kComputeOf[s]];
    const bool direct = s == sBF16 && simd->unary_bf16[op] != nullptr;
    if (direct) type_ = s, run_ = simd->unary_bf16[op];
    if (s == sBool && simd->unary_bool[op] != nullptr) type_ = s, run_ = simd->unary_bool[op];
    if (pg::math::rounds(op) && !is_float(s)) type_ = s, run_ = nullptr;  // a copy
    const bool truth = pg::math::info(op).result == pg::math::kTruth;
    loop_ = BlockLoop<2>({{&call.out(0), truth ? sBool : type_}, {&operand(call, scalar), type_}});
    if (direct) loop_.set_grain(kGrainBF16);
    if (pg::math::info(op).cost != pg::math::kCheap) loop_.set_grain(kGrainCostly);
  }

  void launch(const pg_launch& launch) override {
    void* base[2] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, index_))};
    UnaryFn run = run_;
    if (run == nullptr)
      return loop_.run(base, [this](void* const* p, int64_t n) {
        std::memmove(p[0], p[1], static_cast<size_t>(n * kStorageBytes[type_]));
      });
    auto packed = parameters_(launch);
    const void* with = packed.data();
    loop_.run(base, [run, with](void* const* p, int64_t n) { run(p[1], p[0], n, with); });
  }

 private:
  static const pg_tensor& operand(const pg::KernelCall& call, const ScalarCall& scalar) {
    return call.in(scalar.program.step[0].operand[0].index);
  }

  uint32_t index_;
  UnaryFn run_;
  Storage type_;
  ParameterBlock parameters_;
  BlockLoop<2> loop_;
};

}  // namespace

const ElementwiseForm kUnaryForm = elementwise_form<Unary>();

}  // namespace cpu
