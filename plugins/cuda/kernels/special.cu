// SPDX-License-Identifier: Apache-2.0
// Special functions of one operand: an element a thread, as their arithmetic is what takes time.
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

#define PG_ROW(name, Op) k##Op,
enum SpecialOp : int32_t { PG_MATH_UNARY_SPECIAL(PG_ROW) };
#undef PG_ROW

SpecialOp find_special(const pg::KernelCall& call) {
#define PG_ROW(name, Op) \
  if (call.is(#name)) return k##Op;
  PG_MATH_UNARY_SPECIAL(PG_ROW)
#undef PG_ROW
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

// In double whatever the dtype: one body for all.
template <class T>
struct Special : Function<T, T> {
  static constexpr uint32_t kWidths = 0;
  SpecialOp op;
  double p;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    double value = x[0][0];
    y[0] = T(0);
    switch (op) {
#define PG_ROW(name, Op) \
  case k##Op: y[0] = static_cast<T>(pg::math::Op()(value, &p)); break;
      PG_MATH_UNARY_SPECIAL(PG_ROW)
#undef PG_ROW
    }
  }
};

class SpecialKernel final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.out(0)) != pg::dtype_of(call.in(0))) {
      pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
    }
  }
  SpecialKernel(const pg::KernelCall& call, pg::Plan&)
      : op_(find_special(call)),
        wide_(pg::dtype_of(call.in(0)) == PG_F64),
        parameters_(call, pg::dtype_of(call.in(0))),
        loop_({typed(call.out(0)), typed(call.in(0))}, 0) {}
  void run(const Launch& launch) override { wide_ ? start<double>(launch) : start<float>(launch); }

 private:
  template <class T>
  void start(const Launch& launch) const {
    void* const data[2] = {launch.out(0), const_cast<void*>(launch.in(0))};
    Special<T> f;
    f.op = op_;
    f.p = parameters_.count() > 0 ? parameters_(launch.raw, 0) : 0;
    elementwise::run(launch.native(), loop_, data, f);
  }

  SpecialOp op_;
  bool wide_;
  pg::math::Parameters parameters_;
  Loop<2> loop_;
};

#define PG_ROW(name, Op) PG_KERNEL(#name, SpecialKernel);
PG_MATH_UNARY_SPECIAL(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cuda::elementwise
