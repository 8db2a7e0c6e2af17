// SPDX-License-Identifier: Apache-2.0
// Views that show each element of a part of x once (slice, diagonal), with the two operators that their gradients and
// writing through them need: NAME_grad puts the part into zeros, NAME_scatter into a copy of x.
#pragma once

#include "../rules.hpp"

namespace pg {

struct PartFamily {
  OpRef view, grad, scatter;
  const char *name, *noun;  // `noun`: what messages call the part
  const char *doc, *result;
  OpBuilder& (*attrs)(OpBuilder& op);
  // The part's shape; its strides and where it starts, too, where the input has strides.
  Shape (*shape)(const ShapeContext& c, uint32_t input, int64_t* stride, int64_t* start);

  Value read(const ValueContext& c, Value x) const { return c.call(view, x); }
  Value put(const ValueContext& c, Value x, Value part) const { return c.call(scatter, x, part); }

  void check(ShapeContext& c, uint32_t part, uint32_t whole) const {
    int64_t stride[PG_MAX_RANK], start;
    Shape want = shape(c, whole, stride, &start), got = c.shape(part);
    bool same = want.rank == got.rank;
    for (uint32_t i = 0; same && i < want.rank; i++) same = Dim(want.dims[i]).may_equal(Dim(got.dims[i]));
    c.need(same, "%s has another shape than the %s, %s", c.text(part).c_str(), noun, want.text().c_str());
    c.out(0).set(c.dtype(part), c.shape(whole));
  }

  // `whole`, which nobody else sees yet, with `part` written where the view would read.
  Value write(const ValueContext& c, Value whole, Value part) const {
    static constinit OpRef op("copy");
    Call(whole.builder, op).input(read(c, whole)).input(part).emit(PG_EMIT_IN_PLACE);
    return whole;
  }
};

inline void declare_part_view(const PartFamily& f) {
  f.attrs(declare_op(f.name).category("view"))
      .doc(f.doc)
      .input("x", kStored, "[...]")
      .output("y", f.result)
      .traits(PG_OP_VIEW)
      .shape([&f](ShapeContext& c) {
        int64_t stride[PG_MAX_RANK], start;
        Shape shape = f.shape(c, 0, stride, &start);
        OutputMeta out = c.out(0).set(c.dtype(0), shape);
        if (c.in(0).stride != nullptr) out.view(stride, start);
      })
      .grad([&f](GradContext& g) { g.din(0) = g.call(f.grad, g.dout(0), g.in(0)); })
      .write_back([&f](ExpandContext& e) { e.out(0) = f.put(e, e.in(0), e.in(1)); });
}

inline void declare_part_grad(const PartFamily& f) {
  f.attrs(declare_op(std::string(f.name) + "_grad").category("view"))
      .doc(format("Zeros in the shape of x, with dy where `%s` would have read.", f.name))
      .input("dy", kStored, "shape of the part")
      .input("x", kStored, "[...]", PG_INPUT_META)
      .output("dx", "shape of x, dtype of dy")
      .shape([&f](ShapeContext& c) { f.check(c, 0, 1); })
      .grad([&f](GradContext& g) { g.din(0) = f.read(g, g.dout(0)); })
      .decompose(
          [&f](ExpandContext& e) { e.out(0) = f.write(e, cast(zeros_like(e.in(1)), e.in(0).dtype()), e.in(0)); });
}

inline void declare_part_scatter(const PartFamily& f) {
  f.attrs(declare_op(std::string(f.name) + "_scatter").category("view"))
      .doc(format("A copy of x with `part` where `%s` would read.", f.name))
      .input("x", kStored, "[...]")
      .input("part", kStored, "shape of the part")
      .output("y", "shape of x")
      .shape([&f](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        f.check(c, 1, 0);
      })
      .grad([&f](GradContext& g) {
        if (g.needed(0)) g.din(0) = f.put(g, g.dout(0), zeros_like(g.in(1)));
        if (g.needed(1)) g.din(1) = f.read(g, g.dout(0));
      })
      .decompose([&f](ExpandContext& e) { e.out(0) = f.write(e, clone(e.in(0)), e.in(1)); });
}

// `family` lives as long as the plugin.
inline bool declare_part(const PartFamily& family) {
  declare_part_view(family);
  declare_part_grad(family);
  declare_part_scatter(family);
  return true;
}

}  // namespace pg
