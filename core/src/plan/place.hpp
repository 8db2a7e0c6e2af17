// SPDX-License-Identifier: Apache-2.0
// Where a session runs the nodes of a graph and holds its sources. Recording notes what the script wishes; what there
// is on this machine decides here, once, before anything runs (decision 0018).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graph/graph.hpp"

namespace perigee {

// Copies of constants on devices other than their own, made when first read and again when somebody has written into
// what they were made of. For several threads.
class Residents {
 public:
  TensorRef get(Tensor& constant, Device& place);

 private:
  struct Copy {
    TensorRef of, copy;
    uint64_t version;
  };
  std::mutex mutex_;
  std::map<std::tuple<const Tensor*, int32_t>, Copy> copies_;
};

struct Placement {
  std::vector<Device*> node;   // where each runs
  std::vector<Device*> value;  // where each lies when it has been made
  bool soft = false;           // nodes that their device turns out to have no kernel for go to the processor
  std::map<uint32_t, std::vector<std::shared_ptr<Placement>>> bodies;  // by node that owns some
  std::shared_ptr<Residents> residents;
  // What runs have moved since: nodes. For several threads.
  mutable std::mutex mutex;
  mutable std::set<uint32_t> moved;
};

// `soft`: what cannot be where it is wished goes elsewhere, which the log tells; else one error tells of all of it.
// `before` (may be NULL): what a session has decided already, whose variables stay where they are and of which nothing
// is said again.
std::shared_ptr<Placement> place_graph(const Graph& g, bool soft, const Placement* before);
// The value that a transfer's is a copy of; others are that themselves.
uint32_t transfer_source(const Graph& g, uint32_t value);
// TensorFlow's log: a mapping of names to devices, a line a source and node, and the copies between devices in bytes.
std::string placement_text(const Graph& g, const Placement& p);

}  // namespace perigee
