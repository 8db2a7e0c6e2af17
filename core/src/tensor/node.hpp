// SPDX-License-Identifier: Apache-2.0
// A tensor's history: which operator made which tensor of what, with what its gradient rule may use. `tape` writes and
// reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/recycle.hpp"
#include "base/small_vector.hpp"
#include "tensor/tensor.hpp"

namespace perigee {

class GradientListener;  // of the tape (tape/listener.hpp)

struct Edge {
  NodeRef node;
  uint32_t output = 0;
};

// An input as it was when the operator ran.
struct InputRecord {
  Edge edge;           // empty: nothing to differentiate
  uint32_t value = 0;  // in the graph
  TensorRef saved;     // contents, where the schema declares them saved
  uint64_t version = 0;
  MetaRef meta;  // null: the input was absent
  Device* device = nullptr;
};

struct OutputRecord {
  MetaRef meta;
  Device* device = nullptr;
  TensorRef saved;  // an alias without history, where declared saved; hidden ones always
  uint64_t version = 0;
  uint32_t value = 0;
  bool hidden = false;
};

enum class NodeKind : uint8_t { op, leaf, write_view, custom };  // custom: the front end computes its gradient

struct Node : Recycled<Node> {
  std::atomic<uint32_t> refs{1};
  NodeKind kind = NodeKind::op;
  bool released = false;  // by a backward pass that did not retain it
  bool pure = false;      // custom: its gradient depends on what it is shown alone
  uint64_t sequence = 0;  // edges lead from higher to lower ones
  const Op* op = nullptr;
  // Nodes die in bulk, long after they were made: their size is cache misses.
  SmallVector<InputRecord, 2> inputs;
  SmallVector<OutputRecord, 1> outputs;
  SmallVector<uint32_t, 2> groups;
  SmallVector<uint8_t, 24> attrs;  // custom: its number
  GraphRef graph;
  TensorRef gradient;  // of a leaf
  struct Step {
    const Op* op;
    std::vector<uint8_t> attrs;
    std::vector<TensorRef> others;
  };
  struct Hook {
    uint64_t number;  // by which the front end knows it
    uint32_t output;  // whose gradient it is shown
  };
  struct Retained {
    uint32_t output;
    TensorRef gradient;
  };
  struct Listener {
    GradientListener* who;
    uint32_t number;  // by which it knows the leaf
  };
  // What few nodes have.
  struct Rare {
    // write_view: the view operators from base to view, outermost first. inputs: the base before, the value written.
    std::vector<Step> chain;
    std::vector<Hook> hooks;          // in the order in which they are called
    std::vector<Retained> retained;   // gradients of outputs that are kept as a leaf's is
    std::vector<Listener> listeners;  // of a leaf
  };
  std::unique_ptr<Rare> rare;

  static void destroy(Node* node);
};

// Custom nodes have a number, by which the front end knows them.
uint64_t custom_number(const Node& node);
// Notes that one is gone, or has been gone through for the last time.
void forget_custom(const Node& node);
void forget_custom(uint64_t number);
// Numbers of such nodes, and of hooks that are gone, at most `room` of them, each once or more.
uint32_t take_forgotten(uint64_t* numbers, uint32_t room);

Node::Rare& rare_of(Node& node);
void add_hook(Node& node, uint32_t output, uint64_t number);
void remove_hook(uint64_t number);  // one that is gone: nothing
void drop_hooks(Node& node);
void move_hooks(Node& from, Node& to);
bool has_hooks();  // whether any node has one

}  // namespace perigee
