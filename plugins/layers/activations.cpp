// SPDX-License-Identifier: Apache-2.0
// Layers without parameters that apply one elementwise operator, or one along an axis.
#include "perigee/layer.hpp"

namespace {

// Those without attributes: a row a layer.
struct Row {
  const char *name, *doc;
  pg::OpRef op;
};
const Row kRows[] = {
    {"ReLU", "max(x, 0)", pg::OpRef("relu")},
    {"Sigmoid", "1 / (1 + exp(-x))", pg::OpRef("sigmoid")},
    {"Tanh", "Hyperbolic tangent", pg::OpRef("tanh")},
    {"SiLU", "x sigmoid(x)", pg::OpRef("silu")},
    {"Softplus", "log(1 + exp(x))", pg::OpRef("softplus")},
};

struct Activation {
  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const { return c.call(c.extra<Row>().op).input(c.input()).emit(); }
};

[[maybe_unused]] const int registered = [] {
  for (const Row& row : kRows) pg::add_layer<Activation>(row.name, row.doc, &row);
  return 0;
}();

constexpr const char* kApproximations[] = {"none", "tanh"};

struct Gelu {
  int32_t approximate = 0;

  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("gelu", "approximate");
    return c.call(op).input(c.input()).set(0, approximate).emit();
  }
};

PG_LAYER(Gelu, "GELU", "x Phi(x), with Phi the normal distribution's cumulative function (Hendrycks and Gimpel, 2016)")
    .choice(&Gelu::approximate, "approximate", "none: by erf; tanh: by its approximation", kApproximations);

struct LeakyRelu {
  double negative_slope = 0.01;

  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("leaky_relu", "negative_slope");
    return c.call(op).input(c.input()).set(0, negative_slope).emit();
  }
};

PG_LAYER(LeakyRelu, "LeakyReLU", "x where positive, negative_slope x elsewhere")
    .attr(&LeakyRelu::negative_slope, "negative_slope", "slope for x < 0");

struct Elu {
  double alpha = 1;

  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("elu", "alpha");
    return c.call(op).input(c.input()).set(0, alpha).emit();
  }
};

PG_LAYER(Elu, "ELU", "x where positive, alpha (exp(x) - 1) elsewhere")
    .attr(&Elu::alpha, "alpha", "limit for x to -inf");

// Softmax and LogSoftmax: the same struct, another operator.
struct AxisRow {
  const char *name, *doc;
  pg::OpRef op;
};
const AxisRow kAxisRows[] = {
    {"Softmax", "Exponentials scaled to sum to 1 along `axis`", pg::OpRef("softmax", "axis")},
    {"LogSoftmax", "Logarithm of the softmax along `axis`", pg::OpRef("log_softmax", "axis")},
};

struct AlongAxis {
  int64_t axis = -1;

  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const {
    return c.call(c.extra<AxisRow>().op).input(c.input()).set(0, axis).emit();
  }
};

[[maybe_unused]] const int registered_along = [] {
  for (const AxisRow& row : kAxisRows) {
    pg::add_layer<AlongAxis>(row.name, row.doc, &row).axis(&AlongAxis::axis, "axis", "axis to normalise");
  }
  return 0;
}();

}  // namespace
