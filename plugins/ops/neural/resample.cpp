// SPDX-License-Identifier: Apache-2.0
// resample and its transpose: one axis made longer or shorter. Interpolation is one of them an axis.
#include "../rules.hpp"

namespace pg::schema_resample {
namespace {

OpBuilder& resample_attrs(OpBuilder& op) {
  return op.attr<Axis>("axis", -1, "axis to resample")
      .attr<int>("size", 1, "the axis' new size")
      .required()
      .choice("mode", {"nearest", "linear", "cubic", "area"}, 1,
              "nearest: the element at the same place, rounded down; linear: between two; cubic: convolution over four "
              "(Keys 1981, a = -0.75); area: the mean of the elements that an output covers")
      .attr<bool>("align_corners", false, "the centres of the outer elements fall on each other, not the outer edges")
      .attr<double>("scale", 0, "input elements an output element; 0: old size / new size");
}

Shape resampled(const ShapeContext& c, uint32_t x) {
  c.check_rank(x, 1);
  uint32_t axis = c.check_axis("axis", x);
  int64_t size = c.get<int>("size");
  c.need(size >= 1, "size is %lld; expected at least 1", static_cast<long long>(size));
  c.need(!c.dim(x, axis).is(0), "%s: axis %u is empty; there is nothing to resample", c.text(x).c_str(), axis + 1);
  double scale = c.get<double>("scale");
  c.need(scale >= 0 && scale - scale == 0, "scale is %g; expected a finite number from 0", scale);
  Shape shape = c.shape(x);
  shape.dims[axis] = size;
  return shape;
}

const bool declared = [] {
  resample_attrs(declare_op("resample").category("neural"))
      .doc("x with one axis interpolated to another size.")
      .input("x", kFloating, "[...]")
      .output("y", "shape of x, but `size` along the axis")
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(0), resampled(c, 0)); })
      .grad([](GradContext& g) {
        static constinit OpRef op("resample_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(0));
      });

  resample_attrs(declare_op("resample_grad").category("neural"))
      .doc("Gradient of resample: each dy spread over the elements that it was made of.")
      .input("dy", kFloating, "shape of the resampled x")
      .input("x", kFloating, "[...]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        Shape want = resampled(c, 1);
        c.check_rank(0, want.rank, want.rank);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of the resampled x");
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("resample");
        g.din(0) = g.call(op, g.dout(0));
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_resample
