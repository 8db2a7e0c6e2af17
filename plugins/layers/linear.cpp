// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "perigee/layer.hpp"

namespace {

enum LinearActivation : int32_t { kNone, kRelu, kGeluTanh };
constexpr const char* kActivations[] = {"none", "relu", "gelu_tanh"};

struct Linear {
  int64_t inputs = 0, out = 0;
  pg::Bool bias = true;
  int32_t activation = kNone;

  void parameters(pg::Params& p) {
    p.positive(out, "out");
    p.infer(inputs, "inputs", -1);
    double bound = 1 / std::sqrt(static_cast<double>(inputs));  // PyTorch's: kaiming uniform with a = sqrt(5)
    p.uniform(0, pg::make_ints({out, inputs}), bound);
    if (bias) p.uniform(1, pg::make_ints({out}), bound);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef linear("linear"), both("linear_activation", "activation"), gelu("gelu", "approximate");
    // The fused gelu computes its product again in backward: for inference.
    bool fused = activation == kRelu || (activation == kGeluTanh && !c.training());
    pg::Call call = c.call(fused ? both : linear);
    call.input(c.input()).input(c.param(0)).input(c.param(1));
    if (fused) call.set(0, activation == kRelu ? 0 : 1);
    pg::Value y = call.emit();
    return fused || activation == kNone ? y : c.call(gelu).input(y).set(0, 1).emit();
  }
};

PG_LAYER(Linear, "Linear",
         "activation(x weight^T + bias) over the last axis: [..., inputs] to [..., out]. weight is [out, inputs].")
    .inferred(&Linear::inputs, "inputs", "size of the input's last axis")
    .attr(&Linear::out, "out", "size of the output's last axis", PG_ATTR_REQUIRED)
    .attr(&Linear::bias, "bias", "whether to add a bias [out]")
    .choice(&Linear::activation, "activation", "applied to the result, in the same pass where that pays", kActivations)
    .params({"weight", "bias"});

}  // namespace
