// SPDX-License-Identifier: Apache-2.0
// Runs a set of a graph's nodes with given sources: a session's runs, and bodies of nodes that own a graph.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plan/prepare.hpp"
#include "tensor/dims.hpp"

namespace perigee {

class ControlRunner;  // control.hpp

// Computes some values of a graph, again and again. What it learns in a run (kernels, shapes) serves the next one.
// Several threads may run it at once. The graph must outlive it, and may have grown since: what was asked for has not.
class Runner {
 public:
  // `fetches` and `feeds`: values of the graph. Throws for placeholders that are needed and not fed.
  // Without a placement all is where it was recorded. `fuses`: whether steps may be launched as one kernel.
  Runner(const Graph& g, std::span<const uint32_t> fetches, std::span<const uint32_t> feeds,
         std::shared_ptr<const Placement> placement, bool fuses);
  ~Runner();
  const PreparedRun& prepared() const { return prepared_; }
  // `feeds`: eager tensors, in the order in which their values were given; never written to. `variables`: what those of
  // prepared().variables hold, in their order; never written to. `results`: what was fetched, in memory of the caller's
  // own. `commits`: what those of prepared().commits hold from now on. Nothing is given where it throws. `around`: of a
  // body, what is known of sizes where the node stands that owns it.
  void run(Tensor* const* feeds, const TensorRef* variables, TensorRef* results, TensorRef* commits,
           const Bindings* around = nullptr);

  // What it does, a line a step, and where its values lie: as of the last run that is over.
  std::string text();

 private:
  struct Frame;
  struct Lease;
  const Graph& graph_;
  const std::shared_ptr<const Placement> placement_;
  const bool fuses_;
  const PreparedRun prepared_;
  std::vector<std::unique_ptr<ControlRunner>> controls_;  // by step; NULL: no node that owns bodies
  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;  // of runs that are over
};

}  // namespace perigee
