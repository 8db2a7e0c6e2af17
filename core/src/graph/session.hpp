// SPDX-License-Identifier: Apache-2.0
// Runs a graph: the nodes that the fetched values need, once each, in the order they were recorded.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "graph/graph.hpp"
#include "tensor/dims.hpp"

namespace perigee {

class Session {
 public:
  explicit Session(GraphRef graph);
  // fetches and feeds are tensors of the graph. A variable that is fetched is what it holds after the run, and does not
  // ask for its updates; its updated value does. Variables take their last values when the run has succeeded; a run
  // that fails leaves them as they were.
  void run(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds, Tensor* const* values,
           uint32_t feed_count, TensorRef* results);
  // What a variable holds from now on: a copy of a value of its shape and dtype.
  void assign(Tensor& variable, Tensor& value);
  // Nodes that their device has no kernel for run on the default device; the first time the log says so.
  void allow_soft_placement(bool on) { soft_ = on; }
  // A line a node: "add_1: (add): gpu:0"; those that were moved stand where they ran.
  std::string placement();

 private:
  struct Run;
  GraphRef graph_;
  std::mutex mutex_;  // one run at a time
  std::map<uint32_t, TensorRef> variables_;
  bool soft_ = false;
  std::vector<uint8_t> moved_{};  // by node
};

}  // namespace perigee
