// SPDX-License-Identifier: Apache-2.0
// Two-operand arithmetic and comparisons; either operand may be a number.
#include <algorithm>

#include "elementwise.hpp"

namespace cpu {
namespace {

struct Binary final : pg::Kernel {
  static Storage storage(const ScalarCall& scalar) {
    return scalar.program.step[0].of_truth ? sBool : storage_of(scalar.dtype);
  }

  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) {
    const Primitive op = scalar.program.step[0].primitive;
    const Storage s = storage(scalar);
    if (s == sBool && (pg::math::info(op).types & pg::math::kOfBooleans) == 0) refuse(call);
    if (simd->binary[op][kComputeOf[s]] == nullptr) refuse(call);
  }

  Binary(const pg::KernelCall& call, const ScalarCall& scalar) : op_(scalar.program.step[0].primitive) {
    const ScalarStep& step = scalar.program.step[0];
    Storage s = storage(scalar);
    compute_ = kComputeOf[s];
    Storage type = kStorageOf[compute_];
    for (int i = 0; i < 2; i++) {
      operand_[i] = LoopInput(call, step.operand[i]);
      if (operand_[i].is_number()) number_ = i;
    }
    run_ = simd->binary[op_][compute_], past_ = simd->binary_stream[op_][compute_];
    const bool direct = s == sBF16 && number_ < 0 && simd->binary_bf16[op_] != nullptr;
    if (direct) {  // a number may need more than 16 bits
      type = s, run_ = simd->binary_bf16[op_], past_ = nullptr;
    }
    if (s == sBool && number_ < 0 && simd->binary_bool[op_] != nullptr) {
      type = s, run_ = simd->binary_bool[op_], past_ = nullptr;
    }
    loop_ = BlockLoop<3>(
        {{&call.out(0), step.truth ? sBool : type}, {operand_[0].tensor(), type}, {operand_[1].tensor(), type}});
    if (direct) loop_.set_grain(kGrainBF16);
    checked_ = pg::math::info(op_).checks != pg::math::kNothing && !is_float(s);
  }

  void launch(const pg_launch& launch) override {
    alignas(8) char number[8];
    void* base[3] = {pg::output(launch, 0), operand_[0].address(launch, kStorageOf[compute_], number),
                     operand_[1].address(launch, kStorageOf[compute_], number)};
    BinaryFn run = run_;
    if (op_ == pPow && number_ == 1 && simple_power(base, operand_[1].number(launch).real)) return;
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
    BinaryFn mul = simd->binary[pMul][compute_];
    if (exponent == 2) {
      loop_.run(with, [mul](void* const* p, int64_t n) { mul(p[1], p[1], p[0], n); });
    } else if (exponent == 3) {
      const int bytes = kStorageBytes[kStorageOf[compute_]];
      loop_.run(with, [mul, bytes](void* const* p, int64_t n) { cube(mul, p[1], p[0], n, bytes); });
    } else if (real && (exponent == 0.5 || exponent == -0.5)) {
      UnaryFn root = simd->unary[exponent > 0 ? pSqrt : pRsqrt][compute_];
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
    const bool wide = compute_ == kI64, divides = op_ != pPow;
    loop_.run(base, [=](void* const* p, int64_t n) {
      if (wide ? has_bad<int64_t>(p[2], n, divides) : has_bad<int32_t>(p[2], n, divides)) {
        __atomic_store_n(found, 1, __ATOMIC_RELAXED);
      }
      run(p[1], p[2], p[0], n);
    });
    if (bad != 0) pg::fail_argument(divides ? "integer division by zero" : kNegativePower);
  }

  static constexpr const char* kNegativePower = "integers cannot be raised to a negative integer power";

  Primitive op_;
  Compute compute_;
  int number_ = -1;       // which operand is a number; -1: none
  bool checked_ = false;  // the right operand has values that are refused
  BinaryFn run_, past_;
  LoopInput operand_[2];
  BlockLoop<3> loop_;
};

}  // namespace

const ElementwiseForm kBinaryForm = elementwise_form<Binary>();

}  // namespace cpu
