// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "perigee/layer.hpp"

namespace {

struct Linear {
  int64_t inputs = 0, out = 0;
  pg::Bool bias = true;

  void parameters(pg::Params& p) {
    p.positive(out, "out");
    p.infer(inputs, "inputs", -1);
    double bound = 1 / std::sqrt(static_cast<double>(inputs));  // PyTorch's: kaiming uniform with a = sqrt(5)
    p.uniform(0, pg::make_ints({out, inputs}), bound);
    if (bias) p.uniform(1, pg::make_ints({out}), bound);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("linear");
    return c.call(op).input(c.input()).input(c.param(0)).input(c.param(1)).emit();
  }
};

PG_LAYER(Linear, "Linear",
         "x weight^T + bias over the last axis: [..., inputs] to [..., out]. weight is [out, inputs].")
    .inferred(&Linear::inputs, "inputs", "size of the input's last axis")
    .attr(&Linear::out, "out", "size of the output's last axis", PG_ATTR_REQUIRED)
    .attr(&Linear::bias, "bias", "whether to add a bias [out]")
    .params({"weight", "bias"});

}  // namespace
