// SPDX-License-Identifier: Apache-2.0
// The elementwise optimizer steps, a row each. Their arithmetic is in perigee/kernels/optimizer.hpp.
#include "groups.hpp"

namespace pg::schema_updates {
namespace {

struct State {
  const char *name, *doc;
  bool optional = false;
};
struct Number {
  const char* name;
  double value;
  const char* doc;
};
struct Update {
  const char *name, *doc;
  std::vector<State> states;
  std::vector<Number> numbers;
  const char *flag = nullptr, *flag_doc = nullptr;
};

const Number kBeta1 = {"beta1", 0.9, "decay of the mean"}, kBeta2 = {"beta2", 0.999, "decay of the mean square"},
             kEps = {"eps", 1e-8, "added to the root"};
const State kMeans = {"exp_avgs", "shapes of params: m"}, kSquares = {"exp_avg_sqs", "shapes of params: v"};

const Update kUpdates[] = {
    {"sgd",
     "One step of gradient descent: where there are momentum buffers, b = momentum b + (1 - dampening) g (b = g on the "
     "first step), and g = b, or g + momentum b for nesterov (Sutskever et al. 2013); param -= lr g.",
     {{"momentum_buffers", "shapes of params, or none: b", true}},
     {{"momentum", 0, "decay of the buffers"}, {"dampening", 0, "how much of the gradient is left out of the buffers"}},
     "nesterov",
     "look ahead"},
    {"adam",
     "One step of Adam (Kingma, Ba 2015): m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, "
     "param -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps). decoupled: no weight decay in g; param "
     "is first scaled by 1 - lr weight_decay (AdamW: Loshchilov, Hutter 2019). With max_exp_avg_sqs, the largest v so "
     "far stands in for v (AMSGrad: Reddi et al. 2018).",
     {kMeans, kSquares, {"max_exp_avg_sqs", "shapes of params, or none: the largest v", true}},
     {kBeta1, kBeta2, kEps},
     "decoupled",
     "decay the parameters directly"},
    {"rmsprop",
     "One step of RMSprop (Tieleman, Hinton 2012): v = alpha v + (1 - alpha) g^2; with mean_gradients, "
     "a = alpha a + (1 - alpha) g and v - a^2 in place of v below (Graves 2013); d = g / (sqrt(v) + eps); with "
     "momentum_buffers, b = momentum b + d and d = b; param -= lr d.",
     {{"square_avgs", "shapes of params: v"},
      {"momentum_buffers", "shapes of params, or none: b", true},
      {"grad_avgs", "shapes of params, or none: a", true}},
     {{"alpha", 0.99, "decay of the means"}, kEps, {"momentum", 0, "decay of the buffers"}}},
    {"lion",
     "One step of Lion (Chen et al. 2023): param = param (1 - lr weight_decay) - lr sign(beta1 m + (1 - beta1) g), "
     "then m = beta2 m + (1 - beta2) g. Weight decay is not part of g.",
     {kMeans},
     {{"beta1", 0.9, "part of the momentum in the step"}, {"beta2", 0.99, "decay of the momentum"}}},
    {"adagrad",
     "One step of Adagrad (Duchi, Hazan, Singer 2011): s = s + g^2, param -= lr / (1 + (step - 1) lr_decay) g / "
     "(sqrt(s) + eps); s is initial_accumulator_value before the first step.",
     {{"sums", "shapes of params: s"}},
     {{"lr_decay", 0, "how the step size falls"},
      {"initial_accumulator_value", 0, "where the sums begin"},
      {"eps", 1e-10, "added to the root"}}},
    {"adadelta",
     "One step of Adadelta (Zeiler 2012): v = rho v + (1 - rho) g^2, d = sqrt(a + eps) / sqrt(v + eps) g, "
     "a = rho a + (1 - rho) d^2, param -= lr d.",
     {{"square_avgs", "shapes of params: v"}, {"acc_deltas", "shapes of params: a"}},
     {{"rho", 0.9, "decay of the means"}, {"eps", 1e-6, "added to both means"}}},
    {"adamax",
     "One step of Adamax (Kingma, Ba 2015, section 7): m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g| + eps), "
     "param -= lr / (1 - beta1^step) m / u.",
     {kMeans, {"exp_infs", "shapes of params: u"}},
     {kBeta1, {"beta2", 0.999, "decay of the largest gradient"}, {"eps", 1e-8, "added to the gradient's size"}}},
    {"nadam",
     "One step of NAdam (Dozat 2016): m and v as in adam, mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2), and with "
     "mu = mu(step), mu' = mu(step + 1) and p the product of all mu up to this step's: param -= lr ((1 - mu) / (1 - p) "
     "g "
     "+ mu' / (1 - p mu') m) / (sqrt(v / (1 - beta2^step)) + eps).",
     {kMeans, kSquares},
     {kBeta1, kBeta2, kEps, {"momentum_decay", 4e-3, "how fast the momentum reaches beta1"}}},
    {"radam",
     "One step of RAdam (Liu et al. 2020): m and v as in adam, and with n = 2 / (1 - beta2) - 1, "
     "k = n - 2 step beta2^step / (1 - beta2^step): param -= lr m / (1 - beta1^step) r, where "
     "r = sqrt((k - 4)(k - 2) n / ((n - 4)(n - 2) k)) sqrt(1 - beta2^step) / (sqrt(v) + eps) for k > 5, else 1.",
     {kMeans, kSquares},
     {kBeta1, kBeta2, kEps}},
    {"rprop",
     "One step of Rprop (Riedmiller, Braun 1993): the step length of an element, lr at first, is scaled by etaplus "
     "where g keeps its sign, by etaminus where it changes (g then counts as 0), and kept within step_min and "
     "step_max; param -= sign(g) length.",
     {{"prevs", "shapes of params: the last g"}, {"step_sizes", "shapes of params: step lengths"}},
     {{"etaminus", 0.5, "shrinks"},
      {"etaplus", 1.2, "grows"},
      {"step_min", 1e-6, "shortest"},
      {"step_max", 50, "longest"}}},
};

void declare(const Update& row) {
  OpBuilder& op = declare_op(row.name);
  op.category("optimizer")
      .doc(std::string(row.doc) +
           " g is grad / grad_scale, for maximize its negative, plus weight_decay param. All "
           "parameters step in one pass; where found_inf is true, none does.");
  op.input("params", kFloating, "any shapes", kUpdated);
  op.input("grads", kFloating, "shapes of params", PG_INPUT_VARIADIC);
  for (const State& state : row.states) op.input(state.name, kFloating, state.doc, kUpdated);
  op.input("found_inf", kBool, "[]; true: nothing is changed", PG_INPUT_OPTIONAL | PG_INPUT_CONDITION);
  if (row.flag != nullptr) op.attr<bool>(row.flag, false, row.flag_doc);
  op.attr<bool>("maximize", false, "climb instead of descending");
  op.attr<double>("lr", 1e-3, "step size").runtime();
  op.attr<double>("weight_decay", 0, "pull towards 0").runtime();
  op.attr<double>("step", 1, "this step's number, from 1").runtime();
  op.attr<double>("grad_scale", 1, "the gradients are this much too large").runtime();
  for (const Number& number : row.numbers) op.attr<double>(number.name, number.value, number.doc).runtime();
  op.traits(PG_OP_NO_GRAD);
  op.shape([&row](ShapeContext& c) {
    check_group(c, 1);
    uint32_t group = 2;
    for (const State& state : row.states) check_group(c, group++, state.optional);
    for (const pg_tensor* found : c.group(group)) {
      c.need(found == nullptr || found->rank == 0, "found_inf is %s; expected []",
             found == nullptr ? "" : shape_text(*found).c_str());
    }
  });
}

[[maybe_unused]] const int declared = [] {
  for (const Update& row : kUpdates) declare(row);
  return 0;
}();

}  // namespace
}  // namespace pg::schema_updates
