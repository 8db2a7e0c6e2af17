// SPDX-License-Identifier: Apache-2.0
// resample2d and its transpose: resample of the last two axes, in one pass where a device has a kernel for it.
#include "../rules.hpp"
#include "window.hpp"

namespace pg::schema_resample2d {
namespace {

constexpr const char* kScale[] = {"scale_rows", "scale_columns"};

OpBuilder& resample_attrs(OpBuilder& op) {
  return op.attr<Ints>("size", repeated(2, 0), "the new sizes of the last two axes")
      .required()
      .pair()
      .choice("mode", {"nearest", "linear", "cubic", "area"}, 1, "of both axes, as resample's")
      .attr<bool>("align_corners", false, "the centres of the outer elements fall on each other, not the outer edges")
      .attr<double>(kScale[0], 0,
                    "of the axis before the last: input elements an output element; 0: old size / new size")
      .attr<double>(kScale[1], 0, "the same of the last axis");
}

int64_t new_size(const AttrReader& attrs, uint32_t i) {
  pg_ints size = attrs.get<Ints>("size");
  return size.value[size.count == 1 ? 0 : i];
}

Shape resampled(const ShapeContext& c, uint32_t x) {
  c.check_rank(x, 2);
  check_list(c, "size", 2, 1);
  Shape shape = c.shape(x);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t axis = shape.rank - 2 + i;
    c.need(!shape[axis].is(0), "%s: axis %u is empty; there is nothing to resample", c.text(x).c_str(), axis + 1);
    double scale = c.get<double>(kScale[i]);
    c.need(scale >= 0 && scale - scale == 0, "%s is %g; expected a finite number from 0", kScale[i], scale);
    shape.dims[axis] = new_size(c, i);
  }
  return shape;
}

// One of the two axes by itself, of x or, as `of` says, of what flows back.
Value along_one(const AttrReader& attrs, const OpRef& op, Value x, Value of, uint32_t i) {
  Call call(x.builder, op);
  call.input(x);
  if (of) call.input(of);
  return call.set(0, x.rank() - 2 + i)
      .set(1, new_size(attrs, i))
      .set(2, attrs.get<Choice>("mode"))
      .set(3, attrs.get<bool>("align_corners"))
      .set(4, attrs.get<double>(kScale[i]))
      .emit();
}
Value resample(const AttrReader& attrs, Value x, uint32_t i) {
  static constinit OpRef op("resample", "axis", "size", "mode", "align_corners", "scale");
  return along_one(attrs, op, x, {}, i);
}
Value resample_grad(const AttrReader& attrs, Value dy, Value x, uint32_t i) {
  static constinit OpRef op("resample_grad", "axis", "size", "mode", "align_corners", "scale");
  return along_one(attrs, op, dy, x, i);
}

// [..., H, W'] for an input of which only the shape counts: a row of dy shown as often as x has rows.
Value with_rows_of(Value dy, Value x) {
  static constinit OpRef slice("slice", "starts", "stops"), expand("expand", "shape");
  uint32_t rows = dy.rank() - 2;
  pg_ints starts = repeated(dy.rank(), 0), stops = repeated(dy.rank(), INT64_MAX), shape = repeated(dy.rank(), -1);
  stops.value[rows] = 1, shape.value[rows] = x.dim(rows);
  Value row = Call(dy.builder, slice).input(dy).set(0, starts).set(1, stops).emit();
  return Call(dy.builder, expand).input(row).set(0, shape).emit();
}

const bool declared = [] {
  resample_attrs(declare_op("resample2d").category("neural"))
      .doc("x with its last two axes interpolated to other sizes.")
      .input("x", kFloating, "[..., H, W]")
      .output("y", "[..., H', W']")
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(0), resampled(c, 0)); })
      .grad([](GradContext& g) {
        static constinit OpRef op("resample2d_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(0));
      })
      .decompose([](ExpandContext& e) {
        Value x = e.in(0);
        e.out(0) = cast(resample(e, resample(e, widen(x), 0), 1), x.dtype());
      });

  resample_attrs(declare_op("resample2d_grad").category("neural"))
      .doc("Gradient of resample2d: each dy spread over the elements that it was made of.")
      .input("dy", kFloating, "shape of the resampled x")
      .input("x", kFloating, "[..., H, W]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        Shape want = resampled(c, 1);
        c.check_rank(0, want.rank, want.rank);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of the resampled x");
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("resample2d");
        g.din(0) = g.call(op, g.dout(0));
      })
      .decompose([](ExpandContext& e) {
        Value dy = widen(e.in(0)), x = e.in(1);
        Value d = resample_grad(e, dy, with_rows_of(dy, x), 0);
        e.out(0) = cast(resample_grad(e, d, x, 1), e.in(0).dtype());
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_resample2d
