// SPDX-License-Identifier: Apache-2.0
// Two-operand arithmetic and comparisons; either operand may be a number. Cheap operators share a kernel that reads and
// writes whole packets; the others are bound by their arithmetic and take an element a thread.
#include "../elementwise.cuh"
#include "../kernel.hpp"
#include "perigee/kernels/math.hpp"

namespace cuda::elementwise {
namespace {

[[noreturn]] void refuse(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
}

// Whichever is a tensor.
const pg_tensor& operand(const pg::KernelCall& call) { return call.has(0) ? call.in(0) : call.in(1); }

// The position of the number that stands in for an operand; -1: there is none.
int number_of_call(const pg::KernelCall& call) { return !call.has(0) ? 0 : !call.has(1) ? 1 : -1; }

void check_binary(const pg::KernelCall& call) {
  check_dtypes(call, kAny);
  if (!call.has(0) && !call.has(1)) refuse(call);
  if (call.has(0) && call.has(1) && pg::dtype_of(call.in(0)) != pg::dtype_of(call.in(1))) refuse(call);
}

Loop<3> binary_loop(const pg::KernelCall& call, uint32_t widths) {
  return Loop<3>(
      {typed(call.out(0)), call.has(0) ? typed(call.in(0)) : number(), call.has(1) ? typed(call.in(1)) : number()},
      widths);
}

// ---- arithmetic ----

// Behind the operators: what powers are computed as, of x alone.
enum BinaryOp : int32_t {
  kAdd,
  kSub,
  kMul,
  kMaximum,
  kMinimum,
  kFmax,
  kFmin,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kLeftShift,
  kRightShift,
  kDiv,
  kCopysign,
  kPowerSquare,
  kPowerSqrt,
  kPowerRsqrt,
  kPow,
  kRemainder,
  kFloorDiv,
  kFmod,
  kAtan2,
  kHypot,
  kLogAddExp,
  kLogAddExp2,
  kXlogy
};

BinaryOp find_binary(const pg::KernelCall& call) {
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_MATH_BINARY(PG_ROW)
  PG_MATH_BINARY_FLOAT(PG_ROW)
  PG_MATH_BINARY_INT(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}
bool of_integers(BinaryOp op) { return op >= kBitwiseAnd && op <= kRightShift; }
bool of_floats(BinaryOp op) { return op == kDiv || op == kCopysign || op >= kAtan2; }
bool of_booleans(BinaryOp op) { return op == kAdd || op == kMul || (op >= kMaximum && op <= kBitwiseXor); }

template <class Op, class T, int V>
__device__ __forceinline__ void each(const T (&x)[2][V], T (&y)[V]) {
#pragma unroll
  for (int i = 0; i < V; i++) y[i] = Op()(x[0][i], x[1][i]);
}

template <class T>
struct Cheap : Function<T, T> {
  static constexpr int kInputs = 2;
  BinaryOp op;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[2][V], T (&y)[V]) const {
    using namespace pg::math;
    switch (op) {
      case kAdd: return each<Add>(x, y);
      case kSub: return each<Sub>(x, y);
      case kMul: return each<Mul>(x, y);
      case kMaximum: return each<Maximum>(x, y);
      case kMinimum: return each<Minimum>(x, y);
      case kFmax: return each<Fmax>(x, y);
      case kFmin: return each<Fmin>(x, y);
      default: break;
    }
    if constexpr (!is_float<T>) {
      switch (op) {
        case kBitwiseAnd: return each<BitwiseAnd>(x, y);
        case kBitwiseOr: return each<BitwiseOr>(x, y);
        case kBitwiseXor: return each<BitwiseXor>(x, y);
        case kLeftShift: return each<LeftShift>(x, y);
        case kRightShift: return each<RightShift>(x, y);
        default: break;
      }
    } else {
      if (op == kDiv) return each<Div>(x, y);
      if (op == kCopysign) return each<Copysign>(x, y);
      if (op == kPowerSqrt || op == kPowerRsqrt) {
#pragma unroll
        for (int i = 0; i < V; i++) y[i] = op == kPowerSqrt ? Sqrt()(x[0][i], x[0]) : Rsqrt()(x[0][i], x[0]);
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
  BinaryOp op;
  FaultSite fault;  // integers divide by no zero and have no negative powers
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&x)[2][V], T (&y)[V]) const {
    using namespace pg::math;
    if constexpr (!is_float<T>) {
      if (op == kPow ? x[1][0] < 0 : x[1][0] == 0) note_fault(fault, x[1][0], at);
    } else {
      switch (op) {
        case kAtan2: return each<Atan2>(x, y);
        case kHypot: return each<Hypot>(x, y);
        case kLogAddExp: return each<LogAddExp>(x, y);
        case kLogAddExp2: return each<LogAddExp2>(x, y);
        case kXlogy: return each<Xlogy>(x, y);
        default: break;
      }
    }
    if (op == kPow) return each<Pow>(x, y);
    if (op == kRemainder) return each<Remainder>(x, y);
    if (op == kFmod) return each<Fmod>(x, y);
    each<FloorDiv>(x, y);
  }
};

class Arithmetic final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_binary(call);
    uint32_t dtype = pg::dtype_of(operand(call));
    BinaryOp op = find_binary(call);
    bool same = pg::dtype_of(call.out(0)) == dtype;
    bool floating = pg::dtype_class(dtype) == PG_M_FLOAT;
    if (!same || (of_floats(op) && !floating) || (of_integers(op) && floating)) refuse(call);
    if (dtype == PG_B8 && !of_booleans(op)) refuse(call);
  }

