// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, trigonometry, and the activations made of them. Dense float32 and 16-bit tensors have a
// kernel an operator; float64, and what does not come in packets, one kernel for all.
#include "../elementwise.cuh"
#include "../kernel.hpp"
#include "perigee/kernels/math.hpp"

namespace cuda::elementwise {
namespace {

// clang-format off
#define PG_ELEMENTARY(X) \
  X(exp, Exp) X(expm1, Expm1) X(log, Log) X(log1p, Log1p) X(log2, Log2) X(log10, Log10) X(sin, Sin) X(cos, Cos) \
  X(tan, Tan) X(sinh, Sinh) X(cosh, Cosh) X(tanh, Tanh) X(asin, Asin) X(acos, Acos) X(atan, Atan) X(erf, Erf) \
  X(erfc, Erfc) X(sigmoid, Sigmoid) X(silu, Silu) X(gelu, Gelu) X(gelu_tanh, GeluTanh) X(softplus, Softplus) \
  X(elu, Elu)
// clang-format on
#define PG_ROW(name, Op) k##Op,
enum Op : int32_t { PG_ELEMENTARY(PG_ROW) };
#undef PG_ROW

Op find_op(const pg::KernelCall& call) {
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
  Op op;
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

class Elementary final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.out(0)) != pg::dtype_of(call.in(0))) {
      pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
    }
  }

  Elementary(const pg::KernelCall& call, pg::Plan&)
      : op_(find_op(call)),
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

  Op op_;
  bool wide_;
  pg::Runtime<double> parameter_;
  Loop<2> loop_;
};

#define PG_ROW(name, Op) \
  [[maybe_unused]] static const int registered_##name = k##Op == kGeluTanh ? 0 : pg::add_kernel<Elementary>(#name);
PG_ELEMENTARY(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cuda::elementwise
