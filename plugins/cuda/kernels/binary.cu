// SPDX-License-Identifier: Apache-2.0
// Two-operand arithmetic and comparisons; either operand may be a number. Cheap operators share a kernel that reads and
// writes whole packets; the others are bound by their arithmetic and take an element a thread.
#include "../elementwise.cuh"
#include "../elementwise_form.hpp"
#include "../kernel.hpp"
#include "perigee/kernels/math.hpp"

namespace cuda::elementwise {
namespace {

using namespace pg::math;

// Both operands of the step; one may be a number.
class Pair {
 public:
  Pair(const pg::KernelCall& call, const ScalarCall& scalar) {
    for (int i = 0; i < 2; i++) {
      input_[i] = LoopInput(call, scalar.program.step[0].operand[i]);
      if (input_[i].is_number()) number_ = i;
    }
  }
  // Which operand is a number; -1: none.
  int number() const { return number_; }
  pg_number value(const Launch& launch) const { return number_ >= 0 ? input_[number_].number(launch) : pg_number{}; }
  void* address(const Launch& launch, int i) const { return input_[i].address(launch); }
  Loop<3> loop(const pg::KernelCall& call, uint32_t widths) const {
    return Loop<3>({typed(call.out(0)), typed(call, input_[0]), typed(call, input_[1])}, widths);
  }

 private:
  LoopInput input_[2];
  int number_ = -1;
};

// ---- arithmetic ----

template <class Op, class T, int V>
__device__ __forceinline__ void each(const T (&x)[2][V], T (&y)[V]) {
#pragma unroll
  for (int i = 0; i < V; i++) y[i] = Op()(x[0][i], x[1][i]);
}

template <class T>
struct Cheap : Function<T, T> {
  static constexpr int kInputs = 2;
  Primitive op;  // or what a power is computed as, of x alone
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[2][V], T (&y)[V]) const {
    switch (op) {
#define PG_ROW(number, Op, form, parameters, types, result, cost, ...)                                          \
  case p##Op:                                                                                                   \
    if constexpr (form == kBinary && result == kSame && cost == kCheap && (pg::math::types & types_of<T>) != 0) \
      return each<pg::math::Op>(x, y);                                                                          \
    break;
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
    }
    if constexpr (is_float<T>) {
      if (op == pSqrt || op == pRsqrt) {
#pragma unroll
        for (int i = 0; i < V; i++) y[i] = op == pSqrt ? Sqrt()(x[0][i], x[0]) : Rsqrt()(x[0][i], x[0]);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = Square()(x[0][i], x[0]);
  }
};

template <class T>
struct Costly : Function<T, T> {
  static constexpr int kInputs = 2;
  static constexpr uint32_t kWidths = 0;
  static constexpr bool kRenewed = false;
  Primitive op;
  FaultSite fault;  // integers divide by no zero and have no negative powers
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&x)[2][V], T (&y)[V]) const {
    if constexpr (!is_float<T>) {
      if (op == pPow ? x[1][0] < 0 : x[1][0] == 0) note_fault(fault, x[1][0], at);
    }
    // The last of them without a question: with one for each, ptxas spills a register of int32's.
    switch (op) {
#define PG_ROW(number, Op, form, parameters, types, result, cost, ...)                                              \
  case p##Op:                                                                                                       \
    if constexpr (form == kBinary && cost == kCostly && (pg::math::types & types_of<T>) != 0 && p##Op != pFloorDiv) \
      return each<pg::math::Op>(x, y);                                                                              \
    break;
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
    }
    each<FloorDiv>(x, y);
  }
};

class Arithmetic final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) { check_primitive(call, scalar); }

  Arithmetic(const pg::KernelCall& call, const ScalarCall& scalar)
      : op_(scalar.program.step[0].primitive),
        dtype_(scalar.program.step[0].of_truth ? PG_B8 : scalar.dtype),
        whole_(pg::dtype_class(dtype_) != PG_M_FLOAT),
        pair_(call, scalar),
        loop_(pair_.loop(call, info(op_).cost == kCheap ? widths_for(dtype_) : 0)) {
    if (op_ == pPow && pair_.number() == 1) power_ = pair_.loop(call, widths_for(dtype_));
  }

  bool renews() const override { return info(op_).cost == kCheap; }  // the others note faults
  void run(const Launch& launch) override {
    const pg_number value = pair_.value(launch);
    void* const data[3] = {launch.out(0), pair_.address(launch, 0), pair_.address(launch, 1)};
    if (op_ == pPow && pair_.number() == 1) {
      if (whole_ && value.real < 0) pg::fail_argument("integers cannot be raised to a negative integer power");
      Primitive other = value.real == 2      ? pSquare
                        : whole_             ? pPow
                        : value.real == 0.5  ? pSqrt
                        : value.real == -0.5 ? pRsqrt
                                             : pPow;
      if (other != pPow) return cheap(launch, power_, data, other, {});
    }
    if (info(op_).cost == kCheap) return cheap(launch, loop_, data, op_, value);
    with_compute(dtype_, [&](auto tag) {
      Costly<typename decltype(tag)::type> f;
      f.op = op_;
      f.number[0] = f.number[1] = number_as<typename decltype(tag)::type>(value);
      if (whole_ && loop_.count() > 0) {
        FaultKind kind = op_ == pPow ? FaultKind::kNegativePower : FaultKind::kDivisionByZero;
        f.fault = launch.fault_site(kind, 0, *launch.raw.outputs[0]);
      }
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  void cheap(const Launch& launch, const Loop<3>& loop, void* const (&data)[3], Primitive op,
             const pg_number& value) const {
    with_compute(dtype_, [&](auto tag) {
      Cheap<typename decltype(tag)::type> f;
      f.op = op;
      f.number[0] = f.number[1] = number_as<typename decltype(tag)::type>(value);
      elementwise::run(launch.native(), loop, data, f);
    });
  }

  Primitive op_;
  uint32_t dtype_;
  bool whole_;
  Pair pair_;
  Loop<3> loop_, power_;
};

// ---- comparisons ----

template <class T>
struct Compare : Function<T, Truth> {
  static constexpr int kInputs = 2;
  Primitive op;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[2][V], Truth (&y)[V]) const {
    switch (op) {
#define PG_ROW(number, Op, form, parameters, types, result, ...)                             \
  case p##Op:                                                                                \
    if constexpr (form == kBinary && result == kTruth) {                                     \
      _Pragma("unroll") for (int i = 0; i < V; i++) y[i] = pg::math::Op()(x[0][i], x[1][i]); \
    }                                                                                        \
    break;
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
    }
  }
};

class Comparison final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) { check_primitive(call, scalar); }

  Comparison(const pg::KernelCall& call, const ScalarCall& scalar)
      : op_(scalar.program.step[0].primitive),
        dtype_(scalar.program.step[0].of_truth ? PG_B8 : scalar.dtype),
        pair_(call, scalar),
        loop_(pair_.loop(call, widths_for(dtype_))) {}

  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    const pg_number value = pair_.value(launch);
    void* const data[3] = {launch.out(0), pair_.address(launch, 0), pair_.address(launch, 1)};
    with_compute(dtype_, [&](auto tag) {
      Compare<typename decltype(tag)::type> f;
      f.op = op_;
      f.number[0] = f.number[1] = number_as<typename decltype(tag)::type>(value);
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  Primitive op_;
  uint32_t dtype_;
  Pair pair_;
  Loop<3> loop_;
};

}  // namespace

const Form kArithmeticForm = form_of<Arithmetic>();
const Form kComparisonForm = form_of<Comparison>();

}  // namespace cuda::elementwise
