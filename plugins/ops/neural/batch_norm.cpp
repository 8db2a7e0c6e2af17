// SPDX-License-Identifier: Apache-2.0
// batch_norm and batch_norm_grad; batch_norm_activation applies an activation in the same pass.
#include "normalise.hpp"

namespace pg::schema_batch_norm {
namespace {

void check_channels(const ShapeContext& c, uint32_t input, uint32_t x) {
  if (!c.has(input)) return;
  c.check_rank(input, 1, 1);
  c.check_dim(input, 0, c.dim(x, 1), "the channels of x");
  check_affine(c, input, x);
}

void infer(ShapeContext& c) {
  c.check_rank(0, 2);
  for (uint32_t i = 1; i < 5; i++) check_channels(c, i, 0);
  c.need(c.has(3) == c.has(4), "running_mean and running_var go together; %s is missing", c.name(c.has(3) ? 4 : 3));
  bool training = c.get<bool>("training");
  c.need(training || c.has(3), "running_mean and running_var are missing; evaluation needs them");
  if (training) {
    Shape others = c.shape(0);
    others.erase(1);
    c.need(!others.count().is(1), "%s has one element per channel, which has no variance; expected more in training",
           c.text(0).c_str());
  }
  uint32_t dtype = statistics_dtype(c.dtype(0));
  c.out(0) = c.in(0);
  c.out(1).set(dtype, Shape{c.dim(0, 1)});
  c.out(2).set(dtype, Shape{c.dim(0, 1)});
}

pg_ints all_but_channels(uint32_t rank) {
  pg_ints axes{};
  for (uint32_t i = 0; i < rank; i++)
    if (i != 1) axes.value[axes.count++] = i;
  return axes;
}

// [C] as [C, 1, ...], to broadcast against x.
Value per_channel(Value v, uint32_t rank) {
  if (!v || rank == 2) return v;
  pg_ints shape = make_ints({v.dim(0)});
  while (shape.count < static_cast<int64_t>(rank) - 1) shape.value[shape.count++] = 1;
  return reshape(v, shape);
}

// Inputs of batch_norm_grad.
struct Inputs {
  Value dy, x, weight, mean, invstd;
};
template <class Context>
Inputs inputs_of(const Context& c) {
  return {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)};
}

// dy: what flows back to the normalisation's result.
void differentiate(GradContext& g, Value dy) {
  static constinit OpRef op("batch_norm_grad", "training", "eps");
  Value d[3];
  Call(g.builder(), op)
      .input(dy)
      .input(g.in(0))
      .input(g.in(1))
      .input(g.out(1))
      .input(g.out(2))
      .set(0, g.get<bool>("training"))
      .set(1, g.get<double>("eps"))
      .emit(d, 3);
  if (g.needed(0)) g.din(0) = d[0];
  if (g.needed(1)) g.din(1) = d[1];
  if (g.needed(2)) g.din(2) = cast(d[2], g.in(2).dtype());
}

// In training the statistics are those of x, and computed anew: what is recorded must not take mean and invstd for
// constants.
Normalised normalised_again(const ValueContext& c, const Inputs& in) {
  uint32_t rank = in.x.rank();
  pg_ints axes = all_but_channels(rank);
  if (c.get<bool>("training")) return normalise(in.x, axes, c.get<double>("eps"));
  Value s = per_channel(in.invstd, rank);
  return {(in.x - per_channel(in.mean, rank)) * s, s, axes, true};
}

void decompose_grad(ExpandContext& e) {
  Inputs in = inputs_of(e);
  uint32_t rank = in.x.rank(), dtype = in.weight ? in.weight.dtype() : in.mean.dtype(), given = in.x.dtype();
  in.dy = widen(in.dy), in.x = widen(in.x), in.weight = widen(in.weight);
  Normalised n = normalised_again(e, in);
  e.out(0) = cast(normalised_dx(n, in.dy, per_channel(in.weight, rank)), given);
  e.out(1) = cast(sum(in.dy * n.xh, n.axes), dtype);
  e.out(2) = cast(sum(in.dy, n.axes), dtype);
}

void second_order(GradContext& g) {
  Inputs in = inputs_of(g);
  uint32_t rank = in.x.rank();
  Normalised n = normalised_again(g, in);
  SecondOrder second = normalised_second(n, in.dy, per_channel(in.weight, rank), g.dout(0),
                                         per_channel(g.dout(1), rank), per_channel(g.dout(2), rank));
  if (g.needed(0) && second.ddy) g.din(0) = cast(second.ddy, in.dy.dtype());
  if (g.needed(1) && second.dx) g.din(1) = cast(second.dx, in.x.dtype());
  if (g.needed(2) && second.dweight) g.din(2) = cast(sum(second.dweight, n.axes), in.weight.dtype());
}

const uint32_t kState = PG_INPUT_OPTIONAL | PG_INPUT_MUTATES;

// What batch_norm and one behind an activation share.
OpBuilder& declare_forward(const char* name) {
  return declare_op(name)
      .category("neural")
      .input("x", kFloating, "[N, C, ...]")
      .input("weight", kFloating, "[C]", PG_INPUT_OPTIONAL)
      .input("bias", kFloating, "[C]", PG_INPUT_OPTIONAL)
      .input("running_mean", kFloating, "[C]", kState)
      .written_if("training")
      .input("running_var", kFloating, "[C]", kState)
      .written_if("training")
      .attr<bool>("training", false, "use and track the batch's statistics")
      .attr<double>("momentum", 0.1, "share of the batch in the running statistics")
      .runtime()
      .attr<double>("eps", 1e-5, "added to the variance")
      .runtime()
      .output("y", "shape of x")
      .hidden("mean", "[C]: what y was computed with; float32, float64 for float64")
      .hidden("invstd", "[C]: 1 / sqrt(variance + eps) that y was computed with")
      .shape(infer);
}

void declare_plain() {
  declare_forward("batch_norm")
      .doc(
          "Each channel shifted and scaled to mean 0 and variance 1, then by weight and bias (Ioffe, Szegedy 2015). "
          "training: with the batch's statistics (biased variance), which also move the running ones (unbiased "
          "variance): running = (1 - momentum) running + momentum batch. Otherwise: with the running ones.")
      .saves("x", "weight", "mean", "invstd")
      .grad([](GradContext& g) {
        if (g.dout(0)) differentiate(g, g.dout(0));
      });
}

void declare_activated() {
  declare_forward("batch_norm_activation")
      .doc(
          "An activation of batch_norm, applied while the result is written: the same bits as one after the other. "
          "Statistics are those of x.")
      .choice("activation", {"relu"}, 0, "max(y, 0)")
      .saves("x", "weight", "y", "mean", "invstd")
      .grad([](GradContext& g) {
        if (g.dout(0)) differentiate(g, relu_grad(g.out(0), g.dout(0)));
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef plain("batch_norm", "training", "momentum", "eps");
        Value out[3];
        Call call(e.builder(), plain);
        for (uint32_t i = 0; i < 5; i++) call.input(e.in(i));
        call.set(0, e.get<bool>("training"))
            .set(1, e.get<double>("momentum"))
            .set(2, e.get<double>("eps"))
            .emit(out, 3);
        e.out(0) = relu(out[0]), e.out(1) = out[1], e.out(2) = out[2];
      });
}

const bool declared = [] {
  declare_plain();
  declare_activated();
  return true;
}();

PG_OP("batch_norm_grad")
    .category("neural")
    .doc("Gradients of batch_norm.")
    .input("dy", kFloating, "[N, C, ...]")
    .input("x", kFloating, "[N, C, ...]")
    .input("weight", kFloating, "[C]", PG_INPUT_OPTIONAL)
    .input("mean", kFloating, "[C]")
    .input("invstd", kFloating, "[C]")
    .attr<bool>("training", false, "mean and invstd are statistics of x")
    .attr<double>("eps", 1e-5, "added to the variance")
    .runtime()
    .output("dx", "shape of x")
    .output("dweight", "[C]")
    .output("dbias", "[C]")
    .shape([](ShapeContext& c) {
      c.check_rank(1, 2);
      c.check_same_shape(0, 1);
      for (uint32_t i = 2; i < 5; i++) check_channels(c, i, 1);
      uint32_t dtype = c.has(2) ? c.dtype(2) : c.dtype(3);
      c.out(0) = c.in(1);
      c.out(1).set(dtype, Shape{c.dim(1, 1)});
      c.out(2).set(dtype, Shape{c.dim(1, 1)});
    })
    .saves("dy", "x", "weight", "mean", "invstd")
    .grad(second_order)
    .decompose(decompose_grad);

}  // namespace
}  // namespace pg::schema_batch_norm
