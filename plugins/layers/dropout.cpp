// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al., 2014), scaled while training so that evaluation changes nothing.
#include "perigee/layer.hpp"

namespace {

struct Dropout {
  double p = 0.5;

  void parameters(pg::Params&) {
    if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("p must lie in [0, 1], got %g", p));
  }
  pg::Value build(const pg::LayerCall& c) const {
    if (!c.training() || p == 0) return c.input();
    static constinit pg::OpRef op("dropout", "p", "training");
    return c.call(op).input(c.input()).set(0, p).set(1, true).emit();
  }
};

PG_LAYER(Dropout, "Dropout",
         "While training: zeroes each element with probability p, scales the rest by 1 / (1 - p) (Srivastava et al., "
         "2014). Any shape, which stays; in eval() nothing happens.")
    .attr(&Dropout::p, "p", "probability of an element to become 0");

}  // namespace
