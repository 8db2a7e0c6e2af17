// SPDX-License-Identifier: Apache-2.0
// var and std: they differ by a square root.
#include "reduction.hpp"

namespace pg::schema_variance {
namespace {

void infer(ShapeContext& c) {
  AxisSet axes = c.check_axes("axes", 0);
  c.out(0).set(c.dtype(0), reduced_shape(c.shape(0), axes, c.get<bool>("keepdim")));
}

Value deviations(Value x, const AxisSet& axes) { return x - mean(x, axis_list(axes), true); }

Value variance(ExpandContext& e) {
  Value x = e.in(0);
  AxisSet axes = axes_of(e, x.rank());
  bool keepdim = e.get<bool>("keepdim");
  Value total = sum(square(deviations(x, axes)), axis_list(axes), true);
  Value y = divide_by_count(total, x, axes, e.get<int>("correction"));
  return keepdim || axes.count == 0 ? y : squeeze(y, axis_list(axes));
}

// d: cotangent of the variance, broadcasting against x.
Value variance_slope(GradContext& g, Value d, const AxisSet& axes) {
  Value x = g.in(0);
  return divide_by_count(d * (deviations(x, axes) * 2.0), x, axes, g.get<int>("correction"));
}

void variance_grad(GradContext& g) {
  uint32_t rank = g.in(0).rank();
  AxisSet axes = axes_of(g, rank);
  g.din(0) = variance_slope(g, restore_axes(g.dout(0), axes, g.get<bool>("keepdim"), rank), axes);
}

void deviation_grad(GradContext& g) {
  uint32_t rank = g.in(0).rank();
  AxisSet axes = axes_of(g, rank);
  // At 0 the slope is 0 by convention, not 0 / 0.
  Value y = g.out(0), d = where(eq(y, 0.0), 0.0, g.dout(0) / (y * 2.0));
  g.din(0) = variance_slope(g, restore_axes(d, axes, g.get<bool>("keepdim"), rank), axes);
}

const char* const kCorrection = "subtracted from the number of elements in the divisor: 1 unbiased, 0 population";

[[maybe_unused]] OpBuilder& var = declare_reduction("var", "Variance: sum((x - mean)^2) / (n - correction).", kFloating)
                                      .attr<int>("correction", 1, kCorrection)
                                      .numeric(PG_NUMERIC_FLOAT32)
                                      .shape(infer)
                                      .saves("x")
                                      .grad(variance_grad)
                                      .decompose([](ExpandContext& e) { e.out(0) = variance(e); });

[[maybe_unused]] OpBuilder& deviation = declare_reduction("std", "Standard deviation, the root of `var`.", kFloating)
                                            .attr<int>("correction", 1, kCorrection)
                                            .numeric(PG_NUMERIC_FLOAT32)
                                            .shape(infer)
                                            .saves("x", "y")
                                            .grad(deviation_grad)
                                            .decompose([](ExpandContext& e) { e.out(0) = sqrt(variance(e)); });

}  // namespace
}  // namespace pg::schema_variance
