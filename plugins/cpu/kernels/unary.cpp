// SPDX-License-Identifier: Apache-2.0
// One-operand functions and predicates, with up to three runtime parameters.
#include "block_loop.hpp"
#include "parameter_block.hpp"

namespace cpu {
namespace {

UnaryOp find_unary(const pg::KernelCall& call) {
  if (call.is("gelu")) return call.attr<int>("approximate") != 0 ? uGeluTanh : uGelu;
  if (call.is("round") && call.attr<int>("decimals") != 0) return uRoundTo;
  if (call.is("bitwise_not") && pg::dtype_of(call.in(0)) == PG_B8) return uLogicalNot;
#define PG_ROW(name, Op) \
  if (call.is(#name)) return u##Op;
  PG_MATH_UNARY(PG_ROW)
  PG_MATH_UNARY_FLOAT(PG_ROW)
  PG_MATH_UNARY_INT(PG_ROW)
  PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

bool predicate(UnaryOp op) { return op >= uIsNan; }
bool costly(UnaryOp op) { return op >= uExp && !predicate(op); }
bool rounds(UnaryOp op) { return op >= uFloor && op <= uTrunc; }
// Functions of all types that booleans have too.
bool takes_bool(UnaryOp op) {
  return op >= uReciprocal || op == uAbs || op == uSign || op == uSquare || op == uNanToNum;
}

struct Unary final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call), refuse_turned(call);
    UnaryOp op = find_unary(call);
    Storage s = storage_of(call.in(0));
    if (storage_of(call.out(0)) != (predicate(op) ? sBool : s)) refuse(call);
    if (s == sBool && !takes_bool(op)) refuse(call);
    if (rounds(op) && !is_float(s)) return;  // a copy
    if (simd->unary[op][kComputeOf[s]] == nullptr) refuse(call);
  }

  Unary(const pg::KernelCall& call, pg::Plan&) : parameters_(call, call.in(0)) {
    UnaryOp op = find_unary(call);
    Storage s = storage_of(call.in(0));
    type_ = kStorageOf[kComputeOf[s]];
    run_ = simd->unary[op][kComputeOf[s]];
    const bool direct = s == sBF16 && simd->unary_bf16[op] != nullptr;
    if (direct) type_ = s, run_ = simd->unary_bf16[op];
    if (s == sBool && simd->unary_bool[op] != nullptr) type_ = s, run_ = simd->unary_bool[op];
    loop_ = BlockLoop<2>({{&call.out(0), predicate(op) ? sBool : type_}, {&call.in(0), type_}});
    if (direct) loop_.set_grain(kGrainBF16);
    if (costly(op)) loop_.set_grain(kGrainCostly);
  }

  void launch(const pg_launch& launch) override {
    void* base[2] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 0))};
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
  UnaryFn run_;
  Storage type_;
  ParameterBlock parameters_;
  BlockLoop<2> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Unary);
PG_MATH_UNARY(PG_ROW)
PG_MATH_UNARY_CHEAP(PG_ROW)
PG_MATH_ROUND(PG_ROW)
PG_MATH_UNARY_COSTLY(PG_ROW)
PG_MATH_UNARY_SPECIAL(PG_ROW)
PG_MATH_UNARY_INT(PG_ROW)
PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW
PG_KERNEL("gelu", Unary);

}  // namespace
}  // namespace cpu
