// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic of two operands; either may be a number. All share a kernel per compute type.
#include "binary.cuh"
#include "perigee/kernels/math.hpp"

namespace cuda::elementwise {
namespace {

#define PG_ROW(name, Op) k##Op,
enum Op : int32_t { PG_MATH_COMPARE(PG_ROW) };
#undef PG_ROW

Op find_op(const pg::KernelCall& call) {
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

template <class T>
struct Compare : Function<T, Truth> {
  static constexpr int kInputs = 2;
  Op op;
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
      : op_(find_op(call)),
        dtype_(pg::dtype_of(operand(call))),
        number_(number_of_call(call)),
        value_(call.scalar_value()),
        loop_(binary_loop(call, widths_for(dtype_))) {}

  void run(const Launch& launch) override {
    double value = number_ >= 0 ? value_(launch.raw) : 0;
    void* const data[3] = {launch.out(0), const_cast<void*>(launch.in(0)), const_cast<void*>(launch.in(1))};
    with_compute(dtype_, [&](auto tag) {
      Compare<typename decltype(tag)::type> f;
      f.op = op_;
      f.number[0] = f.number[1] = narrow<typename decltype(tag)::type>(value);
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  Op op_;
  uint32_t dtype_;
  int number_;
  pg::Runtime<double> value_;
  Loop<3> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, Comparison);
PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cuda::elementwise
