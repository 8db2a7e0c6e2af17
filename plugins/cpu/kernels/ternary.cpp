// SPDX-License-Identifier: Apache-2.0
// Three-operand arithmetic; the last operand may be a number.
#include "elementwise.hpp"

namespace cpu {
namespace {

struct Ternary final : pg::Kernel {
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) {
    const Storage s = storage_of(scalar.dtype);
    if (s == sBool || simd->ternary[scalar.program.step[0].primitive][kComputeOf[s]] == nullptr) refuse(call);
  }
  Ternary(const pg::KernelCall& call, const ScalarCall& scalar)
      : parameters_(call, scalar.program.step[0], scalar.dtype) {
    const ScalarStep& step = scalar.program.step[0];
    const Storage s = storage_of(scalar.dtype);
    for (int i = 0; i < 3; i++) operand_[i] = LoopInput(call, step.operand[i]);
    type_ = kStorageOf[kComputeOf[s]];
    run_ = simd->ternary[step.primitive][kComputeOf[s]];
    const bool direct = s == sBF16 && !operand_[2].is_number() && simd->ternary_bf16[step.primitive] != nullptr;
    if (direct) type_ = s, run_ = simd->ternary_bf16[step.primitive];  // a number may need more than 16 bits
    loop_ = BlockLoop<4>({{&call.out(0), type_},
                          {operand_[0].tensor(), type_},
                          {operand_[1].tensor(), type_},
                          {operand_[2].tensor(), type_}});
    if (direct) loop_.set_grain(kGrainBF16);
  }
  void launch(const pg_launch& launch) override {
    alignas(8) char number[8];
    void* base[4] = {pg::output(launch, 0), operand_[0].address(launch, type_, number),
                     operand_[1].address(launch, type_, number), operand_[2].address(launch, type_, number)};
    auto packed = parameters_(launch);
    loop_.run(base,
              [run = run_, with = packed.data()](void* const* p, int64_t n) { run(p[1], p[2], p[3], p[0], n, with); });
  }

 private:
  TernaryFn run_;
  Storage type_;
  LoopInput operand_[3];
  ParameterBlock parameters_;
  BlockLoop<4> loop_;
};

}  // namespace

const ElementwiseForm kTernaryForm = elementwise_form<Ternary>();

}  // namespace cpu
