// SPDX-License-Identifier: Apache-2.0
// lstm_steps and lstm_steps_grad: all steps of an LSTM in one direction behind the product with its inputs.
#include "../positions.hpp"
#include "lstm.hpp"

namespace pg::schema_lstm_steps {
namespace {

using namespace recurrent;
using namespace recurrent::lstm;

Value at(Value x, int64_t t) {
  static constinit OpRef slice("slice", "starts", "drop");
  return Call(x.builder, slice).input(x).set(0, pg_ints{1, {t}}).set(1, pg_ints{1, {1}}).emit();
}
Value stack(std::span<const Value> list) {
  static constinit OpRef op("stack", "axis");
  return Call(list[0].builder, op).inputs(list).set(0, int64_t{0}).emit();
}

// The numbers of the steps in the order that they are taken.
std::vector<int64_t> walk(int64_t count, bool reverse) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; k++) order[static_cast<size_t>(k)] = reverse ? count - 1 - k : k;
  return order;
}

void check_steps(const ShapeContext& c, uint32_t weight, uint32_t state) {
  c.check_rank(state, 2, 2), c.check_rank(weight, 2, 2);
  c.check_same_dtype(weight, state);
  c.check_dim(weight, 0, Dim(kGates) * c.dim(state, 1), "4 times the size of the state");
  c.check_dim(weight, 1, c.dim(state, 1), "the size of the state");
}

// [T, n, count * size]
void check_row_of_steps(const ShapeContext& c, uint32_t input, uint32_t state, uint32_t count) {
  c.check_rank(input, 3, 3);
  c.check_same_dtype(input, state);
  c.need(!c.dim(input, 0).is(0), "%s is %s; expected at least one step", c.name(input), c.text(input).c_str());
  c.check_dim(input, 1, c.dim(state, 0), "the number of rows");
  c.check_dim(input, 2, Dim(count) * c.dim(state, 1), format("%u times the size of the state", count).c_str());
}

void forward(ExpandContext& e) {
  static constinit OpRef cell("lstm_cell"), empty("fill", "shape", "dtype"), move("transfer", "device");
  Value x = e.in(0), h = e.in(2), c = e.in(3);
  const int64_t count = known(x.dim(0));
  const bool keep = e.get<bool>("keep");
  const auto places = static_cast<size_t>(count);
  std::vector<Value> ys(places), states(places), gates(places);
  for (int64_t t : walk(count, e.get<bool>("reverse"))) {
    const auto k = static_cast<size_t>(t);
    Value out[3];
    Call(e.builder(), cell).input(at(x, t)).input(apply<"linear">(h, e.in(1))).input(c).emit(out, 3);
    h = ys[k] = out[0], c = states[k] = out[1], gates[k] = out[2];
  }
  e.out(0) = stack(ys);
  e.out(1) = keep ? stack(states) : unsqueeze(c, 0);
  if (keep) {
    e.out(2) = stack(gates);
    return;
  }
  const pg_ints none{3, {0, c.dim(0), static_cast<int64_t>(kKept) * known(c.dim(1))}};
  Value nothing = Call(e.builder(), empty).set(0, none).set(1, x.dtype()).emit();
  if (nothing.device() != x.device()) nothing = Call(e.builder(), move).input(nothing).set(0, x.device()).emit();
  e.out(2) = nothing;
}

// By what the steps are made of, computed anew: they are functions of x, which what is recorded here must not take for
// constants.
void gradient(GradContext& g) {
  Value x = g.in(0), weight = g.in(1), dy = g.dout(0), dstates = g.dout(1), dgates = g.dout(2);
  if (!dy && !dstates && !dgates) return;
  const uint32_t dtype = x.dtype();
  const int64_t count = known(x.dim(0));
  const auto places = static_cast<size_t>(count);
  const std::vector<int64_t> order = walk(count, g.get<bool>("reverse"));
  const bool keep = g.get<bool>("keep");
  std::vector<Step> steps(places);
  std::vector<Value> hs(places), cs(places), dsums(places);
  Value h = g.in(2), c = g.in(3);
  for (int64_t t : order) {
    const auto k = static_cast<size_t>(t);
    hs[k] = h, cs[k] = widen(c);
    steps[k] = step(widen(at(x, t)) + widen(apply<"linear">(h, weight)), cs[k]);
    h = cast(steps[k].o * steps[k].t, dtype), c = cast(steps[k].next, dtype);
  }
  Value dh, dc;
  for (size_t i = places; i-- > 0;) {
    const int64_t t = order[i];
    const auto k = static_cast<size_t>(t);
    Value kept[kKept];
    if (dgates && keep)
      for (uint32_t j = 0; j < kKept; j++) kept[j] = part(widen(at(dgates, t)), cs[k], kKept, j);
    if (dy) dh = added(dh, widen(at(dy, t)));
    if (dstates && (keep || i + 1 == places)) dc = added(dc, widen(at(dstates, keep ? t : 0)));
    if (!dh && !dc && !kept[0]) {
      dsums[k] = zeros_like(at(x, t));
      continue;
    }
    const Slopes d = back(steps[k], cs[k], dh, dc, kept);
    dsums[k] = cast(d.sums, dtype);
    dh = widen(matmul(dsums[k], weight)), dc = d.c;
  }
  Value all = stack(dsums);
  auto rows = [](Value v) { return reshape(v, {2, {dim_mul(v.dim(0), v.dim(1)), v.dim(2)}}); };
  if (g.needed(0)) g.din(0) = all;
  if (g.needed(1)) g.din(1) = matmul(rows(all), rows(stack(hs)), true);
  if (g.needed(2) && dh) g.din(2) = cast(dh, dtype);
  if (g.needed(3) && dc) g.din(3) = cast(dc, dtype);
}

