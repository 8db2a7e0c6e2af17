// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "../rules.hpp"

namespace pg {
namespace {

const double kRootHalf = std::sqrt(0.5), kBell = 1 / std::sqrt(2 * std::acos(-1.0));
const double kTanhScale = std::sqrt(2 / std::acos(-1.0)), kCubic = 0.044715;

Value exact_slope(Value x) {
  Value area = (erf(x * kRootHalf) + 1.0) * 0.5, density = exp(square(x) * -0.5) * kBell;
  return area + x * density;
}

Value tanh_slope(Value x) {
  Value x2 = square(x), t = tanh(x * (x2 * (kCubic * kTanhScale) + kTanhScale));
  Value inner = x2 * (3 * kCubic * kTanhScale) + kTanhScale;
  return (t + 1.0) * 0.5 + x * (1.0 - square(t)) * inner * 0.5;
}

PG_OP("gelu")
    .category("elementwise")
    .doc(
        "x times the normal distribution function at x (Hendrycks, Gimpel 2016). approximate=\"tanh\": "
        "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).")
    .input("x", kFloating, "any shape")
    .choice("approximate", {"none", "tanh"}, 0, "the exact function, or its tanh form")
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .shape(like_input)
    .saves("x")
    .grad([](GradContext& g) {
      Value x = g.in(0);
      g.din(0) = g.dout(0) * (g.get<Choice>("approximate") == 0 ? exact_slope(x) : tanh_slope(x));
    });

}  // namespace
}  // namespace pg
