// SPDX-License-Identifier: Apache-2.0
// A recorded computation. Values are immutable: a write makes a new value of the tensor that was written, and of the
// base that it is a view of; variables take their last value when a run ends.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/block_list.hpp"
#include "builder/builder.hpp"
#include "tape/tape.hpp"

namespace perigee {

enum class ValueKind : uint8_t { node, placeholder, variable, constant };

struct Control;  // control.hpp

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
  bool wished = false;           // a source that was made in a scope of its device
  const char* origin = nullptr;  // of a source; as a node's
  bool taken = false;            // an argument of a body that stands for what lies around it
};

struct GraphNode {
  const Op* op = nullptr;
  Device* device = nullptr;         // that it was recorded for, which may be absent; sessions decide (plan/place.hpp)
  bool wished = false;              // by a scope of the script's
  SmallVector<uint32_t, 4> inputs;  // values; UINT32_MAX where absent
  SmallVector<uint32_t, 4> groups;
  std::vector<uint8_t> attrs;
  SmallVector<uint32_t, 2> outputs;                   // all of the operator's, hidden ones last
  std::vector<std::pair<uint32_t, uint32_t>> writes;  // (flat input, value that it becomes)
  std::vector<uint32_t> after;  // values that are made before it runs, whether it reads them or not
  // (offset of a number among attrs, the value that a run reads it off)
  std::vector<std::pair<uint32_t, uint32_t>> bound;
  std::string name;                  // that of its first output too
  const char* origin = nullptr;      // the script's line and the layer that recorded it; interned
  std::shared_ptr<Control> control;  // of a node that runs bodies; op then only names it
};

// A copy of a value on a device. Tensors that have the value with another history, or none, have copies of their own.
struct TransferKey {
  uint32_t value;
  int32_t device;
  Edge history;
  auto order() const { return std::make_tuple(value, device, history.node.get(), history.output); }
  friend bool operator<(const TransferKey& a, const TransferKey& b) { return a.order() < b.order(); }
};

// What a layer that is called in the graph, or an optimizer that steps in it, holds: a variable once it is used.
struct CalledTensor {
  TensorRef source;    // the eager tensor; a session begins with what it holds then
  StorageRef storage;  // its memory when it was called: tensors that show it mean the variable, too
  int64_t offset = 0;
  MetaRef meta;
  std::string name;
  uint32_t variable = UINT32_MAX;  // its first value
  TensorRef now;                   // stands for it in the graph
  bool settled = false;            // the call that wrote it is over: reads are of what the session holds
};

// A later value of a variable, and the one that it took the place of.
struct WrittenValue {
  uint32_t value, before;
};

// What a body uses from around it, and the argument that stands for it.
struct Taken {
  TensorRef outer, inner;
};
struct TakenKey {
  const Graph* graph;
  uint32_t value;
  const Node* node;
  uint32_t output;
  auto order() const { return std::make_tuple(graph, value, node, output); }
  friend bool operator<(const TakenKey& a, const TakenKey& b) { return a.order() < b.order(); }
};

// Of a graph that was read: a custom node of the tape that the front end must be told of. Its outputs are some of a
// node's that owns bodies; or one value whose gradient was a front end's function, which a file has not (`lost`).
struct HungNode {
  uint64_t number;
  Graph* graph;
  uint32_t node, first, count;
  uint32_t inputs;
  bool lost;
};

struct Graph {
  std::atomic<uint32_t> refs{1};
  uint64_t revision = 0;  // another one whenever anything was recorded or named
  BlockList<GraphValue> values;
  BlockList<GraphNode> nodes;
  std::unordered_map<std::string, uint32_t> names;  // of values and nodes; of a node, its first output, if it has any
  struct Wanted {
    uint32_t count = 0;  // the last number that was tried behind it
    bool taken = false;  // the name itself is
  };
  std::unordered_map<std::string, Wanted> wanted;  // names that were asked for
  std::map<std::string, int64_t> symbols;
  std::vector<WrittenValue> written;                         // variables' later values, in the order made
  std::vector<int64_t> made_symbols;                         // these, and those of extents that only a run tells
  std::unordered_map<int64_t, uint32_t> told;                // of the latter: the value whose shape tells it
  std::map<TransferKey, uint32_t> transfers;                 // copies on other devices
  std::vector<uint32_t> variables;                           // their first values, in the order made
  std::map<uint32_t, uint32_t> latest;                       // variable's first value -> its last one
  std::vector<uint32_t> ordered;                             // nodes whose effects happen in every run
  std::map<const Storage*, std::vector<uint32_t>> captured;  // eager tensors used in the graph: a value a view
  std::vector<CalledTensor> called;
  std::multimap<const Storage*, uint32_t> called_at;
  std::map<const Tensor*, uint32_t> called_as;
  std::set<std::string> origins;  // of a graph that was read: the texts that its nodes point to
  std::vector<HungNode> hung;     // of one that was read, those of its bodies too
  // Values whose gradients the front end computes, and those that they are by. The nodes are not kept: they end with
  // their last tensor.
  std::map<uint32_t, std::vector<uint32_t>> custom;
  bool is_linked(uint32_t value) const { return values[value].history || custom.count(value) != 0; }

