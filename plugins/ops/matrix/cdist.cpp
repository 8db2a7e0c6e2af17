// SPDX-License-Identifier: Apache-2.0
// cdist: the distance of every row of one matrix to every row of another.
#include <cmath>

#include "../rules.hpp"

namespace pg::schema_cdist {
namespace {

enum Mode { kIfNecessary, kProducts, kDirect };

// Of the rows and columns of the result: at(shape, 1) is the last axis.
Dim at(const Shape& shape, uint32_t from_end) { return shape[shape.rank - from_end]; }

double order_of(const AttrReader& a) { return a.get<double>("p"); }

Shape batch_of(Shape shape) {
  shape.rank -= 2;
  return shape;
}

void infer(ShapeContext& c) {
  c.check_rank(0, 2), c.check_rank(1, 2);
  c.check_same_dtype(1, 0);
  Shape x = c.shape(0), y = c.shape(1);
  c.need(at(x, 1).may_equal(at(y, 1)), "%s and %s do not fit: rows of %lld elements against rows of %lld",
         c.text(0).c_str(), c.text(1).c_str(), static_cast<long long>(at(x, 1).value),
         static_cast<long long>(at(y, 1).value));
  double p = order_of(c);
  c.need(p >= 0, "p is %g; expected 0 or more", p);
  Shape shape = broadcast(batch_of(x), batch_of(y));
  shape.push(at(x, 2)), shape.push(at(y, 2));
  c.out(0).set(c.dtype(0), shape);
}

// ---- what it is composed of ----

// |x| to the power q, and 0 for x = 0 whatever q is, with slopes.
Value power(Value x, double q) {
  Value none = eq(x, 0.0);
  return where(none, 0.0, pow(where(none, 1.0, abs(x)), q));
}

// x[i] - y[j] for all i and j: [..., n, m, d].
Value differences(Value x, Value y) { return unsqueeze(x, x.rank() - 1) - unsqueeze(y, y.rank() - 2); }

Value transposed(Value x) {
  pg_ints axes{};
  axes.count = x.rank();
  for (int64_t i = 0; i < axes.count; i++) axes.value[i] = i;
  std::swap(axes.value[axes.count - 1], axes.value[axes.count - 2]);
  return permute(x, axes);
}

pg_ints last_axis(Value x) { return make_ints({static_cast<int64_t>(x.rank()) - 1}); }
pg_ints row_axis(Value x) { return make_ints({static_cast<int64_t>(x.rank()) - 2}); }

// Both seen from the middle of y: less is lost where products are subtracted.
void centre(Value& x, Value& y) {
  Value middle = mean(y, row_axis(y), true);
  middle = where(isfinite(middle), middle, 0.0);  // of no rows, too
  x = x - middle, y = y - middle;
}

Value beside(Value x, Value y, Value z) {
  static constinit OpRef op("cat", "axis");
  Value parts[] = {x, y, z};
  return Call(x.builder, op).inputs(parts).set(0, -1).emit();
}

// |x - y|^2 = |x|^2 + |y|^2 - 2 x y, as one product of (-2 x, |x|^2, 1) and (y, 1, |y|^2).
Value by_products(Value x, Value y) {
  centre(x, y);
  Value xx = sum(square(x), last_axis(x), true), yy = sum(square(y), last_axis(y), true);
  return sqrt(maximum(matmul(beside(x * -2.0, xx, ones_like(xx)), beside(y, ones_like(yy), yy), false, true), 0.0));
}

// As PyTorch has it.
bool has_many_rows(Value x) {
  int64_t rows = x.dim(x.rank() - 2);
  return PG_DIM_IS_SYMBOLIC(rows) || rows > 25;
}

Value by_differences(Value x, Value y, double p) {
  Value d = differences(x, y);
  pg_ints axis = last_axis(d);
  if (p == 0) return cast(sum(ne(d, 0.0), axis), x.dtype());
  if (p == 1) return sum(abs(d), axis);
  if (p == 2) return sqrt(sum(square(d), axis));
  if (std::isinf(p)) return d.dim(d.rank() - 1) == 0 ? sum(abs(d), axis) : amax(abs(d), axis);
  return pow(sum(power(d, p), axis), 1 / p);
}

// ---- gradients: dx[i] = sum over j of w[i][j] S(x[i] - y[j]) ----

// w, of the gradient d of the distances z.
Value weights(Value d, Value z, double p) { return p == 1 || std::isinf(p) ? d : d * power(z, 1 - p); }

Value slopes(Value difference, Value z, double p) {
  if (p == 1) return sign(difference);
  if (std::isinf(p))
    return where(eq(abs(difference), unsqueeze(z, z.rank())), sign(difference), 0.0);  // ties have it each
  return power(difference, p - 1) * sign(difference);
}

Value expand_gradient(ExpandContext& e) {
  double p = order_of(e);
  Value d = widen(e.in(0)), x = widen(e.in(1)), y = widen(e.in(2)), z = widen(e.in(3)), w = weights(d, z, p);
  if (p == 2) {
    centre(x, y);
    return sum(w, last_axis(w), true) * x - matmul(w, y);
  }
  Value s = slopes(differences(x, y), z, p);
  return sum(unsqueeze(w, w.rank()) * s, row_axis(s));
}

Value gradient_of(Value d, Value x, Value y, Value z, double p) {
  static constinit OpRef op("cdist_grad", "p");
  return Call(d.builder, op).input(d).input(x).input(y).input(z).set(0, p).emit();
}

// Of dx[i][k] = sum over j of d[i][j] z[i][j]^(1 - p) S(x[i][k] - y[j][k]), with u what flows into dx.
void differentiate_gradient(GradContext& g) {
  double p = order_of(g);
  Value d = g.in(0), x = g.in(1), y = g.in(2), z = g.in(3), u = g.dout(0), w = weights(d, z, p);
  bool curved = p != 1 && !std::isinf(p);
  Value t, s;  // t[i][j] = sum over k of u[i][k] S
  if (p == 2) {
    t = sum(u * x, last_axis(u), true) - matmul(u, y, false, true);
  } else {
    s = differences(x, y);
    t = sum(unsqueeze(u, u.rank() - 1) * slopes(s, z, p), last_axis(s));
  }
  if (g.needed(0)) g.din(0) = weights(t, z, p);
  if (!curved) return;
  if (g.needed(3)) g.din(3) = d * t * power(z, -p) * (1 - p);
  if (!g.needed(1) && !g.needed(2)) return;
  if (p == 2) {
    if (g.needed(1)) g.din(1) = sum_like(u * sum(w, last_axis(w), true), x);
    if (g.needed(2)) g.din(2) = sum_like(-matmul(w, u, true), y);
    return;
  }
  Value h = unsqueeze(w, w.rank()) * unsqueeze(u, u.rank() - 1) * (power(s, p - 2) * (p - 1));
  if (g.needed(1)) g.din(1) = sum_like(sum(h, row_axis(h)), x);
  if (g.needed(2)) g.din(2) = sum_like(-sum(h, make_ints({static_cast<int64_t>(h.rank()) - 3})), y);
}

void differentiate(GradContext& g) {
  double p = order_of(g);
  Value d = g.dout(0), x = g.in(0), y = g.in(1), z = g.out(0);
  if (g.needed(0)) g.din(0) = p == 0 ? zeros_like(x) : sum_like(gradient_of(d, x, y, z, p), x);
  if (g.needed(1)) g.din(1) = p == 0 ? zeros_like(y) : sum_like(gradient_of(transposed(d), y, x, transposed(z), p), y);
}

PG_OP("cdist")
    .category("matrix")
    .doc(
        "The distance (sum |x1 - x2|^p)^(1/p) of every row of x1 to every row of x2; for p = 0 the number of elements "
        "that differ, for p = inf the largest difference. Leading axes broadcast. Where two rows are the same the "
        "gradient is 0.")
    .input("x1", kFloating, "[..., n, d]", PG_INPUT_PROMOTE)
    .input("x2", kFloating, "[..., m, d]", PG_INPUT_PROMOTE)
    .attr<double>("p", 2, "order of the norm, from 0")
    .choice("compute_mode",
            {"use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"},
            kIfNecessary,
            "p = 2: whether by a matrix product, which is faster for long rows, while distances much smaller than the "
            "rows lose digits; if necessary: where there are more than 25 rows, and on the CPU only if they have more "
            "than 24 elements")
    .output("y", "[..., n, m]")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape(infer)
    .saves("x1", "x2", "y")
    .grad(differentiate)
    // Kernels leave to it what is better computed by products.
    .decompose([](ExpandContext& e) {
      Value x = widen(e.in(0)), y = widen(e.in(1));
      double p = order_of(e);
      int32_t mode = e.get<Choice>("compute_mode");
      bool products = p == 2 && (mode == kProducts || (mode == kIfNecessary && (has_many_rows(x) || has_many_rows(y))));
      e.out(0) = cast(products ? by_products(x, y) : by_differences(x, y, p), e.in(0).dtype());
    });

PG_OP("cdist_grad")
    .category("matrix")
    .doc("What flows into x1 of cdist: sum over j of dy[i][j] times the slope of y[i][j] along x1[i].")
    .input("dy", kFloating, "[..., n, m]")
    .input("x1", kFloating, "[..., n, d]")
    .input("x2", kFloating, "[..., m, d]")
    .input("y", kFloating, "[..., n, m]: the distances")
    .attr<double>("p", 2, "order of the norm, above 0")
    .output("dx1", "[..., n, d]")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      for (uint32_t i = 0; i < 4; i++) c.check_rank(i, 2), c.check_same_dtype(i, 0);
      Shape d = c.shape(0), x = c.shape(1), y = c.shape(2);
      c.check_same_shape(3, 0);
      c.need(at(d, 2).may_equal(at(x, 2)) && at(d, 1).may_equal(at(y, 2)) && at(x, 1).may_equal(at(y, 1)),
             "%s does not fit %s and %s", c.text(0).c_str(), c.text(1).c_str(), c.text(2).c_str());
      Shape shape = broadcast(batch_of(x), batch_of(y)), given = batch_of(d);
      bool fits = given.rank == shape.rank;
      for (uint32_t i = 0; fits && i < shape.rank; i++) fits = given[i].may_equal(shape[i]);
      c.need(fits, "%s does not have the leading axes that %s and %s broadcast to", c.text(0).c_str(),
             c.text(1).c_str(), c.text(2).c_str());
      shape.push(at(x, 2)), shape.push(at(x, 1));
      c.out(0).set(c.dtype(0), shape);
    })
    .saves("dy", "x1", "x2", "y")
    .grad(differentiate_gradient)
    .decompose([](ExpandContext& e) { e.out(0) = cast(expand_gradient(e), e.in(0).dtype()); });

}  // namespace
}  // namespace pg::schema_cdist
