// SPDX-License-Identifier: Apache-2.0
// Three-operand arithmetic; the last operand of lerp may be a number.
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

enum TernaryOp : int32_t { kAddcmul, kAddcdiv, kLerp };

TernaryOp find_ternary(const pg::KernelCall& call) {
  return call.is("lerp") ? kLerp : call.is("addcdiv") ? kAddcdiv : kAddcmul;
}

template <class T>
struct Three : Function<T, T> {
  static constexpr int kInputs = 3;
  TernaryOp op;
  T p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[3][V], T (&y)[V]) const {
    using namespace pg::math;
    if constexpr (is_float<T>) {
      if (op != kAddcmul) {
#pragma unroll
        for (int i = 0; i < V; i++)
          y[i] = op == kLerp ? Lerp()(x[0][i], x[1][i], x[2][i], p) : Addcdiv()(x[0][i], x[1][i], x[2][i], p);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = Addcmul()(x[0][i], x[1][i], x[2][i], p);
  }
};

class Ternary final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    uint32_t dtype = pg::dtype_of(call.out(0));
    bool floating = pg::dtype_class(dtype) == PG_M_FLOAT;
    bool refused = dtype == PG_B8 || !call.has(0) || !call.has(1) || (find_ternary(call) != kAddcmul && !floating);
    for (uint32_t i = 0; i < 3; i++) refused = refused || (call.has(i) && pg::dtype_of(call.in(i)) != dtype);
    if (refused) pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
  }
  Ternary(const pg::KernelCall& call, pg::Plan&)
      : op_(find_ternary(call)),
        dtype_(pg::dtype_of(call.out(0))),
        parameters_(call, dtype_),
        loop_({typed(call.out(0)), typed(call.in(0)), typed(call.in(1)), call.has(2) ? typed(call.in(2)) : number()},
              widths_for(dtype_)) {
    if (!call.has(2)) value_ = call.scalar_value();
  }
  void run(const Launch& launch) override {
    void* const data[4] = {launch.out(0), const_cast<void*>(launch.in(0)), const_cast<void*>(launch.in(1)),
                           const_cast<void*>(launch.in(2))};
    with_compute(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Three<T> f;
      f.op = op_;
      put_parameters(parameters_, launch, f.p);
      // The engine reads a third operand's number from the first place.
      if (value_.kind != 0) f.number[0] = number_as<T>(value_(launch.raw));
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  TernaryOp op_;
  uint32_t dtype_;
  pg::math::Parameters parameters_;
  pg::Runtime<pg_number> value_;
  Loop<4> loop_;
};

PG_KERNEL("addcmul", Ternary);
PG_KERNEL("addcdiv", Ternary);
PG_KERNEL("lerp", Ternary);

}  // namespace
}  // namespace cuda::elementwise
