// SPDX-License-Identifier: Apache-2.0
// One-operand functions and predicates, with up to two runtime parameters.
#include "block_loop.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu {
namespace {

UnaryOp find_op(const pg::KernelCall& call) {
  if (call.is("gelu")) return call.attr<int>("approximate") != 0 ? uGeluTanh : uGelu;
#define PG_ROW(name, Op) \
  if (call.is(#name)) return u##Op;
  PG_MATH_UNARY(PG_ROW)
  PG_MATH_UNARY_FLOAT(PG_ROW)
  PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

bool predicate(UnaryOp op) { return op >= uIsNan; }
bool rounds(UnaryOp op) { return op == uFloor || op == uCeil || op == uRound || op == uTrunc; }

struct Unary final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    UnaryOp op = find_op(call);
    Storage s = storage_of(call.in(0));
    if (storage_of(call.out(0)) != (predicate(op) ? sBool : s)) refuse(call);
    if (s == sBool && (op == uNeg || op == uSign || op == uRelu || op == uClamp)) refuse(call);
    if (rounds(op) && !is_float(s)) return;  // a copy
    if (simd->unary[op][kComputeOf[s]] == nullptr) refuse(call);
  }

  Unary(const pg::KernelCall& call, pg::Plan&) {
    UnaryOp op = find_op(call);
    Storage s = storage_of(call.in(0));
    type_ = kStorageOf[kComputeOf[s]];
    if (op == uClamp)
      parameter_[0] = call.runtime<double>("min"), parameter_[1] = call.runtime<double>("max"), count_ = 2;
    if (op == uLeakyRelu) parameter_[0] = call.runtime<double>("negative_slope"), count_ = 1;
    if (op == uElu) parameter_[0] = call.runtime<double>("alpha"), count_ = 1;
    run_ = simd->unary[op][kComputeOf[s]];
    loop_ = BlockLoop<2>({{&call.out(0), predicate(op) ? sBool : type_}, {&call.in(0), type_}});
  }

  void launch(const pg_launch& launch) override {
    void* base[2] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 0))};
    UnaryFn run = run_;
    alignas(8) char params[16];
    if (count_ == 0)
      return loop_.run(base, [run, this](void* const* p, int64_t n) {
        if (run != nullptr)
          run(p[1], p[0], n, nullptr);
        else
          std::memmove(p[0], p[1], static_cast<size_t>(n * kStorageBytes[type_]));
      });
    int bytes = kStorageBytes[type_];
    for (int i = 0; i < 2; i++) put_bound(i < count_ ? parameter_[i](launch) : 0.0, params + i * bytes);
    const char* with = params;
    loop_.run(base, [run, with](void* const* p, int64_t n) { run(p[1], p[0], n, with); });
  }

 private:
  // Infinite bounds of clamp become the ends of an integer type.
  void put_bound(double value, void* target) const {
    if (type_ == sI64 || type_ == sI32) {
      int64_t low = type_ == sI64 ? INT64_MIN : INT32_MIN, high = type_ == sI64 ? INT64_MAX : INT32_MAX;
      int64_t whole = value >= static_cast<double>(high)  ? high
                      : value <= static_cast<double>(low) ? low
                                                          : static_cast<int64_t>(value);
      auto narrow = static_cast<int32_t>(whole);
      std::memcpy(target, type_ == sI64 ? static_cast<void*>(&whole) : &narrow,
                  static_cast<size_t>(kStorageBytes[type_]));
    } else {
      put_number(type_, value, target);
    }
  }

  UnaryFn run_;
  Storage type_;
  int count_ = 0;
  pg::Runtime<double> parameter_[2];
  BlockLoop<2> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Unary);
PG_MATH_UNARY(PG_ROW)
#undef PG_ROW
// The tanh form of gelu is an attribute of gelu.
#define PG_ROW(name, Op) \
  [[maybe_unused]] static const int registered_##name = u##Op == uGeluTanh ? 0 : pg::add_kernel<Unary>(#name);
PG_MATH_UNARY_FLOAT(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) PG_KERNEL(#name, Unary);
PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cpu
