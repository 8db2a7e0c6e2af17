// SPDX-License-Identifier: Apache-2.0
#include "perigee/layer.hpp"

namespace {

struct Embedding {
  int64_t entries = 0, features = 0, padding_idx = -1;

  void parameters(pg::Params& p) {
    p.positive(entries, "entries");
    p.positive(features, "features");
    if (padding_idx < -1 || padding_idx >= entries) {
      pg::fail_argument(pg::format("padding_idx %lld is out of range for %lld entries",
                                   static_cast<long long>(padding_idx), static_cast<long long>(entries)));
    }
    p.normal(0, pg::make_ints({entries, features}), 0, 1);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("embedding", "padding_idx");
    return c.call(op).input(c.param(0)).input(c.input()).set(0, padding_idx).emit();
  }
};

PG_LAYER(
    Embedding, "Embedding",
    "Rows of weight [entries, features] by index: [...] int64 to [..., features]. Weights begin as normal numbers.")
    .attr(&Embedding::entries, "entries", "rows: indices are 0 to entries - 1", PG_ATTR_REQUIRED)
    .attr(&Embedding::features, "features", "size of a row", PG_ATTR_REQUIRED)
    .attr(&Embedding::padding_idx, "padding_idx", "index whose row gets no gradient, from 0; -1: none")
    .params({"weight"});

}  // namespace
