// SPDX-License-Identifier: Apache-2.0
// A recorded computation. Values are immutable: a write makes a new value of the tensor that was written, and of the
// base that it is a view of; variables take their last value when a run ends.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "builder/builder.hpp"
#include "tape/tape.hpp"

namespace perigee {

enum class ValueKind : uint8_t { node, placeholder, variable, constant };

struct GraphValue {
  ValueKind kind = ValueKind::node;
  MetaRef meta;
  Device* device = nullptr;
  uint32_t node = 0;  // that makes it
  std::string name;
  bool named = false;              // by the front end; what the recorder made up may be replaced
  TensorRef eager;                 // a constant's contents; a variable's first ones
  uint32_t variable = UINT32_MAX;  // of which variable it is a later value
  NodeRef history;                 // on the tape, for a tensor that is looked up by name
  uint32_t output = 0;
};

struct GraphNode {
  const Op* op = nullptr;
  Device* device = nullptr;
  std::vector<uint32_t> inputs;  // values; UINT32_MAX where absent
  std::vector<uint32_t> groups;
  std::vector<uint8_t> attrs;
  std::vector<uint32_t> outputs;                      // all of the operator's, hidden ones last
  std::vector<std::pair<uint32_t, uint32_t>> writes;  // (flat input, value that it becomes)
  std::string name;                                   // that of its first output too
  const char* origin = nullptr;                       // the script's line and the layer that recorded it; interned
};

// A copy of a value on a device. Tensors that have the value with another history, or none, have copies of their own.
struct TransferKey {
  uint32_t value;
  int32_t device;
  Edge history;
  auto order() const { return std::make_tuple(value, device, history.node.get(), history.output); }
  friend bool operator<(const TransferKey& a, const TransferKey& b) { return a.order() < b.order(); }
};

// The name of an eager tensor that a graph may take in; holds it, so that no other one takes its place.
struct CalledTensor {
  StorageRef storage;
  std::string name;
};

struct Graph {
  std::atomic<uint32_t> refs{1};
  std::vector<GraphValue> values;
  std::vector<GraphNode> nodes;
  std::map<std::string, uint32_t> names;       // of values and nodes; of a node, its first output, if it has any
  std::map<std::string, uint32_t> name_count;  // how often one was asked for: where looking for a free one starts
  std::map<std::string, int64_t> symbols;
  std::vector<int64_t> made_symbols;              // these, and those of extents that only a run tells
  std::map<TransferKey, uint32_t> transfers;      // copies on other devices
  std::map<uint32_t, uint32_t> latest;            // variable's first value -> its last one
  std::vector<uint32_t> ordered;                  // nodes whose effects happen in every run
  std::map<const Storage*, uint32_t> captured;    // eager tensors used in the graph
  std::map<const Storage*, CalledTensor> called;  // what those that may be used are called

  // What refers back to the graph: dropped when the front end lets go of it, so that it can die.
  void forget_history();
};

// Sources, under names of their own (of the scope in force). The tensors returned belong to the graph.
TensorRef graph_placeholder(Graph& g, const std::string& name, uint32_t dtype, uint32_t rank, const int64_t* shape,
                            const char* const* symbols);
TensorRef graph_variable(Graph& g, const std::string& name, Tensor& value);
TensorRef graph_constant(Graph& g, const std::string& name, Tensor& value);  // "": a name that is free
TensorRef graph_find(Graph& g, const std::string& name);  // the variable's latest value; throws with near names
void graph_set_name(Graph& g, Tensor& tensor, const std::string& name);
const std::string& graph_name(Tensor& tensor);
// What an eager tensor is called if it is taken in from now on, whatever the scope: a layer's parameter by its path.
void graph_call(Graph& g, Tensor& x, const std::string& name);
// An eager tensor taken in by identity (runs see what it holds then), with its history.
TensorRef graph_capture(Graph& g, Tensor& x);
// The graph builder: appends a call that has passed the interposers.
void record(PendingCall& call, TensorRef* outputs, uint32_t output_count);
// A line per value and node; and the same for graphviz.
std::string graph_text(const Graph& g);
const char* kind_text(ValueKind kind);  // "placeholder"
std::string graph_dot(const Graph& g);

}  // namespace perigee
