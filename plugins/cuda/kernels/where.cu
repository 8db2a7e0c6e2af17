// SPDX-License-Identifier: Apache-2.0
// One of two values by a condition, either of which may be a number. Elements are moved, not looked at.
#include "../elementwise.cuh"
#include "../elementwise_form.hpp"
#include "../kernel.hpp"

namespace cuda::elementwise {
namespace {

template <class T>
struct Select : Function<T, T> {
  static constexpr int kInputs = 3;  // condition, then, else
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[3][V], T (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = x[0][i] != 0 ? x[1][i] : x[2][i];
  }
};

void select(const Launch& launch, const Loop<4>& loop, void* const (&data)[4], uint32_t dtype,
            const pg_number& number) {
  with_bits(pg::dtype_bytes(dtype), [&](auto zero) {
    using T = decltype(zero);
    Select<T> f;
    f.number[0] = f.number[1] = static_cast<T>(bits_of(dtype, number));
    run(launch.native(), loop, data, f);
  });
}

class Choice final : public Kernel {
 public:
  static void supports(const pg::KernelCall&, const ScalarCall&) {}
  Choice(const pg::KernelCall& call, const ScalarCall& scalar) : dtype_(pg::dtype_of(call.out(0))) {
    for (int i = 0; i < 3; i++) input_[i] = LoopInput(call, scalar.program.step[0].operand[i]);
    loop_ = Loop<4>({raw(call.out(0)), typed(call, input_[0]), raw(call, input_[1]), raw(call, input_[2])},
                    widths_for_bits(dtype_));
  }
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    void* const data[4] = {launch.out(0), input_[0].address(launch), input_[1].address(launch),
                           input_[2].address(launch)};
    pg_number number{};
    for (const LoopInput& input : input_)
      if (input.is_number()) number = input.number(launch);
    select(launch, loop_, data, dtype_, number);
  }

 private:
  uint32_t dtype_;
  LoopInput input_[3];
  Loop<4> loop_;
};

}  // namespace

const Form kChoiceForm = form_of<Choice>();

}  // namespace cuda::elementwise
