// SPDX-License-Identifier: Apache-2.0
// One-operand functions and predicates. What costs little shares a kernel per compute type, and so do the predicates.
// Of exponentials, logarithms, trigonometry and the activations made of them each has a kernel for dense float32 and
// 16-bit tensors; float64, and what does not come in packets, takes one kernel for all of these.
#include "../elementwise.cuh"
#include "../kernel.hpp"
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

using namespace pg::math;

// clang-format off
#define PG_CASE(Op, among)                                                               \
  case p##Op:                                                                            \
    if constexpr (among) {                                                               \
      _Pragma("unroll") for (int i = 0; i < V; i++) y[i] = pg::math::Op()(x[0][i], p);   \
      return;                                                                            \
    }                                                                                    \
    break;
// clang-format on

template <class T>
struct Simple : Function<T, T> {
  Primitive op;
  T p[kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    switch (op) {
#define PG_ROW(number, Op, form, parameters, types, result, cost, ...) \
  PG_CASE(Op, form == kUnary && result == kSame && cost == kCheap && (pg::math::types & types_of<T>) != 0)
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
      default: break;
    }
  }
};

template <class T>
struct Predicate : Function<T, Truth> {
  static constexpr bool kRenewed = false;
  Primitive op;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], Truth (&y)[V]) const {
    const T* p = nullptr;
    switch (op) {
#define PG_ROW(number, Op, form, parameters, types, result, ...) PG_CASE(Op, form == kUnary && result == kTruth)
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
      default: break;
    }
  }
};
#undef PG_CASE

class Unary final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) { check_primitive(call, scalar); }

  Unary(const pg::KernelCall& call, const ScalarCall& scalar)
      : op_(scalar.program.step[0].primitive),
        input_(call, scalar.program.step[0].operand[0]),
        dtype_(pg::dtype_of(input_.tensor(call))),
        parameters_(call, scalar.program.step[0], dtype_),
        loop_({typed(call.out(0)), typed(call, input_)}, widths_for(dtype_)) {}

  bool renews() const override { return info(op_).parameters > 0; }
  void run(const Launch& launch) override {
    void* const data[2] = {launch.out(0), input_.address(launch)};
    with_compute(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (info(op_).result == kTruth) {
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
  Primitive op_;
  LoopInput input_;
  uint32_t dtype_;
  pg::math::Parameters parameters_;
  Loop<2> loop_;
};

// ---- elementary functions ----

// One operator, in packets of four: more are no faster, as the arithmetic of these has to be done too.
template <class Op, int kParameters>
struct One : Function<float, float> {
  static constexpr bool kRenewed = kParameters > 0;
  float p[kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const float (&x)[1][V], float (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = Op()(x[0][i], p);
  }
};

template <class T>
struct Every : Function<T, T> {
  static constexpr uint32_t kWidths = 0;
  Primitive op;
  T p[kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    switch (op) {
#define PG_ROW(number, Op, form, parameters, types, result, cost, ...)                  \
  case p##Op:                                                                           \
    if constexpr (form == kUnary && cost == kCostly) y[0] = pg::math::Op()(x[0][0], p); \
    break;
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
    }
  }
};

class ElementaryKernel final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) { check_primitive(call, scalar); }

  ElementaryKernel(const pg::KernelCall& call, const ScalarCall& scalar)
      : op_(scalar.program.step[0].primitive),
        input_(call, scalar.program.step[0].operand[0]),
        wide_(scalar.dtype == PG_F64),
        parameters_(call, scalar.program.step[0], scalar.dtype),
        loop_({typed(call.out(0)), typed(call, input_)}, wide_ ? 0 : 4) {}

  bool renews() const override { return info(op_).parameters > 0; }
  void run(const Launch& launch) override {
    void* const data[2] = {launch.out(0), input_.address(launch)};
    if (wide_) return every<double>(launch, data);
    if (loop_.width() == 1) return every<float>(launch, data);
    switch (op_) {
#define PG_ROW(number, Op, form, parameters, types, result, cost, ...)                                   \
  case p##Op:                                                                                            \
    if constexpr (form == kUnary && cost == kCostly) return one<pg::math::Op, parameters>(launch, data); \
    break;
      PG_PRIMITIVES(PG_ROW)
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
  template <class Op, int kParameters>
  void one(const Launch& launch, void* const (&data)[2]) const {
    One<Op, kParameters> f;
    put_parameters(parameters_, launch, f.p);
    run_packets<4>(launch.native(), loop_, data, f);
  }

  Primitive op_;
  LoopInput input_;
  bool wide_;
  pg::math::Parameters parameters_;
  Loop<2> loop_;
};

}  // namespace

const Form kUnaryForm = form_of<Unary>();
const Form kElementaryForm = form_of<ElementaryKernel>();

}  // namespace cuda::elementwise
