// SPDX-License-Identifier: Apache-2.0
// Layers that apply one elementwise operator, or one along an axis.
#include "perigee/functions.hpp"
#include "perigee/layer.hpp"

namespace {

// Those without attributes: a row a layer.
struct Row {
  const char *name, *doc;
  pg::OpRef op;
};
const Row kRows[] = {
    {"ReLU", "max(x, 0)", pg::OpRef("relu")},
    {"ReLU6", "x limited to [0, 6]", pg::OpRef("relu6")},
    {"Sigmoid", "1 / (1 + exp(-x))", pg::OpRef("sigmoid")},
    {"LogSigmoid", "log(1 / (1 + exp(-x)))", pg::OpRef("logsigmoid")},
    {"Tanh", "(exp(x) - exp(-x)) / (exp(x) + exp(-x))", pg::OpRef("tanh")},
    {"Tanhshrink", "x - tanh(x)", pg::OpRef("tanhshrink")},
    {"SiLU", "x sigmoid(x) (Elfwing, Uchibe and Doya, 2017)", pg::OpRef("silu")},
    {"Mish", "x tanh(softplus(x)) (Misra, 2019)", pg::OpRef("mish")},
    {"Hardswish", "x relu6(x + 3) / 6 (Howard et al., 2019)", pg::OpRef("hardswish")},
    {"Hardsigmoid", "relu6(x + 3) / 6", pg::OpRef("hardsigmoid")},
    {"SELU",
     "1.0507 x where positive, 1.7581 (exp(x) - 1) elsewhere, which keeps mean 0 and variance 1 (Klambauer et al., "
     "2017)",
     pg::OpRef("selu")},
    {"Softsign", "x / (1 + |x|)", pg::OpRef("softsign")},
};

struct Activation {
  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const { return c.call(c.extra<Row>().op).input(c.input()).emit(); }
};

[[maybe_unused]] const int registered = [] {
  for (const Row& row : kRows) pg::add_layer<Activation>(row.name, row.doc, &row);
  return 0;
}();

// Those with one number, or two, whose defaults are given in hundredths.
template <pg::OpName name, pg::OpName attr, int initial>
struct OneNumber {
  double value = initial / 100.0;

  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(name.text, attr.text);
    return c.call(op).input(c.input()).set(0, value).emit();
  }
};
template <pg::OpName name, pg::OpName first_attr, int first_initial, pg::OpName second_attr, int second_initial>
struct TwoNumbers {
  double first = first_initial / 100.0, second = second_initial / 100.0;

  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(name.text, first_attr.text, second_attr.text);
    return c.call(op).input(c.input()).set(0, first).set(1, second).emit();
  }
};

using LeakyRelu = OneNumber<"leaky_relu", "negative_slope", 1>;
PG_LAYER(LeakyRelu, "LeakyReLU", "x where positive, negative_slope x elsewhere (Maas, Hannun and Ng, 2013)")
    .attr(&LeakyRelu::value, "negative_slope", "slope for x < 0");

using Elu = OneNumber<"elu", "alpha", 100>;
PG_LAYER(Elu, "ELU", "x where positive, alpha (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2015)")
    .attr(&Elu::value, "alpha", "minus the limit for x to -inf");

using Celu = OneNumber<"celu", "alpha", 100>;
PG_LAYER(Celu, "CELU", "x where positive, alpha (exp(x / alpha) - 1) elsewhere (Barron, 2017)")
    .attr(&Celu::value, "alpha", "minus the limit for x to -inf");

using Hardshrink = OneNumber<"hardshrink", "lambd", 50>;
PG_LAYER(Hardshrink, "Hardshrink", "x, but 0 where |x| <= lambd")
    .attr(&Hardshrink::value, "lambd", "below it x is taken for 0");

using Softshrink = OneNumber<"softshrink", "lambd", 50>;
PG_LAYER(Softshrink, "Softshrink", "x - lambd where x > lambd, x + lambd where x < -lambd, 0 between")
    .attr(&Softshrink::value, "lambd", "how far x is moved, at most to 0");

using Hardtanh = TwoNumbers<"hardtanh", "min_val", -100, "max_val", 100>;
PG_LAYER(Hardtanh, "Hardtanh", "x limited to [min_val, max_val]")
    .attr(&Hardtanh::first, "min_val", "lower bound")
    .attr(&Hardtanh::second, "max_val", "upper bound");

using Softplus = TwoNumbers<"softplus", "beta", 100, "threshold", 2000>;
PG_LAYER(Softplus, "Softplus", "log(1 + exp(beta x)) / beta, and x where beta x > threshold")
    .attr(&Softplus::first, "beta", "how sharp the bend at 0 is")
    .attr(&Softplus::second, "threshold", "beta x from which on the result is x");

using Threshold = TwoNumbers<"threshold", "threshold", 0, "value", 0>;
PG_LAYER(Threshold, "Threshold", "x where x > threshold, value elsewhere")
    .attr(&Threshold::first, "threshold", "what x must exceed", PG_ATTR_REQUIRED)
    .attr(&Threshold::second, "value", "what stands in for the others", PG_ATTR_REQUIRED);

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

struct Prelu {
  int64_t num_parameters = 1;
  double init = 0.25;

  void parameters(pg::Params& p) {
    p.positive(num_parameters, "num_parameters");
    p.constant(0, pg::make_ints({num_parameters}), init);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("prelu");
    return c.call(op).input(c.input()).input(c.param(0)).emit();
  }
};

PG_LAYER(Prelu, "PReLU", "x where positive, weight x elsewhere, with learnt slopes (He, Zhang, Ren and Sun, 2015)")
    .attr(&Prelu::num_parameters, "num_parameters", "1, or as many as the input's axis 2 has")
    .attr(&Prelu::init, "init", "what the slopes begin with")
    .params({"weight"});

// Along an axis: the same struct, another operator.
struct AxisRow {
  const char *name, *doc, *axis;
  pg::OpRef op;
};
const AxisRow kAxisRows[] = {
    {"Softmax", "exp(x) / sum(exp(x)) along `axis`", "axis to normalise", pg::OpRef("softmax", "axis")},
    {"LogSoftmax", "log(exp(x) / sum(exp(x))) along `axis`: x - log(sum(exp(x)))", "axis to normalise",
     pg::OpRef("log_softmax", "axis")},
    {"GLU",
     "a sigmoid(b), a and b being the halves of x along `axis`, which is half as long in the result (Dauphin et al., "
     "2016)",
     "axis to halve", pg::OpRef("glu", "axis")},
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
    pg::add_layer<AlongAxis>(row.name, row.doc, &row).axis(&AlongAxis::axis, "axis", row.axis);
  }
  return 0;
}();

}  // namespace
