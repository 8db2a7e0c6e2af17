// SPDX-License-Identifier: Apache-2.0
// fake_quantize: what is left of floating numbers once they have been whole ones.
#include "../rules.hpp"

namespace pg::schema_fake_quantize {
namespace {

// x / scale + zero_point, rounded but not kept within low..high.
template <class Context>
Value steps(const Context& c, Value x) {
  Value whole = apply<"round">(x / widen(c.in(1)));
  return c.has(2) ? whole + widen(c.in(2)) : whole;
}

void infer(ShapeContext& c) {
  c.check_same_dtype(1, 0);
  check_broadcasts_to(c, 1, 0);
  if (c.has(2)) {
    c.check_same_dtype(2, 0);
    check_broadcasts_to(c, 2, 0);
  }
  const auto low = c.get<int>("low"), high = c.get<int>("high");
  c.need(low < high, "low must be below high, got %lld and %lld", static_cast<long long>(low),
         static_cast<long long>(high));
  c.out(0) = c.in(0);
}

PG_OP("fake_quantize")
    .category("neural")
    .doc(
        "What dequantising gives back of quantised numbers: q = round(x / scale) + zero_point (halves to the even one) "
        "kept within low..high (NaN becomes 0); then (q - zero_point) * scale. The gradient passes straight "
        "through where q is within low..high, and is 0 elsewhere (Bengio, Leonard, Courville 2013); scale and "
        "zero_point get none.")
    .input("x", kFloating, "any shape", PG_INPUT_PROMOTE)
    .input("scale", kFloating, "broadcasts to x; above 0", PG_INPUT_PROMOTE)
    .input("zero_point", kFloating, "broadcasts to x: the whole number that stands for 0, which is 0 if it is absent",
           PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
    .attr<int>("low", -127, "the least whole number")
    .attr<int>("high", 127, "the largest")
    .output("y", "as x")
    .shape(infer)
    .saves("x", "scale", "zero_point")
    .grad([](GradContext& g) {
      if (!g.needed(0)) return;
      Value q = steps(g, widen(g.in(0)));
      const auto low = static_cast<double>(g.get<int>("low")), high = static_cast<double>(g.get<int>("high"));
      g.din(0) = where(logical_and(ge(q, low), le(q, high)), g.dout(0), 0.0);
    })
    .decompose([](ExpandContext& e) {
      Value q = steps(e, widen(e.in(0)));
      const auto low = static_cast<double>(e.get<int>("low")), high = static_cast<double>(e.get<int>("high"));
      q = minimum(maximum(where(eq(q, q), q, 0.0), low), high);
      if (e.has(2)) q = q - widen(e.in(2));
      e.out(0) = cast(q * widen(e.in(1)), e.in(0).dtype());
    });

}  // namespace
}  // namespace pg::schema_fake_quantize
