// SPDX-License-Identifier: Apache-2.0
// The formulas of pointwise_losses.cpp, in operators: what an element costs, and the derivatives of that.
#pragma once

#include <cmath>

#include "../rules.hpp"

namespace pg::schema_pointwise_losses {
namespace {

// Values that a formula is of; a is the third tensor of losses that have one, absent where it is left out.
struct Terms {
  const ValueContext& attrs;
  Value x, y, a;
  double tiny;  // the least p (1 - p) that is divided by
};
using Formula = Value (*)(const Terms& t);

// Derivatives of an element's cost: by x, by y, by a; by x and one of them. NULL: 0.
struct Formulas {
  Formula value, x, y, a, xx, xy, xa;
  bool opposite;  // the loss is one of x - y: derivatives by y are those by x with the sign turned
};

Value cast_like(Value condition, Value x) { return cast(condition, x.dtype()); }
double parameter(const Terms& t, const char* name) { return t.attrs.get<double>(name); }
Value softplus(Value x) { return maximum(x, 0.0) + apply<"log1p">(exp(-abs(x))); }

// ---- differences ----

Value mse(const Terms& t) { return square(t.x - t.y); }
Value mse_x(const Terms& t) { return (t.x - t.y) * 2.0; }
Value mse_xx(const Terms& t) { return ones_like(t.x - t.y) * 2.0; }
Value l1(const Terms& t) { return abs(t.x - t.y); }
Value l1_x(const Terms& t) { return sign(t.x - t.y); }

Value huber(const Terms& t) {
  Value d = abs(t.x - t.y), within = minimum(d, parameter(t, "delta"));
  return within * (d - within * 0.5);
}
Value huber_x(const Terms& t) {
  double delta = parameter(t, "delta");
  return maximum(minimum(t.x - t.y, delta), -delta);
}
Value huber_xx(const Terms& t) {
  Value d = t.x - t.y;
  return cast_like(lt(abs(d), parameter(t, "delta")), d);
}
Value smooth_l1(const Terms& t) {
  double beta = parameter(t, "beta");
  Value d = abs(t.x - t.y);
  if (beta == 0) return d;
  Value within = minimum(d, beta);
  return within * (d - within * 0.5) / beta;
}
Value smooth_l1_x(const Terms& t) {
  double beta = parameter(t, "beta");
  if (beta == 0) return l1_x(t);
  return maximum(minimum((t.x - t.y) / beta, 1.0), -1.0);
}
Value smooth_l1_xx(const Terms& t) {
  double beta = parameter(t, "beta");
  Value d = t.x - t.y, inside = cast_like(lt(abs(d), beta), d);
  return beta == 0 ? inside : inside / beta;
}

// ---- probabilities ----

// The least p (1 - p) that is divided by, as in PyTorch; float16 holds no quotient by less than 2^-15.
double tiny_of(Value p) { return p.dtype() == PG_F16 ? 0x1p-15 : 1e-12; }
Value spread_of(Value p, double tiny) { return maximum(p * (1.0 - p), tiny); }
// Logarithms stop at -100. That of 0 is not taken: its slope is infinite.
Value clamped_log(Value x) {
  Value none = eq(x, 0.0);
  return where(none, -100.0, maximum(log(where(none, 1.0, x)), -100.0));
}
Value bce(const Terms& t) {
  Value p = apply<"as_probability">(t.x);
  return -(t.y * clamped_log(p) + (1.0 - t.y) * clamped_log(1.0 - p));
}
Value bce_x(const Terms& t) { return (t.x - t.y) / spread_of(t.x, t.tiny); }
Value bce_y(const Terms& t) { return apply<"bce_odds">(t.x); }
Value bce_xx(const Terms& t) {
  Value top = square(t.x) * (1.0 - t.y) + square(1.0 - t.x) * t.y;
  return top / square((t.x + t.tiny) * (1.0 - t.x + t.tiny));
}
Value bce_xy(const Terms& t) { return -reciprocal(spread_of(t.x, t.tiny)); }

// 1 + (a - 1) y: what positives cost, at a target between.
Value cost_of(const Terms& t) { return t.a * t.y + (1.0 - t.y); }
Value logits(const Terms& t) {
  if (!t.a) return maximum(t.x, 0.0) - t.x * t.y + apply<"log1p">(exp(-abs(t.x)));
  return (1.0 - t.y) * t.x + cost_of(t) * softplus(-t.x);
}
Value logits_x(const Terms& t) {
  if (!t.a) return sigmoid(t.x) - t.y;
  return (1.0 - t.y) - cost_of(t) * sigmoid(-t.x);
}
Value logits_y(const Terms& t) { return t.a ? (t.a - 1.0) * softplus(-t.x) - t.x : -t.x; }
Value logits_a(const Terms& t) { return t.y * softplus(-t.x); }
Value logits_xx(const Terms& t) {
  Value s = sigmoid(t.x), bend = s * (1.0 - s);
  return t.a ? cost_of(t) * bend : bend;
}
Value logits_xy(const Terms& t) { return t.a ? -((t.a - 1.0) * sigmoid(-t.x)) - 1.0 : -ones_like(t.y); }
Value logits_xa(const Terms& t) { return -(t.y * sigmoid(-t.x)); }

bool log_target(const Terms& t) { return t.attrs.get<bool>("log_target"); }
Value log_where_positive(Value y) { return log(where(gt(y, 0.0), y, 1.0)); }
Value kl_div(const Terms& t) {
  if (log_target(t)) return exp(t.y) * (t.y - t.x);
  return t.y * log_where_positive(t.y) - t.y * t.x;
}
Value kl_div_x(const Terms& t) { return -(log_target(t) ? exp(t.y) : t.y); }
Value kl_div_y(const Terms& t) {
  if (log_target(t)) return exp(t.y) * (t.y - t.x + 1.0);
  return log_where_positive(t.y) + cast_like(gt(t.y, 0.0), t.y) - t.x;
}
Value kl_div_xy(const Terms& t) { return -(log_target(t) ? exp(t.y) : ones_like(t.y)); }

// ---- counts ----

bool log_input(const Terms& t) { return t.attrs.get<bool>("log_input"); }
bool full(const Terms& t) { return t.attrs.get<bool>("full"); }
Value mean_of(const Terms& t) { return t.x + parameter(t, "eps"); }
// Stirling's approximation of log(y!), and its derivative.
Value log_factorial(Value y) {
  Value above = gt(y, 1.0), n = where(above, y, 1.0);
  return where(above, n * log(n) - n + log(n * (2 * std::acos(-1.0))) * 0.5, 0.0);
}
Value log_factorial_slope(Value y) {
  Value above = gt(y, 1.0), n = where(above, y, 1.0);
  return where(above, log(n) + 0.5 / n, 0.0);
}
Value poisson(const Terms& t) {
  Value some = log_input(t) ? exp(t.x) - t.y * t.x : t.x - t.y * log(mean_of(t));
  return full(t) ? some + log_factorial(t.y) : some;
}
Value poisson_x(const Terms& t) { return log_input(t) ? exp(t.x) - t.y : 1.0 - t.y / mean_of(t); }
Value poisson_y(const Terms& t) {
  Value some = -(log_input(t) ? t.x : log(mean_of(t)));
  return full(t) ? some + log_factorial_slope(t.y) : some;
}
Value poisson_xx(const Terms& t) { return log_input(t) ? exp(t.x) : t.y / square(mean_of(t)); }
Value poisson_xy(const Terms& t) { return -(log_input(t) ? ones_like(t.y) : reciprocal(mean_of(t))); }

// ---- normal distributions: a is the variance ----

Value at_least_eps(const Terms& t, Value var) {
  static constinit OpRef op("at_least");
  return t.attrs.call(op, var);
}
Value variance(const Terms& t) { return at_least_eps(t, t.a); }
Value gaussian(const Terms& t) {
  Value below = where(lt(t.a, 0.0), t.a, 0.0);  // 0 is a probability, and what is less is none
  Value v = at_least_eps(t, t.a + apply<"as_probability">(below)), some = (log(v) + square(t.x - t.y) / v) * 0.5;
  return full(t) ? some + std::log(2 * std::acos(-1.0)) / 2 : some;
}
Value gaussian_x(const Terms& t) { return (t.x - t.y) / variance(t); }
Value gaussian_a(const Terms& t) {
  static constinit OpRef op("gaussian_nll_by_var");
  return t.attrs.call(op, t.x, t.y, t.a);
}
Value gaussian_xx(const Terms& t) { return reciprocal(variance(t)); }
Value gaussian_xa(const Terms& t) { return (t.y - t.x) / square(variance(t)); }

// ---- margins: targets are 1 and -1 ----

Value within_margin(const Terms& t) { return cast_like(ge(1.0 - t.x * t.y, 0.0), t.x); }
Value hinge(const Terms& t) { return maximum(1.0 - t.x * t.y, 0.0); }
Value hinge_x(const Terms& t) { return -(t.y * within_margin(t)); }
Value hinge_y(const Terms& t) { return -(t.x * within_margin(t)); }
Value hinge_xy(const Terms& t) { return -within_margin(t); }

Value soft_margin(const Terms& t) { return softplus(-(t.x * t.y)); }
Value soft_margin_x(const Terms& t) { return -(t.y * sigmoid(-(t.x * t.y))); }
Value soft_margin_y(const Terms& t) { return -(t.x * sigmoid(-(t.x * t.y))); }
Value soft_margin_xx(const Terms& t) {
  Value s = sigmoid(-(t.x * t.y));
  return square(t.y) * (s * (1.0 - s));
}
Value soft_margin_xy(const Terms& t) {
  Value z = t.x * t.y, s = sigmoid(-z);
  return s * (z * (1.0 - s) - 1.0);
}

Value hinge_embedding(const Terms& t) {
  Value apart = where(ne(t.y, 1.0), maximum(parameter(t, "margin") - t.x, 0.0), 0.0);
  return apart + where(ne(t.y, -1.0), t.x, 0.0);
}
Value hinge_embedding_x(const Terms& t) {
  Value pushes = logical_and(ne(t.y, 1.0), ge(parameter(t, "margin") - t.x, 0.0));
  return cast_like(ne(t.y, -1.0), t.x) - cast_like(pushes, t.x);
}

}  // namespace
}  // namespace pg::schema_pointwise_losses
