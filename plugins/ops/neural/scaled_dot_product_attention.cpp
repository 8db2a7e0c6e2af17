// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention and scaled_dot_product_attention_grad.
#include "attention.hpp"

namespace pg::schema_scaled_dot_product_attention {
namespace {

enum Input { kQ, kK, kV, kMask, kKey };

OpBuilder& attention_attrs(OpBuilder& op) {
  return op.attr<bool>("is_causal", false, "query i sees keys 0 to i")
      .attr<double>("scale", 0, "of the scores; 0: 1 / sqrt(E)")
      .runtime()
      .attr<double>("dropout_p", 0, "probability of dropping a weight; used where there is a key")
      .runtime();
}

// Checks q k v mask key, the first of which is input `q`.
void check_attention(const ShapeContext& c, uint32_t q) {
  uint32_t k = q + kK, v = q + kV, mask = q + kMask, key = q + kKey, rank = c.rank(q);
  c.check_rank(q, 2);
  for (uint32_t other : {k, v}) {
    c.check_rank(other, rank, rank);
    c.check_same_dtype(other, q);
    for (uint32_t i = 0; i + 2 < rank; i++) c.check_dim(other, i, c.dim(q, i), "as in q");
  }
  c.check_dim(k, rank - 1, c.dim(q, rank - 1), "the width of q");
  c.check_dim(v, rank - 2, c.dim(k, rank - 2), "the number of keys");
  if (c.has(key)) {
    c.check_rank(key, 1, 1);
    c.check_dim(key, 0, 2, "a seed and an offset");
    c.need(c.dtype(key) == PG_I64, "key is %s; expected int64", dtype_name(c.dtype(key)));
  }
  if (!c.has(mask)) return;
  uint32_t dtype = c.dtype(mask);
  c.need(dtype == PG_B8 || dtype == c.dtype(q) || dtype == statistics_dtype(c.dtype(q)),
         "mask is %s; expected bool (true: may be seen) or %s (added to the scores)", dtype_name(dtype),
         dtype_name(c.dtype(q)));
  Shape scores = c.shape(q);
  scores.dims[rank - 1] = c.dim(k, rank - 2).value;
  Shape both = broadcast(scores, c.shape(mask));
  bool fits = both.rank == rank;
  for (uint32_t i = 0; fits && i < rank; i++) fits = both[i].may_equal(scores[i]);
  c.need(fits, "%s does not broadcast to the scores %s", c.text(mask).c_str(), scores.text().c_str());
}

Shape rows_of(const ShapeContext& c, uint32_t q) {
  Shape shape = c.shape(q);
  shape.rank--;
  return shape;
}

void differentiate(GradContext& g) {
  static constinit OpRef op("scaled_dot_product_attention_grad");
  Value dout = g.dout(0), lse = g.out(1);
  if (!dout) return;
  uint32_t dtype = lse.dtype();
  if (g.needed(kQ) || g.needed(kK) || g.needed(kV)) {
    Value d[3], delta = sum(cast(dout, dtype) * cast(g.out(0), dtype), make_ints({-1}));
    Call call(g.builder(), op);
    call.copy_attrs(g.info(), g.data()).input(dout);
    for (uint32_t i : {kQ, kK, kV, kMask, kKey}) call.input(g.in(i));
    call.input(lse).input(delta).emit(d, 3);
    for (uint32_t i : {kQ, kK, kV})
      if (g.needed(i)) g.din(i) = d[i];
  }
  if (!g.needed(kMask)) return;  // a mask that learns: as large as the scores anyway
  // Of q, k, v and mask alone: see decompose_grad.
  Attention a(g, g.in(kQ), g.in(kK), g.in(kV), g.in(kMask), g.in(kKey));
  Value dp = a.drop(matmul(cast(dout, dtype), a.v(), false, true));
  Value ds = softmax_slope(a.softmax(a.scores()), dp);
  g.din(kMask) = cast(sum_like(ds, g.in(kMask)), g.in(kMask).dtype());
}

// From q, k and v alone: lse and delta are functions of them, which what is recorded here must not take for constants.
void decompose_grad(ExpandContext& e) {
  Value dout = e.in(0);
  Attention a(e, e.in(1), e.in(2), e.in(3), e.in(4), e.in(5));
  Value d = cast(dout, e.in(6).dtype()), p = a.softmax(a.scores());
  Value ds = softmax_slope(p, a.drop(matmul(d, a.v(), false, true))) * a.scale();
  e.out(0) = cast(matmul(ds, a.k()), dout.dtype());
  e.out(1) = cast(matmul(ds, a.q(), true, false), dout.dtype());
  e.out(2) = cast(matmul(a.drop(p), d, true, false), dout.dtype());
}

// With D = dout: dS = softmax_slope(P, M (D v')), dq = s dS k, dk = s dS' q, dv = (P M)' D. a, b, c: cotangents of dq,
// dk, dv; lse and delta count as functions of the other inputs.
void second_order(GradContext& g) {
  Value dout = g.in(0);
  Attention t(g, g.in(1), g.in(2), g.in(3), g.in(4), g.in(5));
  uint32_t dtype = t.q().dtype();
  double s = t.scale();
  auto cotangent = [&](uint32_t i) { return g.dout(i) ? cast(g.dout(i), dtype) : Value{}; };
  Value a = cotangent(0), b = cotangent(1), c = cotangent(2), d = cast(dout, dtype);
  Value p = t.softmax(t.scores()), dp = t.drop(matmul(d, t.v(), false, true));
  Value to_d, to_q, to_k, to_v, to_p;
  if (a || b) {
    Value ds = softmax_slope(p, dp), u;
    if (a) u = matmul(a, t.k(), false, true) * s, to_k = matmul(ds, a, true, false) * s;
    if (b) u = plus(u, matmul(t.q(), b, false, true) * s), to_q = matmul(ds, b) * s;
    pg_ints last = make_ints({-1});
    Value along_p = sum(u * p, last, true);
    to_p = u * (dp - sum(p * dp, last, true)) - dp * along_p;
    Value x = t.drop(p * (u - along_p));  // the cotangent of D v'
    to_d = matmul(x, t.v()), to_v = matmul(x, d, true, false);
  }
  if (c) {
    to_p = plus(to_p, t.drop(matmul(d, c, false, true)));
    to_d = plus(to_d, matmul(t.drop(p), c));
  }
  if (!to_p) return;
  Value scores = softmax_slope(p, to_p);
  to_q = plus(to_q, matmul(scores, t.k()) * s), to_k = plus(to_k, matmul(scores, t.q(), true, false) * s);
  Value results[] = {to_d, to_q, to_k, to_v};
  for (uint32_t i = 0; i < 4; i++)
    if (g.needed(i) && results[i]) g.din(i) = cast(results[i], dout.dtype());
  if (g.needed(4)) g.din(4) = cast(sum_like(scores, g.in(4)), g.in(4).dtype());
}

OpBuilder& attention_inputs(OpBuilder& op) {
  return op.input("q", kFloating, "[..., L, E]")
      .input("k", kFloating, "[..., S, E]")
      .input("v", kFloating, "[..., S, V]")
      .input("mask", kFloating | kBool,
             "[..., L, S] or what broadcasts to it: bool, true where a key may be seen, or "
             "a number that is added to the score",
             PG_INPUT_OPTIONAL)
      .input("key", kInteger, "[2] int64: seed and offset of the dropout; none: nothing is dropped", PG_INPUT_OPTIONAL);
}

const bool declared = [] {
  OpBuilder& forward = declare_op("scaled_dot_product_attention").category("neural").numeric(PG_NUMERIC_LOWER);
  attention_attrs(attention_inputs(forward))
      .doc(
          "softmax(q k' scale + mask) v (Vaswani et al. 2017), in memory linear in L and S where the device has a "
          "kernel (Dao et al. 2022). A query that may see nothing gets 0. A weight is dropped where dropout_mask says "
          "so. Scores of 16-bit floats are float32.")
      .output("out", "[..., L, V]")
      .hidden("lse", "[..., L]: logarithm of the sum of the exponentials of a query's scores; float32 or float64")
      .shape([](ShapeContext& c) {
        check_attention(c, 0);
        Shape out = rows_of(c, 0);
        out.push(c.dim(kV, c.rank(kV) - 1));
        c.out(0).set(c.dtype(0), out);
        c.out(1).set(statistics_dtype(c.dtype(0)), rows_of(c, 0));
      })
      .saves("q", "k", "v", "mask", "key", "out", "lse")
      .grad(differentiate)
      .decompose([](ExpandContext& e) {
        Attention a(e, e.in(kQ), e.in(kK), e.in(kV), e.in(kMask), e.in(kKey));
        Value lse, p = a.softmax(a.scores(), e.output_count() > 1 ? &lse : nullptr);
        e.out(0) = cast(matmul(a.drop(p), a.v()), e.in(kQ).dtype());
        if (lse) e.out(1) = lse;
      });

  OpBuilder& backward = declare_op("scaled_dot_product_attention_grad").category("neural");
  attention_attrs(attention_inputs(backward.input("dout", kFloating, "[..., L, V]"))
                      .input("lse", kFloating, "[..., L]")
                      .input("delta", kFloating, "[..., L]: sum of dout out over V"))
      .doc("Gradients of scaled_dot_product_attention: the scores are computed again.")
      .output("dq", "[..., L, E]")
      .output("dk", "[..., S, E]")
      .output("dv", "[..., S, V]")
      .shape([](ShapeContext& c) {
        check_attention(c, 1);
        c.check_same_dtype(0, 1);
        uint32_t rank = c.rank(1);
        c.check_rank(0, rank, rank);
        for (uint32_t i = 0; i + 1 < rank; i++) c.check_dim(0, i, c.dim(1, i), "as in q");
        c.check_dim(0, rank - 1, c.dim(3, rank - 1), "the width of v");
        for (uint32_t statistic : {6u, 7u}) {
          c.check_rank(statistic, rank - 1, rank - 1);
          for (uint32_t i = 0; i + 1 < rank; i++) c.check_dim(statistic, i, c.dim(1, i), "as in q");
          c.need(c.dtype(statistic) == statistics_dtype(c.dtype(1)), "%s is %s; expected %s", c.name(statistic),
                 dtype_name(c.dtype(statistic)), dtype_name(statistics_dtype(c.dtype(1))));
        }
        for (uint32_t i = 0; i < 3; i++) c.out(i) = c.in(i + 1);
      })
      .saves("dout", "q", "k", "v", "mask", "key", "lse", "delta")
      .grad(second_order)
      .decompose(decompose_grad);
  return true;
}();

}  // namespace
}  // namespace pg::schema_scaled_dot_product_attention
