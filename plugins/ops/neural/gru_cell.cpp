// SPDX-License-Identifier: Apache-2.0
// gru_cell and gru_cell_grad: a step of a GRU behind its products.
#include "recurrent.hpp"

namespace pg::schema_gru_cell {
namespace {

using namespace recurrent;

constexpr uint32_t kGates = 3;

struct Step {
  Value r, z, n, inner;  // inner: the state's part of n, before the reset gate
};
Step step(Value x, Value hidden, Value h) {
  Step s;
  s.r = sigmoid(part(x, h, kGates, 0) + part(hidden, h, kGates, 0));
  s.z = sigmoid(part(x, h, kGates, 1) + part(hidden, h, kGates, 1));
  s.inner = part(hidden, h, kGates, 2);
  s.n = tanh(part(x, h, kGates, 2) + s.r * s.inner);
  return s;
}

struct Slopes {
  Value x, hidden, h;
};
// `kept`: what flows into the gates themselves; any may be absent, not all.
Slopes back(const Step& s, Value h, Value d, const Value (&kept)[kGates]) {
  auto or_zero = [&](Value v) { return v ? v : zeros_like(h); };
  Value through = scaled(d, s.z), dn = d ? d - through : Value{};
  dn = through_tanh(s.n, or_zero(added(dn, kept[2])));
  Value dr = through_sigmoid(s.r, added(dn * s.inner, kept[0]));
  Value dz = through_sigmoid(s.z, or_zero(added(scaled(d, h - s.n), kept[1])));
  const Value of_x[kGates] = {dr, dz, dn}, of_hidden[kGates] = {dr, dz, dn * s.r};
  return {join(of_x), join(of_hidden), or_zero(through)};
}

PG_OP("gru_cell")
    .category("neural")
    .doc(
        "A step of a gated recurrent unit behind its products (Cho et al. 2014): r, z = sigmoid of x + hidden, n = "
        "tanh of x + r hidden, whose columns come in the order r, z, n; next = n + z (h - n). 16-bit floats are "
        "computed in float32.")
    .input("x", kFloating, "[n, 3 size]: the input's part of the gates")
    .input("hidden", kFloating, "[n, 3 size]: the state's part of the gates")
    .input("h", kFloating, "[n, size]: the state")
    .output("next", "[n, size]: h'")
    .output("gates", "[n, 3 size]: r, z and n")
    .shape([](ShapeContext& c) {
      c.check_rank(2, 2, 2);
      check_wide(c, 0, 2, kGates);
      check_wide(c, 1, 2, kGates);
      c.out(0) = c.in(2);
      c.out(1).set(c.dtype(2), wide(c, 2, kGates));
    })
    .saves("x", "hidden", "h")
    .grad([](GradContext& g) {
      // The gates are computed anew: they are functions of x, which what is recorded here must not take for constants.
      Value h = widen(g.in(2)), kept[kGates];
      if (g.dout(1)) {
        for (uint32_t k = 0; k < kGates; k++) kept[k] = part(widen(g.dout(1)), h, kGates, k);
      }
      if (!g.dout(0) && !kept[0]) return;
      Slopes d = back(step(widen(g.in(0)), widen(g.in(1)), h), h, widen(g.dout(0)), kept);
      if (g.needed(0)) g.din(0) = cast(d.x, g.in(0).dtype());
      if (g.needed(1)) g.din(1) = cast(d.hidden, g.in(1).dtype());
      if (g.needed(2)) g.din(2) = cast(d.h, g.in(2).dtype());
    })
    .decompose([](ExpandContext& e) {
      uint32_t dtype = e.in(2).dtype();
      Value h = widen(e.in(2));
      Step s = step(widen(e.in(0)), widen(e.in(1)), h);
      const Value gates[kGates] = {s.r, s.z, s.n};
      e.out(0) = cast(s.n + s.z * (h - s.n), dtype);
      e.out(1) = cast(join(gates), dtype);
    });

PG_OP("gru_cell_grad")
    .category("neural")
    .doc(
        "What flows into x, hidden and h of gru_cell, by its results: in one pass, for loops that know their way back. "
        "It has no gradient of its own.")
    .input("dnext", kFloating, "[n, size]")
    .input("gates", kFloating, "[n, 3 size], of gru_cell")
    .input("hidden", kFloating, "[n, 3 size]")
    .input("h", kFloating, "[n, size]")
    .output("dx", "[n, 3 size]")
    .output("dhidden", "[n, 3 size]")
    .output("dh", "[n, size]")
    .shape([](ShapeContext& c) {
      c.check_rank(3, 2, 2);
      check_wide(c, 1, 3, kGates);
      check_wide(c, 2, 3, kGates);
      c.check_same_shape(0, 3);
      c.check_same_dtype(0, 3);
      c.out(0) = c.in(2);
      c.out(1) = c.in(2);
      c.out(2) = c.in(3);
    })
    .saves("dnext", "gates", "hidden", "h")
    .grad([](GradContext&) { fail(PG_E_NOT_SUPPORTED, "gru_cell_grad has no gradient"); })
    .decompose([](ExpandContext& e) {
      uint32_t dtype = e.in(3).dtype();
      Value h = widen(e.in(3)), gates = widen(e.in(1)), none[kGates];
      Step s{part(gates, h, kGates, 0), part(gates, h, kGates, 1), part(gates, h, kGates, 2),
             part(widen(e.in(2)), h, kGates, 2)};
      Slopes d = back(s, h, widen(e.in(0)), none);
      e.out(0) = cast(d.x, dtype);
      e.out(1) = cast(d.hidden, dtype);
      e.out(2) = cast(d.h, dtype);
    });

}  // namespace
}  // namespace pg::schema_gru_cell
