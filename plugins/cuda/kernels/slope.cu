// SPDX-License-Identifier: Apache-2.0
// Cotangents through activations: d times the slope at x. Each has a kernel for float32 and 16-bit tensors in packets;
// float64, and what does not come in packets, takes one kernel for all.
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

template <class Op, int kParameters>
struct OneSlope : Function<float, float> {
  static constexpr bool kRenewed = kParameters > 0;
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
  Primitive op;
  T p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[2][V], T (&y)[V]) const {
    y[0] = T(0);
    switch (op) {
#define PG_ROW(number, Op, form, ...)                                                             \
  case pg::math::p##Op:                                                                           \
    if constexpr (pg::math::form == pg::math::kSlope) y[0] = pg::math::Op()(x[0][0], x[1][0], p); \
    break;
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
    }
  }
};

class Slope final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) { check_primitive(call, scalar); }
  Slope(const pg::KernelCall& call, const ScalarCall& scalar)
      : op_(scalar.program.step[0].primitive),
        x_(call, scalar.program.step[0].operand[0]),
        d_(call, scalar.program.step[0].operand[1]),
        wide_(scalar.dtype == PG_F64),
        parameters_(call, scalar.program.step[0], scalar.dtype),
        loop_({typed(call.out(0)), typed(call, x_), typed(call, d_)}, wide_ ? 0 : 4) {}

  bool renews() const override { return pg::math::info(op_).parameters > 0; }
  void run(const Launch& launch) override {
    if (wide_) return every<double>(launch);
    if (loop_.width() == 1) return every<float>(launch);
    switch (op_) {
#define PG_ROW(number, Op, form, parameters, ...)                                                   \
  case pg::math::p##Op:                                                                             \
    if constexpr (pg::math::form == pg::math::kSlope) return one<pg::math::Op, parameters>(launch); \
    break;
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
    }
  }

 private:
  template <class T>
  void every(const Launch& launch) const {
    EverySlope<T> f;
    f.op = op_;
    put_parameters(parameters_, launch, f.p);
    void* const data[3] = {launch.out(0), x_.address(launch), d_.address(launch)};
    elementwise::run(launch.native(), loop_, data, f);
  }
  template <class Op, int kParameters>
  void one(const Launch& launch) const {
    OneSlope<Op, kParameters> f;
    put_parameters(parameters_, launch, f.p);
    void* const data[3] = {launch.out(0), x_.address(launch), d_.address(launch)};
    run_packets<4>(launch.native(), loop_, data, f);
  }

  Primitive op_;
  LoopInput x_, d_;
  bool wide_;
  pg::math::Parameters parameters_;
  Loop<3> loop_;
};

}  // namespace

const Form kSlopeForm = form_of<Slope>();

}  // namespace cuda::elementwise
