// SPDX-License-Identifier: Apache-2.0
// Special functions of one operand: an element a thread, as their arithmetic is what takes time.
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

// In double whatever the dtype: one body for all.
template <class T>
struct Special : Function<T, T> {
  static constexpr uint32_t kWidths = 0;
  Primitive op;
  double p;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
    using Wide = std::conditional_t<sizeof(T) != 0, double, T>;  // depends on T, so that other rows are not compiled
    const Wide value = x[0][0];
    const Wide* with = &p;
    y[0] = T(0);
    switch (op) {
#define PG_ROW(number, Op, form, parameters, types, result, cost, ...)                                      \
  case pg::math::p##Op:                                                                                     \
    if constexpr (pg::math::cost == pg::math::kSpecial) y[0] = static_cast<T>(pg::math::Op()(value, with)); \
    break;
      PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
    }
  }
};

class SpecialKernel final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) { check_primitive(call, scalar); }
  SpecialKernel(const pg::KernelCall& call, const ScalarCall& scalar)
      : op_(scalar.program.step[0].primitive),
        input_(call, scalar.program.step[0].operand[0]),
        wide_(scalar.dtype == PG_F64),
        parameters_(call, scalar.program.step[0], scalar.dtype),
        loop_({typed(call.out(0)), typed(call, input_)}, 0) {}
  bool renews() const override { return pg::math::info(op_).parameters > 0; }
  void run(const Launch& launch) override { wide_ ? start<double>(launch) : start<float>(launch); }

 private:
  template <class T>
  void start(const Launch& launch) const {
    void* const data[2] = {launch.out(0), input_.address(launch)};
    Special<T> f;
    f.op = op_;
    f.p = parameters_.count() > 0 ? parameters_(launch.raw, 0) : 0;
    elementwise::run(launch.native(), loop_, data, f);
  }

  Primitive op_;
  LoopInput input_;
  bool wide_;
  pg::math::Parameters parameters_;
  Loop<2> loop_;
};

}  // namespace

const Form kSpecialForm = form_of<SpecialKernel>();

}  // namespace cuda::elementwise
