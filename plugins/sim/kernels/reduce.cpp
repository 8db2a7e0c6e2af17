// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/reduce.hpp"

#include "../launch.hpp"

namespace sim {
namespace {

using namespace pg::reference;

template <class F>
void over_axes(const Work& work, F f) {
  const Operand& x = work.in(0);
  uint32_t axes = work.axes("axes", x.rank());
  with_compute(x.dtype, [&](auto tag) { reduce<decltype(tag)>(x, axes, work.out(0), f); });
}

template <class F>
void plain(const Work& work) {
  over_axes(work, F());
}

template <int Sign>
void extreme(const Work& work) {
  over_axes(work, ExtremeOf{Sign});
}

template <bool Root>
void variance(const Work& work) {
  over_axes(work, VarianceOf{work.attr<int64_t>("correction"), Root});
}

void norm(const Work& work) { over_axes(work, NormOf{work.attr<double>("p")}); }

template <int Sign>
void place(const Work& work) {
  const Operand& x = work.in(0);
  uint32_t all = (1u << x.rank()) - 1;
  uint32_t axes = work.attr<bool>("flat") || x.rank() == 0 ? all : 1u << work.axis("axis", x.rank());
  with_compute(x.dtype, [&](auto tag) { reduce<decltype(tag)>(x, axes, work.out(0), PlaceOf{Sign}); });
}

template <bool Products>
void running(const Work& work) {
  const Operand& x = work.in(0);
  int64_t axis = work.axis("axis", x.rank());
  with_compute(x.dtype, [&](auto tag) { cumulate<decltype(tag)>(x, axis, Products, work.out(0)); });
}

template <int Sign>
void running_extreme(const Work& work) {
  const Operand& x = work.in(0);
  int64_t axis = work.axis("axis", x.rank());
  with_compute(x.dtype, [&](auto tag) { cumulate_extreme<decltype(tag)>(x, axis, Sign, work.out(0), work.out(1)); });
}

void logcumsumexp_kernel(const Work& work) {
  logcumsumexp(work.in(0), work.axis("axis", work.in(0).rank()), work.attr<bool>("reverse"), work.out(0));
}

void sum_like_kernel(const Work& work) { sum_like(work.in(0), work.out(0)); }
void all_finite_kernel(const Work& work) { all_finite(work.group(0), work.out(0)); }

PG_SIM_KERNEL("sum", plain<SumOf>, kAny);
PG_SIM_KERNEL("mean", plain<MeanOf>, kFloats);
PG_SIM_KERNEL("prod", plain<ProductOf>, kAny);
PG_SIM_KERNEL("amax", extreme<1>, kAny);
PG_SIM_KERNEL("amin", extreme<-1>, kAny);
PG_SIM_KERNEL("logsumexp", plain<LogSumExpOf>, kFloats);
PG_SIM_KERNEL("nansum", plain<NanSumOf>, kFloats);
PG_SIM_KERNEL("norm", norm, kFloats);
PG_SIM_KERNEL("any", plain<AnyOf>, kAny);
PG_SIM_KERNEL("all", plain<AllOf>, kAny);
PG_SIM_KERNEL("var", variance<false>, kFloats);
PG_SIM_KERNEL("std", variance<true>, kFloats);
PG_SIM_KERNEL("argmax", place<1>, kAny);
PG_SIM_KERNEL("argmin", place<-1>, kAny);
PG_SIM_KERNEL("cumsum", running<false>, kAny);
PG_SIM_KERNEL("cumprod", running<true>, kAny);
PG_SIM_KERNEL("cummax", running_extreme<1>, kAny);
PG_SIM_KERNEL("cummin", running_extreme<-1>, kAny);
PG_SIM_KERNEL("logcumsumexp", logcumsumexp_kernel, kFloats);
PG_SIM_KERNEL("sum_like", sum_like_kernel, kAny);
PG_SIM_KERNEL("all_finite", all_finite_kernel, kAny);

}  // namespace
}  // namespace sim
