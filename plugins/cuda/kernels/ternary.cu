// SPDX-License-Identifier: Apache-2.0
// Three-operand arithmetic; the last operand of lerp may be a number.
#include "../parameters.cuh"

namespace cuda::elementwise {
namespace {

template <class T>
struct Three : Function<T, T> {
  static constexpr int kInputs = 3;
  Primitive op;
  T p[pg::math::kMaxParameters];
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[3][V], T (&y)[V]) const {
    using namespace pg::math;
    if constexpr (is_float<T>) {
      if (op != pAddcmul) {
#pragma unroll
        for (int i = 0; i < V; i++)
          y[i] = op == pLerp ? Lerp()(x[0][i], x[1][i], x[2][i], p) : Addcdiv()(x[0][i], x[1][i], x[2][i], p);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = Addcmul()(x[0][i], x[1][i], x[2][i], p);
  }
};

class Ternary final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call, const ScalarCall& scalar) { check_primitive(call, scalar); }
  Ternary(const pg::KernelCall& call, const ScalarCall& scalar)
      : op_(scalar.program.step[0].primitive), dtype_(scalar.dtype), parameters_(call, scalar.program.step[0], dtype_) {
    for (int i = 0; i < 3; i++) input_[i] = LoopInput(call, scalar.program.step[0].operand[i]);
    loop_ = Loop<4>({typed(call.out(0)), typed(call, input_[0]), typed(call, input_[1]), typed(call, input_[2])},
                    widths_for(dtype_));
  }
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    void* const data[4] = {launch.out(0), input_[0].address(launch), input_[1].address(launch),
                           input_[2].address(launch)};
    with_compute(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Three<T> f;
      f.op = op_;
      put_parameters(parameters_, launch, f.p);
      // The engine reads a third operand's number from the first place.
      if (input_[2].is_number()) f.number[0] = number_as<T>(input_[2].number(launch));
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  Primitive op_;
  LoopInput input_[3];
  uint32_t dtype_;
  pg::math::Parameters parameters_;
  Loop<4> loop_;
};

}  // namespace

const Form kTernaryForm = form_of<Ternary>();

}  // namespace cuda::elementwise
