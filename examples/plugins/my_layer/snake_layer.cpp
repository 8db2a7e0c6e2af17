// SPDX-License-Identifier: Apache-2.0
// The layer: parameters, and the operators it emits. nn.Snake in Lua.
#include <perigee/layer.hpp>

namespace {

struct Snake {
  int64_t features = 0;
  double frequency = 1;

  void parameters(pg::Params& p) {
    p.infer(features, "features", -1);
    if (frequency == 0) pg::fail_argument("frequency must not be 0");
    p.constant(0, pg::make_ints({features}), frequency);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("my_snake");
    return c.call(op).input(c.input()).input(c.param(0)).emit();
  }
};

PG_LAYER(Snake, "Snake", "x + sin(a x)^2 / a with a learnt a [features]: [..., features] to the same.")
    .inferred(&Snake::features, "features", "size of the input's last axis")
    .attr(&Snake::frequency, "frequency", "where each a begins")
    .params({"a"});

}  // namespace
