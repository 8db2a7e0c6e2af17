// SPDX-License-Identifier: Apache-2.0
// Three-operand arithmetic; the last operand of lerp may be a number.
#include "block_loop.hpp"
#include "parameter_block.hpp"

namespace cpu {
namespace {

TernaryOp find_ternary(const pg::KernelCall& call) {
#define PG_ROW(name, Op) \
  if (call.is(#name)) return t##Op;
  PG_MATH_TERNARY(PG_ROW)
  PG_MATH_TERNARY_FLOAT(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

struct Ternary final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call), refuse_turned(call);
    Storage s = storage_of(call.out(0));
    if (!call.has(0) || !call.has(1)) refuse(call);
    for (uint32_t i = 0; i < 3; i++) {
      if (call.has(i) && storage_of(call.in(i)) != s) refuse(call);
    }
    if (s == sBool || simd->ternary[find_ternary(call)][kComputeOf[s]] == nullptr) refuse(call);
  }
  Ternary(const pg::KernelCall& call, pg::Plan&) : parameters_(call, call.out(0)) {
    TernaryOp op = find_ternary(call);
    Storage s = storage_of(call.out(0));
    type_ = kStorageOf[kComputeOf[s]];
    run_ = simd->ternary[op][kComputeOf[s]];
    const pg_tensor* last = call.has(2) ? &call.in(2) : nullptr;
    if (last == nullptr) number_ = true, value_ = call.scalar_value();
    const bool direct = s == sBF16 && !number_ && simd->ternary_bf16[op] != nullptr;
    if (direct) type_ = s, run_ = simd->ternary_bf16[op];  // a number may need more than 16 bits
    loop_ = BlockLoop<4>({{&call.out(0), type_}, {&call.in(0), type_}, {&call.in(1), type_}, {last, type_}});
    if (direct) loop_.set_grain(kGrainBF16);
  }
  void launch(const pg_launch& launch) override {
    void* base[4] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 0)),
                     const_cast<void*>(pg::input(launch, 1)), const_cast<void*>(pg::input(launch, 2))};
    alignas(8) char number[8];
    if (number_) {
      put_number(type_, value_(launch), number);
      base[3] = number;
    }
    auto packed = parameters_(launch);
    loop_.run(base,
              [run = run_, with = packed.data()](void* const* p, int64_t n) { run(p[1], p[2], p[3], p[0], n, with); });
  }

 private:
  TernaryFn run_;
  Storage type_;
  bool number_ = false;
  pg::Runtime<pg_number> value_;
  ParameterBlock parameters_;
  BlockLoop<4> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Ternary);
PG_MATH_TERNARY(PG_ROW)
PG_MATH_TERNARY_FLOAT(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cpu
