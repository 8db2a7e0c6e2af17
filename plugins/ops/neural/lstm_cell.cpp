// SPDX-License-Identifier: Apache-2.0
// lstm_cell and lstm_cell_grad: a step of an LSTM behind its products.
#include "lstm.hpp"

namespace pg::schema_lstm_cell {
namespace {

using namespace recurrent;
using namespace recurrent::lstm;

PG_OP("lstm_cell")
    .category("neural")
    .doc(
        "A step of a long short-term memory behind its products (Hochreiter and Schmidhuber 1997, with forget gates): "
        "i, f, o = sigmoid and g = tanh of x + hidden, whose columns come in the order i, f, g, o; c' = f c + i g; "
        "h = o tanh(c'). 16-bit floats are computed in float32.")
    .input("x", kFloating, "[n, 4 size]: the input's part of the gates")
    .input("hidden", kFloating, "[n, 4 size]: the state's part of the gates")
    .input("c", kFloating, "[n, size]: the cell's state")
    .output("h", "[n, size]")
    .output("next", "[n, size]: c'")
    .output("gates", "[n, 5 size]: i, f, g, o and tanh(c')")
    .shape([](ShapeContext& c) {
      c.check_rank(2, 2, 2);
      check_wide(c, 0, 2, kGates);
      check_wide(c, 1, 2, kGates);
      c.out(0) = c.in(2);
      c.out(1) = c.in(2);
      c.out(2).set(c.dtype(2), wide(c, 2, kKept));
    })
    .saves("x", "hidden", "c")
    .grad([](GradContext& g) {
      // The gates are computed anew: they are functions of x, which what is recorded here must not take for constants.
      Value c = widen(g.in(2)), kept[kKept];
      if (g.dout(2)) {
        for (uint32_t k = 0; k < kKept; k++) kept[k] = part(widen(g.dout(2)), c, kKept, k);
      }
      if (!g.dout(0) && !g.dout(1) && !kept[0]) return;
      Step s = step(widen(g.in(0)) + widen(g.in(1)), c);
      Slopes d = back(s, c, widen(g.dout(0)), widen(g.dout(1)), kept);
      if (g.needed(0)) g.din(0) = cast(d.sums, g.in(0).dtype());
      if (g.needed(1)) g.din(1) = cast(d.sums, g.in(1).dtype());
      if (g.needed(2)) g.din(2) = cast(d.c, g.in(2).dtype());
    })
    .decompose([](ExpandContext& e) {
      uint32_t dtype = e.in(2).dtype();
      Step s = step(widen(e.in(0)) + widen(e.in(1)), widen(e.in(2)));
      e.out(0) = cast(s.o * s.t, dtype);
      e.out(1) = cast(s.next, dtype);
      const Value gates[kKept] = {s.i, s.f, s.g, s.o, s.t};
      e.out(2) = cast(join(gates), dtype);
    });

PG_OP("lstm_cell_grad")
    .category("neural")
    .doc(
        "What flows into x (and hidden) and c of lstm_cell, by its results: in one pass, for loops that know their way "
        "back. It has no gradient of its own.")
    .input("dh", kFloating, "[n, size]", PG_INPUT_OPTIONAL)
    .input("dnext", kFloating, "[n, size]", PG_INPUT_OPTIONAL)
    .input("gates", kFloating, "[n, 5 size], of lstm_cell")
    .input("c", kFloating, "[n, size]")
    .output("dx", "[n, 4 size]")
    .output("dc", "[n, size]")
    .shape([](ShapeContext& c) {
      c.check_rank(3, 2, 2);
      check_wide(c, 2, 3, kKept);
      for (uint32_t i = 0; i < 2; i++) {
        if (!c.has(i)) continue;
        c.check_same_shape(i, 3);
        c.check_same_dtype(i, 3);
      }
      c.need(c.has(0) || c.has(1), "got neither dh nor dnext; expected at least one");
      c.out(0).set(c.dtype(3), wide(c, 3, kGates));
      c.out(1) = c.in(3);
    })
    .saves("dh", "dnext", "gates", "c")
    .grad([](GradContext&) { fail(PG_E_NOT_SUPPORTED, "lstm_cell_grad has no gradient"); })
    .decompose([](ExpandContext& e) {
      Value c = widen(e.in(3)), gates = widen(e.in(2)), none[kKept];
      Step s;
      Value* of[kKept] = {&s.i, &s.f, &s.g, &s.o, &s.t};
      for (uint32_t k = 0; k < kKept; k++) *of[k] = part(gates, c, kKept, k);
      Slopes d = back(s, c, e.has(0) ? widen(e.in(0)) : Value{}, e.has(1) ? widen(e.in(1)) : Value{}, none);
      e.out(0) = cast(d.sums, e.in(3).dtype());
      e.out(1) = cast(d.c, e.in(3).dtype());
    });

}  // namespace
}  // namespace pg::schema_lstm_cell
