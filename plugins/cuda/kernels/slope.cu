// SPDX-License-Identifier: Apache-2.0
// Cotangents through activations: d times the slope at x. Each has a kernel for float32 and 16-bit tensors in packets;
// float64, and what does not come in packets, takes one kernel for all.
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

#define PG_ROW(name, Op) k##Op,
enum SlopeOp : int32_t { PG_MATH_SLOPE(PG_ROW) PG_MATH_GELU_SLOPE(PG_ROW) };
#undef PG_ROW

SlopeOp find_slope(const pg::KernelCall& call) {
  if (call.is("gelu_grad")) return call.attr<int>("approximate") != 0 ? kGeluTanhGrad : kGeluGrad;
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_MATH_SLOPE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

template <class Op>
struct OneSlope : Function<float, float> {
  static constexpr int kInputs = 2;
  float p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const float (&x)[2][V], float (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = Op()(x[0][i], x[1][i], p);
  }
};

template <class T>
struct EverySlope : Function<T, T> {
  static constexpr int kInputs = 2;
  static constexpr uint32_t kWidths = 0;
  SlopeOp op;
  T p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[2][V], T (&y)[V]) const {
    y[0] = T(0);
    switch (op) {
#define PG_ROW(name, Op) \
  case k##Op: y[0] = pg::math::Op()(x[0][0], x[1][0], p); break;
      PG_MATH_SLOPE(PG_ROW)
      PG_MATH_GELU_SLOPE(PG_ROW)
#undef PG_ROW
    }
  }
};

class Slope final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    uint32_t dtype = pg::dtype_of(call.out(0));
    if (pg::dtype_of(call.in(0)) != dtype || pg::dtype_of(call.in(1)) != dtype)
      pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
  }
  Slope(const pg::KernelCall& call, pg::Plan&)
      : op_(find_slope(call)),
        wide_(pg::dtype_of(call.out(0)) == PG_F64),
        parameters_(call, pg::dtype_of(call.out(0))),
        loop_({typed(call.out(0)), typed(call.in(0)), typed(call.in(1))}, wide_ ? 0 : 4) {}

  void run(const Launch& launch) override {
    if (wide_) return every<double>(launch);
    if (loop_.width() == 1) return every<float>(launch);
    switch (op_) {
#define PG_ROW(name, Op) \
  case k##Op: return one<pg::math::Op>(launch);
      PG_MATH_SLOPE(PG_ROW)
      PG_MATH_GELU_SLOPE(PG_ROW)
#undef PG_ROW
    }
  }

 private:
  template <class T>
  void every(const Launch& launch) const {
    EverySlope<T> f;
    f.op = op_;
    put_parameters(parameters_, launch, f.p);
    void* const data[3] = {launch.out(0), const_cast<void*>(launch.in(0)), const_cast<void*>(launch.in(1))};
    elementwise::run(launch.native(), loop_, data, f);
  }
  template <class Op>
  void one(const Launch& launch) const {
    OneSlope<Op> f;
    put_parameters(parameters_, launch, f.p);
    void* const data[3] = {launch.out(0), const_cast<void*>(launch.in(0)), const_cast<void*>(launch.in(1))};
    run_packets<4>(launch.native(), loop_, data, f);
  }

  SlopeOp op_;
  bool wide_;
  pg::math::Parameters parameters_;
  Loop<3> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Slope);
PG_MATH_SLOPE(PG_ROW)
#undef PG_ROW
PG_KERNEL("gelu_grad", Slope);

}  // namespace
}  // namespace cuda::elementwise
