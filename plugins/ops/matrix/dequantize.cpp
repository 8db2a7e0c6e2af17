// SPDX-License-Identifier: Apache-2.0
// dequantize: the weight that whole numbers and scales stand for.
#include "quantized.hpp"

namespace pg::schema_dequantize {
namespace {

using namespace quantized;

void declare() {
  OpBuilder& op = declare_op("dequantize")
                      .category("matrix")
                      .doc("The weight that quantised numbers stand for: each times the scale of its group.")
                      .input("q", kInteger, kWeight)
                      .input("scale", kFloating, kScale);
  format_attr(op)
      .output("y", "[out, in], of scale's dtype")
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(1), check_weight(c, 0, 1)); })
      .saves("q")
      .grad([](GradContext& g) {
        if (g.needed(1)) g.din(1) = into_scale(g.dout(0), g.in(0), g.in(1), format_of(g));
      })
      .decompose([](ExpandContext& e) {
        Value scale = widen(e.in(1)), q = numbers(e.in(0), format_of(e), scale.dtype());
        e.out(0) = cast(reshape_like(grouped(q, scale) * unsqueeze(scale, 2), q), e.in(1).dtype());
      });
}

[[maybe_unused]] const bool declared = (declare(), true);

}  // namespace
}  // namespace pg::schema_dequantize