  Device* usual = nullptr;      // where goes what no scope decides about; NULL: where its inputs are
  std::vector<uint32_t> after;  // values that are made before all that is recorded now runs
  // ---- of a body (body.hpp) ----
  GraphRef parent;      // the graph around it
  bool closed = false;  // a node owns it: nothing more is recorded into it
  std::vector<Taken> taken;
  std::map<TakenKey, TensorRef> taken_as;

  // What refers back to the graph: dropped when the front end lets go of it, so that it can die.
  void forget_history();
};

// Sources, under names of their own (of the scope in force). The tensors returned belong to the graph.
TensorRef graph_placeholder(Graph& g, const std::string& name, uint32_t dtype, uint32_t rank, const int64_t* shape,
                            const char* const* symbols);
// `beside`: where this tensor's variable is, and as free to go where it is read; no scope then decides.
TensorRef graph_variable(Graph& g, const std::string& name, Tensor& value, Tensor* beside = nullptr);
TensorRef graph_constant(Graph& g, const std::string& name, Tensor& value);  // "": a name that is free
TensorRef graph_find(Graph& g, const std::string& name);  // the variable's latest value; throws with near names
void graph_set_name(Graph& g, Tensor& tensor, const std::string& name);
const std::string& graph_name(Tensor& tensor);
// What a model holds, with its names in the model's state. Where one of those is not free, in the scope in force, all
// get "CLASS_1." in front, with a number that makes them so. What was called before keeps its name.
void graph_call(Graph& g, const std::string& class_name, const std::vector<std::pair<std::string, Tensor*>>& tensors);
// The variable's value now that an eager tensor means in the graph, as a tensor of the graph; NULL where it means none.
TensorRef graph_stand_in(Graph& g, Tensor& x, bool to_write = false);
// The call of a model is over: what is recorded from now on reads what sessions hold of the variables that it wrote, so
// that it does not ask for those updates. Writes go on from them.
void graph_settle(Graph& g);
// The same for writes from the index-th one on (Graph::written) altogether, those of an optimizer: nothing that is
// recorded from now on sees them.
void graph_forget_writes(Graph& g, uint32_t index);
// The first value of the variable that a tensor means, eager or of the graph; NULL where it means none.
TensorRef graph_variable_of(Graph& g, Tensor& x);
bool graph_knows(Graph& g, Tensor& x);                  // whether it is part of a model that was called
TensorRef graph_source_at(Graph& g, uint32_t index);    // the eager tensor that the index-th variable was; NULL: none
TensorRef graph_variable_at(Graph& g, uint32_t index);  // first values, in the order made; NULL: not so many
// A variable or constant that holds `value` itself, of which nobody else knows: what was read from a file.
TensorRef graph_take(Graph& g, ValueKind kind, const std::string& name, TensorRef value);
// Another name for a value, and for its node if it is the first output; throws where something else has it.
void graph_rename(Graph& g, uint32_t value, const std::string& name);
// An eager tensor taken in by identity (runs see what it holds then), with its history.
TensorRef graph_capture(Graph& g, Tensor& x);
// Has the later values of variables from the index-th one on (Graph::written), and `also` (may be NULL), made before
// what computes `tensor`; answers what stands for it then.
TensorRef graph_after_writes(Graph& g, Tensor& tensor, uint32_t index, Tensor* also = nullptr);
// The value of a graph's tensor as it is now: a view whose base was written to is made anew.
uint32_t graph_value_now(Tensor& x);
// A value without a history of its own hangs on the custom node of a tensor that stands for it (Graph::custom).
void graph_note_custom(const Tensor& x);
// From now on what is recorded runs after what made these tensors. Answers how long g.after was.
uint32_t graph_after(Graph& g, Tensor* const* tensors, uint32_t count);
// In the nodes from the first-th on, runs read the number `attr`, which must not decide about kernels, off a value of
// the graph, float64 [] (NULL: they stay as they are). Answers how many nodes have one of that name.
uint32_t graph_bind(Graph& g, uint32_t first, const std::string& attr, Tensor* value);
// The graph builder: appends a call that has passed the interposers.
void record(PendingCall& call, TensorRef* outputs, uint32_t output_count);
// A line per value and node; and the same for graphviz.
std::string graph_text(const Graph& g);
const char* kind_text(ValueKind kind);  // "placeholder"
std::string graph_dot(const Graph& g);

}  // namespace perigee