void back_by_cells(ExpandContext& e) {
  static constinit OpRef cell("lstm_cell_grad");
  Value gates = e.in(3), states = e.in(4), weight = e.in(5), c = e.in(6);
  const int64_t count = known(gates.dim(0));
  const std::vector<int64_t> order = walk(count, e.get<bool>("reverse"));
  std::vector<Value> dxs(order.size());
  Value dh = e.has(1) ? e.in(1) : zeros_like(c), dc = e.has(2) ? e.in(2) : Value{};
  for (size_t i = order.size(); i-- > 0;) {
    if (e.has(0)) dh = dh + at(e.in(0), order[i]);
    Value out[2];
    Call(e.builder(), cell)
        .input(dh)
        .input(dc)
        .input(at(gates, order[i]))
        .input(i > 0 ? at(states, order[i - 1]) : c)
        .emit(out, 2);
    dxs[static_cast<size_t>(order[i])] = out[0], dc = out[1];
    dh = matmul(out[0], weight);
  }
  e.out(0) = stack(dxs), e.out(1) = dh, e.out(2) = dc;
}

PG_OP("lstm_steps")
    .category("neural")
    .doc(
        "All steps of a long short-term memory in one direction behind the product with its inputs: step t is "
        "lstm_cell(x[t], h weight^T, c), which makes the h and c of the next one.")
    .input("x", kFloating, "[T, n, 4 size]: the inputs' part of the gates")
    .input("weight", kFloating, "[4 size, size]: what h is multiplied with")
    .input("h", kFloating, "[n, size]: before the first step")
    .input("c", kFloating, "[n, size]")
    .attr<bool>("reverse", false, "from the last step to the first")
    .attr<bool>("keep", true, "whether all steps' c and gates are answered, which the way back needs")
    .output("y", "[T, n, size]: h after each step")
    .output("states", "[T, n, size]: c after each step; without `keep` [1, n, size], after the last one taken")
    .output("gates", "[T, n, 5 size]: of each step what lstm_cell answers; without `keep` [0, n, 5 size]")
    .shape([](ShapeContext& c) {
      check_steps(c, 1, 2);
      check_row_of_steps(c, 0, 2, kGates);
      c.check_same_shape(3, 2), c.check_same_dtype(3, 2);
      const bool keep = c.get<bool>("keep");
      const Dim count = c.dim(0, 0), n = c.dim(2, 0), size = c.dim(2, 1);
      c.out(0).set(c.dtype(0), {count, n, size});
      c.out(1).set(c.dtype(0), {keep ? count : Dim(1), n, size});
      c.out(2).set(c.dtype(0), {keep ? count : Dim(0), n, Dim(kKept) * size});
    })
    .saves("x", "weight", "h", "c")
    .grad(gradient)
    .decompose(forward);

PG_OP("lstm_steps_grad")
    .category("neural")
    .doc(
        "What flows into x, h and c of lstm_steps, by its results: in one pass, for layers that know their way "
        "back. It has no gradient of its own.")
    .input("dy", kFloating, "[T, n, size]", PG_INPUT_OPTIONAL)
    .input("dh", kFloating, "[n, size]: into the last h beside dy", PG_INPUT_OPTIONAL)
    .input("dc", kFloating, "[n, size]: into the last c", PG_INPUT_OPTIONAL)
    .input("gates", kFloating, "[T, n, 5 size], of lstm_steps")
    .input("states", kFloating, "[T, n, size], of lstm_steps")
    .input("weight", kFloating, "[4 size, size]")
    .input("c", kFloating, "[n, size]: before the first step")
    .attr<bool>("reverse", false, "as in lstm_steps")
    .output("dx", "[T, n, 4 size]")
    .output("dh0", "[n, size]")
    .output("dc0", "[n, size]")
    .shape([](ShapeContext& c) {
      check_steps(c, 5, 6);
      check_row_of_steps(c, 3, 6, kKept);
      check_row_of_steps(c, 4, 6, 1);
      c.check_dim(4, 0, c.dim(3, 0), "the number of steps");
      if (c.has(0)) c.check_same_shape(0, 4), c.check_same_dtype(0, 4);
      for (uint32_t i = 1; i < 3; i++)
        if (c.has(i)) c.check_same_shape(i, 6), c.check_same_dtype(i, 6);
      c.need(c.has(0) || c.has(1) || c.has(2), "got none of dy, dh and dc; expected at least one");
      c.out(0).set(c.dtype(6), {c.dim(3, 0), c.dim(6, 0), Dim(kGates) * c.dim(6, 1)});
      c.out(1) = c.in(6);
      c.out(2) = c.in(6);
    })
    .saves("gates", "states", "weight", "c")
    .grad([](GradContext&) { fail(PG_E_NOT_SUPPORTED, "lstm_steps_grad has no gradient"); })
    .decompose(back_by_cells);

}  // namespace
}  // namespace pg::schema_lstm_steps
