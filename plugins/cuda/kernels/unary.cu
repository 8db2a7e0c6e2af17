// SPDX-License-Identifier: Apache-2.0
// One-operand functions and predicates. What costs little shares a kernel per compute type, and so do the predicates.
// Of exponentials, logarithms, trigonometry and the activations made of them each has a kernel for dense float32 and
// 16-bit tensors; float64, and what does not come in packets, takes one kernel for all of these.
#include "../elementwise.cuh"
#include "../kernel.hpp"
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

#define PG_ROW(name, Op) k##Op,
enum UnaryOp : int32_t {
  PG_MATH_UNARY(PG_ROW) PG_MATH_UNARY_CHEAP(PG_ROW) PG_MATH_ROUND(PG_ROW) kRoundTo,
  PG_MATH_UNARY_INT(PG_ROW) PG_MATH_PREDICATE(PG_ROW)
};
#undef PG_ROW

UnaryOp find_unary(const pg::KernelCall& call) {
  if (call.is("round") && call.attr<int>("decimals") != 0) return kRoundTo;
  if (call.is("bitwise_not") && pg::dtype_of(call.in(0)) == PG_B8) return kLogicalNot;
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_MATH_UNARY(PG_ROW)
  PG_MATH_UNARY_CHEAP(PG_ROW)
  PG_MATH_ROUND(PG_ROW)
  PG_MATH_UNARY_INT(PG_ROW)
  PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}
bool rounds(UnaryOp op) { return op >= kFloor && op <= kTrunc; }
// Functions of all types that booleans have too.
bool takes_bool(UnaryOp op) {
  return op == kAbs || op == kSign || op == kSquare || op == kNanToNum || rounds(op) || op >= kIsNan;
}

// clang-format off
#define PG_ROW(name, Op)                                                                       \
  case k##Op: {                                                                                \
    _Pragma("unroll") for (int i = 0; i < V; i++) y[i] = pg::math::Op()(x[0][i], p);           \
    return;                                                                                    \
  }
// clang-format on

template <class T>
struct Simple : Function<T, T> {
  UnaryOp op;
  T p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    switch (op) {
      PG_MATH_UNARY(PG_ROW)
      default: break;
    }
    if constexpr (std::is_floating_point_v<T>) {
      switch (op) {
        PG_MATH_UNARY_CHEAP(PG_ROW)
        PG_MATH_ROUND(PG_ROW)
        PG_ROW(round_to, RoundTo)
        default: break;
      }
    } else {
      switch (op) {
        PG_MATH_UNARY_INT(PG_ROW)
        default: break;
      }
    }
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = x[0][i];  // integers are rounded already
  }
};

template <class T>
struct Predicate : Function<T, Truth> {
  UnaryOp op;
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

class Unary final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    UnaryOp op = find_unary(call);
    uint32_t from = pg::dtype_of(call.in(0)), kind = pg::dtype_class(from);
    bool refused = pg::dtype_of(call.out(0)) != (op >= kIsNan ? PG_B8 : from) ||
                   (kind == PG_M_BOOL && !takes_bool(op)) || (kind == PG_M_FLOAT && op == kBitwiseNot) ||
                   (kind != PG_M_FLOAT && op >= kReciprocal && op < kBitwiseNot && !rounds(op));
    if (refused) pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
  }

  Unary(const pg::KernelCall& call, pg::Plan&)
      : op_(find_unary(call)),
        dtype_(pg::dtype_of(call.in(0))),
        parameters_(call, dtype_),
        loop_({typed(call.out(0)), typed(call.in(0))}, widths_for(dtype_)) {}

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
      put_parameters(parameters_, launch, f.p);
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  UnaryOp op_;
  uint32_t dtype_;
  pg::math::Parameters parameters_;
  Loop<2> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Unary);
PG_MATH_UNARY(PG_ROW)
PG_MATH_UNARY_CHEAP(PG_ROW)
PG_MATH_ROUND(PG_ROW)
PG_MATH_UNARY_INT(PG_ROW)
PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW

// ---- elementary functions ----

#define PG_ROW(name, Op) k##Op,
enum Elementary : int32_t { PG_MATH_UNARY_COSTLY(PG_ROW) PG_MATH_GELU(PG_ROW) };
#undef PG_ROW

Elementary find_elementary(const pg::KernelCall& call) {
  if (call.is("gelu")) return call.attr<int>("approximate") != 0 ? kGeluTanh : kGelu;
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_MATH_UNARY_COSTLY(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

// One operator, in packets of four: more are no faster, as the arithmetic of these has to be done too.
template <class Op>
struct One : Function<float, float> {
  float p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const float (&x)[1][V], float (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = Op()(x[0][i], p);
  }
};

template <class T>
struct Every : Function<T, T> {
  static constexpr uint32_t kWidths = 0;
  Elementary op;
  T p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    switch (op) {
#define PG_ROW(name, Op) \
  case k##Op: y[0] = pg::math::Op()(x[0][0], p); break;
      PG_MATH_UNARY_COSTLY(PG_ROW)
      PG_MATH_GELU(PG_ROW)
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
        parameters_(call, pg::dtype_of(call.in(0))),
        loop_({typed(call.out(0)), typed(call.in(0))}, wide_ ? 0 : 4) {}

  void run(const Launch& launch) override {
    void* const data[2] = {launch.out(0), const_cast<void*>(launch.in(0))};
    if (wide_) return every<double>(launch, data);
    if (loop_.width() == 1) return every<float>(launch, data);
    switch (op_) {
#define PG_ROW(name, Op) \
  case k##Op: return one<pg::math::Op>(launch, data);
      PG_MATH_UNARY_COSTLY(PG_ROW)
      PG_MATH_GELU(PG_ROW)
#undef PG_ROW
    }
  }

 private:
  template <class T>
  void every(const Launch& launch, void* const (&data)[2]) const {
    Every<T> f;
    f.op = op_;
    put_parameters(parameters_, launch, f.p);
    elementwise::run(launch.native(), loop_, data, f);
  }
  template <class Op>
  void one(const Launch& launch, void* const (&data)[2]) const {
    One<Op> f;
    put_parameters(parameters_, launch, f.p);
    run_packets<4>(launch.native(), loop_, data, f);
  }

  Elementary op_;
  bool wide_;
  pg::math::Parameters parameters_;
  Loop<2> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, ElementaryKernel);
PG_MATH_UNARY_COSTLY(PG_ROW)
#undef PG_ROW
PG_KERNEL("gelu", ElementaryKernel);

}  // namespace
}  // namespace cuda::elementwise