  Arithmetic(const pg::KernelCall& call, pg::Plan&)
      : op_(find_binary(call)),
        dtype_(pg::dtype_of(operand(call))),
        whole_(pg::dtype_class(dtype_) != PG_M_FLOAT),
        number_(number_of_call(call)),
        value_(call.scalar_value()),
        loop_(binary_loop(call, op_ < kPowerSquare ? widths_for(dtype_) : 0)) {
    if (op_ == kPow && number_ == 1) {
      power_ = binary_loop(call, widths_for(dtype_));
    }
  }

  void run(const Launch& launch) override {
    pg_number value = number_ >= 0 ? value_(launch.raw) : pg_number{};
    void* const data[3] = {launch.out(0), const_cast<void*>(launch.in(0)), const_cast<void*>(launch.in(1))};
    if (op_ == kPow && number_ == 1) {
      if (whole_ && value.real < 0) pg::fail_argument("integers cannot be raised to a negative integer power");
      BinaryOp other = value.real == 2      ? kPowerSquare
                       : whole_             ? kPow
                       : value.real == 0.5  ? kPowerSqrt
                       : value.real == -0.5 ? kPowerRsqrt
                                            : kPow;
      if (other != kPow) return cheap(launch, power_, data, other, {});
    }
    if (op_ < kPowerSquare) return cheap(launch, loop_, data, op_, value);
    with_compute(dtype_, [&](auto tag) {
      Costly<typename decltype(tag)::type> f;
      f.op = op_;
      f.number[0] = f.number[1] = number_as<typename decltype(tag)::type>(value);
      if (whole_ && loop_.count() > 0) {
        FaultKind kind = op_ == kPow ? FaultKind::kNegativePower : FaultKind::kDivisionByZero;
        f.fault = launch.fault_site(kind, 0, *launch.raw.outputs[0]);
      }
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  void cheap(const Launch& launch, const Loop<3>& loop, void* const (&data)[3], BinaryOp op,
             const pg_number& value) const {
    with_compute(dtype_, [&](auto tag) {
      Cheap<typename decltype(tag)::type> f;
      f.op = op;
      f.number[0] = f.number[1] = number_as<typename decltype(tag)::type>(value);
      elementwise::run(launch.native(), loop, data, f);
    });
  }

  BinaryOp op_;
  uint32_t dtype_;
  bool whole_;
  int number_;  // which operand is a number; -1: none
  pg::Runtime<pg_number> value_;
  Loop<3> loop_, power_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Arithmetic);
PG_MATH_BINARY(PG_ROW)
PG_MATH_BINARY_FLOAT(PG_ROW)
PG_MATH_BINARY_INT(PG_ROW)
#undef PG_ROW

// ---- comparisons ----

#define PG_ROW(name, Op) k##Op,
enum Relation : int32_t { PG_MATH_COMPARE(PG_ROW) };
#undef PG_ROW

Relation find_relation(const pg::KernelCall& call) {
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

template <class T>
struct Compare : Function<T, Truth> {
  static constexpr int kInputs = 2;
  Relation op;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[2][V], Truth (&y)[V]) const {
    switch (op) {
#define PG_ROW(name, Op)                                                                   \
  case k##Op: {                                                                            \
    _Pragma("unroll") for (int i = 0; i < V; i++) y[i] = pg::math::Op()(x[0][i], x[1][i]); \
    break;                                                                                 \
  }
      PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW
    }
  }
};

class Comparison final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_binary(call);
    if (pg::dtype_of(call.out(0)) != PG_B8) refuse(call);
  }

  Comparison(const pg::KernelCall& call, pg::Plan&)
      : op_(find_relation(call)),
        dtype_(pg::dtype_of(operand(call))),
        number_(number_of_call(call)),
        value_(call.scalar_value()),
        loop_(binary_loop(call, widths_for(dtype_))) {}

  void run(const Launch& launch) override {
    pg_number value = number_ >= 0 ? value_(launch.raw) : pg_number{};
    void* const data[3] = {launch.out(0), const_cast<void*>(launch.in(0)), const_cast<void*>(launch.in(1))};
    with_compute(dtype_, [&](auto tag) {
      Compare<typename decltype(tag)::type> f;
      f.op = op_;
      f.number[0] = f.number[1] = number_as<typename decltype(tag)::type>(value);
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  Relation op_;
  uint32_t dtype_;
  int number_;
  pg::Runtime<pg_number> value_;
  Loop<3> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Comparison);
PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cuda::elementwise
