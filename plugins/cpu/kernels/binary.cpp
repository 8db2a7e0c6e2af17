// SPDX-License-Identifier: Apache-2.0
// Two-operand arithmetic and comparisons; either operand may be a number.
#include <algorithm>

#include "block_loop.hpp"

namespace cpu {
namespace {

BinaryOp find_binary(const pg::KernelCall& call) {
#define PG_ROW(name, Op) \
  if (call.is(#name)) return b##Op;
  PG_MATH_BINARY(PG_ROW)
  PG_MATH_BINARY_FLOAT(PG_ROW)
  PG_MATH_BINARY_INT(PG_ROW)
  PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

bool compares(BinaryOp op) { return op >= bEq; }

struct Binary final : pg::Kernel {
  static const pg_tensor& operand(const pg::KernelCall& call) { return call.has(0) ? call.in(0) : call.in(1); }

  static void supports(const pg::KernelCall& call) {
    require_all_dense(call), refuse_turned(call);
    BinaryOp op = find_binary(call);
    Storage s = storage_of(operand(call));
    if (call.has(0) && call.has(1) && storage_of(call.in(0)) != storage_of(call.in(1))) refuse(call);
    if (storage_of(call.out(0)) != (compares(op) ? sBool : s)) refuse(call);
    if (s == sBool && (op == bSub || op == bPow || op == bRemainder || op == bFloorDiv || op == bFmod)) refuse(call);
    if (simd->binary[op][kComputeOf[s]] == nullptr) refuse(call);
  }

  Binary(const pg::KernelCall& call, pg::Plan&) : op_(find_binary(call)) {
    Storage s = storage_of(operand(call));
    compute_ = kComputeOf[s];
    Storage type = kStorageOf[compute_];
    number_ = call.has(0) ? (call.has(1) ? -1 : 1) : 0;
    if (number_ >= 0) value_ = call.scalar_value();
    const pg_tensor* a = call.has(0) ? &call.in(0) : nullptr;
    const pg_tensor* b = call.has(1) ? &call.in(1) : nullptr;
    run_ = simd->binary[op_][compute_], past_ = simd->binary_stream[op_][compute_];
    const bool direct = s == sBF16 && number_ < 0 && simd->binary_bf16[op_] != nullptr;
    if (direct) {  // a number may need more than 16 bits
      type = s, run_ = simd->binary_bf16[op_], past_ = nullptr;
    }
    if (s == sBool && number_ < 0 && simd->binary_bool[op_] != nullptr) {
      type = s, run_ = simd->binary_bool[op_], past_ = nullptr;
    }
    loop_ = BlockLoop<3>({{&call.out(0), compares(op_) ? sBool : type}, {a, type}, {b, type}});
    if (direct) loop_.set_grain(kGrainBF16);
    checked_ = (op_ == bRemainder || op_ == bFloorDiv || op_ == bFmod || op_ == bPow) && !is_float(s);
  }

  void launch(const pg_launch& launch) override {
    void* base[3] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 0)),
                     const_cast<void*>(pg::input(launch, 1))};
    alignas(8) char number[8];
    BinaryFn run = run_;
    if (number_ >= 0) {
      pg_number value = value_(launch);
      base[1 + number_] = number;
      if (op_ == bPow && number_ == 1) {
        if (simple_power(base, value.real)) return;
      }
      put_number(kStorageOf[compute_], value, number);
    }
    if (checked_) return launch_checked(base);
    auto body = [run](void* const* p, int64_t n) { run(p[1], p[2], p[0], n); };
    if (past_ == nullptr) return loop_.run(base, body);
    loop_.run(base, body, [past = past_](void* const* p, int64_t n) { past(p[1], p[2], p[0], n); });
  }

 private:
  // Powers that are cheaper in another way. A square and a root round once, a cube and an inverse root twice.
  bool simple_power(void* const (&base)[3], double exponent) const {
    const bool real = compute_ <= kF64;
    if (!real && exponent < 0) pg::fail_argument(kNegativePower);
    alignas(8) char unused[8] = {};
    void* const with[3] = {base[0], base[1], unused};
    BinaryFn mul = simd->binary[bMul][compute_];
    if (exponent == 2) {
      loop_.run(with, [mul](void* const* p, int64_t n) { mul(p[1], p[1], p[0], n); });
    } else if (exponent == 3) {
      const int bytes = kStorageBytes[kStorageOf[compute_]];
      loop_.run(with, [mul, bytes](void* const* p, int64_t n) { cube(mul, p[1], p[0], n, bytes); });
    } else if (real && (exponent == 0.5 || exponent == -0.5)) {
      UnaryFn root = simd->unary[exponent > 0 ? uSqrt : uRsqrt][compute_];
      loop_.run(with, [root](void* const* p, int64_t n) { root(p[1], p[0], n, nullptr); });
    } else {
      return false;
    }
    return true;
  }

  // out may be x.
  static void cube(BinaryFn mul, const void* x, void* out, int64_t n, int bytes) {
    alignas(64) char square[kBlock * sizeof(double)];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      const char* from = static_cast<const char*>(x) + i * bytes;
      mul(from, from, square, count);
      mul(square, from, static_cast<char*>(out) + i * bytes, count);
    }
  }

  // Integers divide by no zero and have no negative powers.
  template <class T>
  static bool has_bad(const void* values, int64_t n, bool divides) {
    const T* y = static_cast<const T*>(values);
    bool bad = false;
    for (int64_t i = 0; i < n; i++) bad |= divides ? y[i] == 0 : y[i] < 0;
    return bad;
  }

  void launch_checked(void* const (&base)[3]) const {
    int bad = 0, *found = &bad;
    BinaryFn run = run_;
    const bool wide = compute_ == kI64, divides = op_ != bPow;
    loop_.run(base, [=](void* const* p, int64_t n) {
      if (wide ? has_bad<int64_t>(p[2], n, divides) : has_bad<int32_t>(p[2], n, divides)) {
        __atomic_store_n(found, 1, __ATOMIC_RELAXED);
      }
      run(p[1], p[2], p[0], n);
    });
    if (bad != 0) pg::fail_argument(divides ? "integer division by zero" : kNegativePower);
  }

  static constexpr const char* kNegativePower = "integers cannot be raised to a negative integer power";

  BinaryOp op_;
  Compute compute_;
  int number_ = -1;       // which operand is a number; -1: none
  bool checked_ = false;  // the right operand has values that are refused
  BinaryFn run_, past_;
  pg::Runtime<pg_number> value_;
  BlockLoop<3> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Binary);
PG_MATH_BINARY(PG_ROW)
PG_MATH_BINARY_FLOAT(PG_ROW)
PG_MATH_BINARY_INT(PG_ROW)
PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cpu
