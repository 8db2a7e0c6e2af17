// SPDX-License-Identifier: Apache-2.0
// One-operand functions and predicates. What costs little shares a kernel per compute type, and so do the predicates.
// Of exponentials, logarithms, trigonometry and the activations made of them each has a kernel for dense float32 and
// 16-bit tensors; float64, and what does not come in packets, takes one kernel for all of these.
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

// ---- elementary functions ----

// clang-format off
#define PG_ELEMENTARY(X) \
  X(exp, Exp) X(expm1, Expm1) X(log, Log) X(log1p, Log1p) X(log2, Log2) X(log10, Log10) X(sin, Sin) X(cos, Cos) \
  X(tan, Tan) X(sinh, Sinh) X(cosh, Cosh) X(tanh, Tanh) X(asin, Asin) X(acos, Acos) X(atan, Atan) X(erf, Erf) \
  X(erfc, Erfc) X(sigmoid, Sigmoid) X(silu, Silu) X(gelu, Gelu) X(gelu_tanh, GeluTanh) X(softplus, Softplus) \
  X(elu, Elu)
// clang-format on
#define PG_ROW(name, Op) k##Op,
enum Elementary : int32_t { PG_ELEMENTARY(PG_ROW) };
#undef PG_ROW

Elementary find_elementary(const pg::KernelCall& call) {
  if (call.is("gelu")) return call.attr<int>("approximate") != 0 ? kGeluTanh : kGelu;
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_ELEMENTARY(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

// One operator, in packets of four: more are no faster, as the arithmetic of these has to be done too.
template <class Op>
struct One : Function<float, float> {
  float p;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const float (&x)[1][V], float (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = Op()(x[0][i], &p);
  }
};

template <class T>
struct Every : Function<T, T> {
  static constexpr uint32_t kWidths = 0;
  Elementary op;
  T p;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    switch (op) {
#define PG_ROW(name, Op) \
  case k##Op: y[0] = pg::math::Op()(x[0][0], &p); break;
      PG_ELEMENTARY(PG_ROW)
#undef PG_ROW
    }
  }
};

class ElementaryKernel final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.out(0)) != pg::dtype_of(call.in(0))) {
      pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
    }
  }

  ElementaryKernel(const pg::KernelCall& call, pg::Plan&)
      : op_(find_elementary(call)),
        wide_(pg::dtype_of(call.in(0)) == PG_F64),
        loop_({typed(call.out(0)), typed(call.in(0))}, wide_ ? 0 : 4) {
    if (op_ == kElu) parameter_ = call.runtime<double>("alpha");
  }

  void run(const Launch& launch) override {
    double p = op_ == kElu ? parameter_(launch.raw) : 0;
    void* const data[2] = {launch.out(0), const_cast<void*>(launch.in(0))};
    if (wide_) return every<double>(launch, data, p);
    if (loop_.width() == 1) return every<float>(launch, data, p);
    switch (op_) {
#define PG_ROW(name, Op) \
  case k##Op: return one<pg::math::Op>(launch, data, p);
      PG_ELEMENTARY(PG_ROW)
#undef PG_ROW
    }
  }

 private:
  template <class T>
  void every(const Launch& launch, void* const (&data)[2], double p) const {
    Every<T> f;
    f.op = op_;
    f.p = static_cast<T>(p);
    elementwise::run(launch.native(), loop_, data, f);
  }
  template <class Op>
  void one(const Launch& launch, void* const (&data)[2], double p) const {
    One<Op> f;
    f.p = static_cast<float>(p);
    run_packets<4>(launch.native(), loop_, data, f);
  }

  Elementary op_;
  bool wide_;
  pg::Runtime<double> parameter_;
  Loop<2> loop_;
};

#define PG_ROW(name, Op)                                \
  [[maybe_unused]] static const int registered_##name = \
      k##Op == kGeluTanh ? 0 : pg::add_kernel<ElementaryKernel>(#name);
PG_ELEMENTARY(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cuda::elementwise
