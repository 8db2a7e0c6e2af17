// SPDX-License-Identifier: Apache-2.0
// where and masked_fill: one of two values by a condition. Elements are moved, not looked at.
#include "../elementwise.cuh"
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

void check_select(const pg::KernelCall& call, uint32_t condition) {
  check_dtypes(call, kAny);
  bool refused = pg::dtype_of(call.in(condition)) != PG_B8;
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (i != condition && call.has(i)) refused = refused || pg::dtype_of(call.in(i)) != pg::dtype_of(call.out(0));
  }
  if (refused) pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
}

class Where final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_select(call, 0);
    if (!call.has(1) && !call.has(2)) pg::fail_support("where on cuda takes one number, not two");
  }
  Where(const pg::KernelCall& call, pg::Plan&)
      : dtype_(pg::dtype_of(call.out(0))),
        loop_({raw(call.out(0)), typed(call.in(0)), call.has(1) ? raw(call.in(1)) : number(),
               call.has(2) ? raw(call.in(2)) : number()},
              widths_for_bits(dtype_)) {
    if (!call.has(1) || !call.has(2)) value_ = call.scalar_value();
  }
  void run(const Launch& launch) override {
    void* const data[4] = {launch.out(0), const_cast<void*>(launch.in(0)), const_cast<void*>(launch.in(1)),
                           const_cast<void*>(launch.in(2))};
    select(launch, loop_, data, dtype_, value_.kind != 0 ? value_(launch.raw) : pg_number{});
  }

 private:
  uint32_t dtype_;
  pg::Runtime<pg_number> value_;
  Loop<4> loop_;
};
PG_KERNEL("where", Where);

class MaskedFill final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_select(call, 1); }
  MaskedFill(const pg::KernelCall& call, pg::Plan&)
      : dtype_(pg::dtype_of(call.out(0))),
        value_(call.runtime<pg_number>("value")),
        loop_({raw(call.out(0)), typed(call.in(1)), number(), raw(call.in(0))}, widths_for_bits(dtype_)) {}
  void run(const Launch& launch) override {
    void* const data[4] = {launch.out(0), const_cast<void*>(launch.in(1)), nullptr, const_cast<void*>(launch.in(0))};
    select(launch, loop_, data, dtype_, value_(launch.raw));
  }

 private:
  uint32_t dtype_;
  pg::Runtime<pg_number> value_;
  Loop<4> loop_;
};
PG_KERNEL("masked_fill", MaskedFill);

}  // namespace
}  // namespace cuda::elementwise
