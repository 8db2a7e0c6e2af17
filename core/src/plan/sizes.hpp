// SPDX-License-Identifier: Apache-2.0
// The sizes that a graph leaves open, in one run: what its feeds tell, and what only became known on the way.
#pragma once

#include "plan/prepare.hpp"
#include "tensor/dims.hpp"

namespace perigee {

class RunSizes {
 public:
  RunSizes(const Graph& graph, const PreparedRun& prepared);

  // What the feeds say of sizes. Nothing new where they look as they did in the last run, if that was complete.
  void bind(Tensor* const* feeds, const TensorRef* variables, const Bindings* around);

  // A size that only became known now. Sizes of several names that meet in an operator count as one, for gradients too.
  void learn(const GraphValue& v, const Meta& got);

  // A description with this run's sizes.
  TensorRef described(const Tensor& t) const;

  Bindings bindings{};    // what is known now
  uint64_t changes = 0;   // of what the feeds tell
  bool complete = false;  // the last run succeeded
  bool learnt = false;    // all sizes are those of that run

 private:
  void solve(Tensor* const* feeds);
  void check_kind(const GraphValue& v, const Meta& given) const;
  void check_sizes(const GraphValue& v, const Meta& given) const;

  const Graph& graph_;
  const PreparedRun& prepared_;
  std::vector<MetaRef> fed_, held_;  // the descriptions of the last run's feeds and variables
  Bindings fed_sizes_{};             // what the feeds tell
  Bindings around_{};                // of a body
};

}  // namespace perigee
