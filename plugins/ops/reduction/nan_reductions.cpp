// SPDX-License-Identifier: Apache-2.0
// nansum, nanmean and count_nonzero: reductions that leave elements out.
#include "reduction.hpp"

namespace pg::schema_nan_reductions {
namespace {

bool lifts(uint32_t dtype) { return (dtype_class(dtype) & (PG_M_INT | PG_M_BOOL)) != 0; }

void infer(ShapeContext& c, uint32_t dtype) {
  AxisSet axes = c.check_axes("axes", 0);
  c.out(0).set(dtype, reduced_shape(c.shape(0), axes, c.get<bool>("keepdim")));
}

struct Reduced {  // x, its axes, and what the result is to look like
  Value x;
  AxisSet set;
  pg_ints axes;
  bool keepdim;
  explicit Reduced(const ValueContext& c)
      : x(c.in(0)), set(axes_of(c, x.rank())), axes(axis_list(set)), keepdim(c.get<bool>("keepdim")) {}
  Value restored(Value d) const { return restore_axes(d, set, keepdim, x.rank()); }
};

Value numbers(const Reduced& c, bool keepdim) { return cast(sum(eq(c.x, c.x), c.axes, keepdim), c.x.dtype()); }

[[maybe_unused]] OpBuilder& nansum =
    declare_reduction("nansum", "Sum of the elements that are not NaN; of integers and booleans in int64.", kRealOrBool)
        .numeric(PG_NUMERIC_FLOAT32)
        .shape([](ShapeContext& c) { infer(c, lifts(c.dtype(0)) ? PG_I64 : c.dtype(0)); })
        .saves("x")
        .grad([](GradContext& g) {
          Reduced c(g);
          g.din(0) = where(apply<"isnan">(c.x), 0.0, c.restored(g.dout(0)));
        })
        .decompose([](ExpandContext& e) {
          Reduced c(e);
          bool whole = lifts(c.x.dtype());
          e.out(0) = sum(whole ? c.x : where(apply<"isnan">(c.x), 0.0, c.x), c.axes, c.keepdim);
        });

[[maybe_unused]] OpBuilder& nanmean =
    declare_reduction("nanmean", "Mean of the elements that are not NaN.", kFloating)
        .numeric(PG_NUMERIC_FLOAT32)
        .shape([](ShapeContext& c) { infer(c, c.dtype(0)); })
        .saves("x")
        .grad([](GradContext& g) {
          Reduced c(g);
          g.din(0) = where(apply<"isnan">(c.x), 0.0, c.restored(g.dout(0)) / numbers(c, true));
        })
        .decompose([](ExpandContext& e) {
          Reduced c(e);
          e.out(0) = reduce<"nansum">(c.x, c.axes, c.keepdim) / numbers(c, c.keepdim);
        });

[[maybe_unused]] OpBuilder& count_nonzero =
    declare_reduction("count_nonzero", "How many elements are not zero, in int64.", kAnyDtype)
        .traits(PG_OP_NO_GRAD)
        .shape([](ShapeContext& c) { infer(c, PG_I64); })
        .decompose([](ExpandContext& e) {
          Reduced c(e);
          e.out(0) = sum(ne(c.x, 0.0), c.axes, c.keepdim);
        });

}  // namespace
}  // namespace pg::schema_nan_reductions
