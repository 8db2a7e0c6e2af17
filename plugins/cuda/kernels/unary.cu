// SPDX-License-Identifier: Apache-2.0
// One-operand functions that cost little, and predicates: a kernel per compute type for all of each. What costs more is
// in elementary.cu.
#include "../elementwise.cuh"
#include "../kernel.hpp"
#include "perigee/kernels/math.hpp"

namespace cuda::elementwise {
namespace {

#define PG_ANY(X) PG_MATH_UNARY(X)
#define PG_FLOATING(X)      \
  X(reciprocal, Reciprocal) \
  X(sqrt, Sqrt) X(rsqrt, Rsqrt) X(floor, Floor) X(ceil, Ceil) X(round, Round) X(trunc, Trunc) X(leaky_relu, LeakyRelu)
#define PG_ROW(name, Op) k##Op,
enum Op : int32_t { PG_ANY(PG_ROW) PG_FLOATING(PG_ROW) PG_MATH_PREDICATE(PG_ROW) };
#undef PG_ROW

Op find_op(const pg::KernelCall& call) {
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_ANY(PG_ROW)
  PG_FLOATING(PG_ROW)
  PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}
bool rounds(Op op) { return op == kFloor || op == kCeil || op == kRound || op == kTrunc; }

// clang-format off
#define PG_ROW(name, Op)                                                                       \
  case k##Op: {                                                                                \
    _Pragma("unroll") for (int i = 0; i < V; i++) y[i] = pg::math::Op()(x[0][i], p);           \
    return;                                                                                    \
  }
// clang-format on

template <class T>
struct Simple : Function<T, T> {
  Op op;
  T p[2];  // the operator's parameters
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    switch (op) {
      PG_ANY(PG_ROW)
      default: break;
    }
    if constexpr (std::is_floating_point_v<T>) {
      switch (op) {
        PG_FLOATING(PG_ROW)
        default: break;
      }
    }
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = x[0][i];  // integers are rounded already
  }
};

template <class T>
struct Predicate : Function<T, Truth> {
  Op op;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], Truth (&y)[V]) const {
    const T* p = nullptr;
    switch (op) {
      PG_MATH_PREDICATE(PG_ROW)
      default: break;
    }
  }
};
#undef PG_ROW

// Infinite bounds become the ends of an integer type.
template <class T>
T bound(double value) {
  if constexpr (std::is_same_v<T, int32_t>) {
    int64_t whole = truncate(value);
    return static_cast<T>(whole < INT32_MIN ? INT32_MIN : whole > INT32_MAX ? INT32_MAX : whole);
  } else {
    return narrow<T>(value);
  }
}

class Unary final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    Op op = find_op(call);
    uint32_t from = pg::dtype_of(call.in(0)), kind = pg::dtype_class(from);
    bool refused = pg::dtype_of(call.out(0)) != (op >= kIsNan ? PG_B8 : from) ||
                   (kind == PG_M_BOOL && op < kIsNan && op != kAbs && op != kSquare && !rounds(op)) ||
                   (kind != PG_M_FLOAT && op >= kReciprocal && op < kIsNan && !rounds(op));
    if (refused) pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
  }

  Unary(const pg::KernelCall& call, pg::Plan&)
      : op_(find_op(call)),
        dtype_(pg::dtype_of(call.in(0))),
        loop_({typed(call.out(0)), typed(call.in(0))}, widths_for(dtype_)) {
    if (op_ == kClamp) parameter_[0] = call.runtime<double>("min"), parameter_[1] = call.runtime<double>("max");
    if (op_ == kLeakyRelu) parameter_[0] = call.runtime<double>("negative_slope");
  }

  void run(const Launch& launch) override {
    void* const data[2] = {launch.out(0), const_cast<void*>(launch.in(0))};
    with_compute(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (op_ >= kIsNan) {
        Predicate<T> f;
        f.op = op_;
        return elementwise::run(launch.native(), loop_, data, f);
      }
      Simple<T> f;
      f.op = op_;
      for (int i = 0; i < 2; i++) f.p[i] = parameter_[i].kind != 0 ? bound<T>(parameter_[i](launch.raw)) : T(0);
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  Op op_;
  uint32_t dtype_;
  pg::Runtime<double> parameter_[2];
  Loop<2> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Unary);
PG_ANY(PG_ROW)
PG_FLOATING(PG_ROW)
PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cuda::elementwise
