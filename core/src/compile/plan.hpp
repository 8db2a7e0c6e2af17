// SPDX-License-Identifier: Apache-2.0
// What a stretch of a compiled function came down to when it ran eagerly once: the items that it asked for, and the
// launches that they took. Launched again where the same items are asked for.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "call/eager.hpp"
#include "fuse/region.hpp"

namespace perigee {

class Captured;

// exact: alive, and handed out with a history of its own (Item::like).
enum class History : uint8_t { none, released, alive, exact };

// A tensor that the call meets or makes, by its number.
struct TensorPlan {
  bool outside = false;
  MetaRef meta;
  Device* device = nullptr;
  MemoryPlace place;             // of one from outside: the first one with this memory, and how far behind it
  uint8_t leaf = 0;              // of one from outside: whether it requires gradients
  bool derived = false;          // of one from outside: whether it has a history, to which nothing is added here
  bool view = false;             // made by a view operator of its item's first input
  uint32_t cast_of = no_number;  // from outside: the kept cast of that one (call/autocast.hpp), which it follows
  NodeRef node;                  // shows that it has a history, which is over
  bool born = false;             // with that history; else a later item gives it
  History history = History::none;
};

// What an item depends on besides its arguments.
struct Surroundings {
  bool grad = true;
  int32_t device = -1;
  uint32_t stream = 0, dtype = 0;
  uint32_t autocast = 0;  // 0: none; else which scope of the call
  bool operator==(const Surroundings&) const = default;
};

enum class ItemKind : uint8_t { op, backward, clear_grads, set_grad, detach, custom };

struct GradientPlan {
  uint32_t leaf, gradient;  // numbers
};

struct Item {
  ItemKind kind = ItemKind::op;
  const Op* op = nullptr;
  uint32_t flags = 0;  // of a backward: 1: retain_graph, 2: it has seeds; of a custom node: how many are inputs of it
  Surroundings around;
  std::vector<uint32_t> inputs, outputs;  // numbers; no_number: absent
  std::vector<uint32_t> groups;           // empty: one each
  std::vector<uint32_t> casts;            // kept ones that it reads: numbers between those of inputs and outputs
  std::vector<uint8_t> attrs;
  uint32_t launch = no_number;         // that alone depends on its run-time attributes, as they are
  const char* origin = nullptr;        // the line that asked for it last, where lines are found; interned
  bool in_place = false;               // output 0 is input 0
  uint32_t roots = 0;                  // of a backward: how many inputs are roots
  bool pauses = false;                 // of one: the front end computed gradients in it. It is the plan's last item.
  NodeRef like;                        // of an operator whose gradient needs no contents: the node, without edges
  std::vector<GradientPlan> grads;     // of a backward: what leaves have got
  uint32_t layer = no_number;          // that it is the first item of, in Plan::layers
  std::vector<uint32_t> with_history;  // tensors from before that have one from now on
};

// A call of a plugin's layer: what it was given, and how many items it came down to.
struct LayerPlan {
  uint32_t id = 0, items = 0, params = 0;
  bool training = false;
  std::vector<uint8_t> attrs;
  std::vector<uint32_t> arguments, outputs;  // numbers, of parameters before inputs; no_number: absent
  std::vector<uint32_t> met;                 // which arguments are from outside and new, in the order of their numbers
};

struct Slot {
  Device* device = nullptr;
  uint64_t bytes = 0;
  uint32_t first = no_number, last = 0;  // launches; once laid out: steps
  uint64_t offset = 0;                   // in the arena
  // As it is laid out: the slot whose memory it takes over, itself where none; and that one's last step.
  uint32_t memory = no_number, until = 0;
};

// What is run: a launch as it was recorded, or a region in the place of its last one.
struct PlanStep {
  uint32_t launch = no_number;
  Region* region = nullptr;
  RegionKernel* kernel = nullptr;
};

// Launches name the items that they serve; one without a signature is a copy of elements.
struct Plan : Launches {
  std::vector<TensorPlan> tensors;
  std::vector<Item> items;
  std::vector<LayerPlan> layers;
  std::vector<Slot> slots;
  std::vector<std::pair<uint64_t, uint32_t>> scopes;  // of autocast: dtype elsewhere, and how many types have their own
  std::string barred;                                 // why it is never launched; then it has no items
  std::list<std::unique_ptr<Plan>> after;             // of what follows it, the last one used first
  uint64_t uses = 0;
  uint32_t failures = 0;  // how often in a row a history kept it from being launched
  // ---- what is run ----
  bool fuse = false, cut = false;  // whether regions are wanted; whether they have been looked for
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<PlanStep> steps;
  // ---- memory ----
  std::vector<uint8_t> outlives;  // by slot: has memory of its own
  uint64_t arena_bytes = 0, bound = 0;
  uint64_t own_bytes = 0;   // of the slots that outlive the call
  uint64_t eager_peak = 0;  // bytes that were taken at once, beyond what was there before, when it was recorded
  StorageRef arena;
  std::shared_ptr<Captured> captured;  // once it has been thought of
  std::vector<uint32_t> loose;         // operands that do not lie in the arena
  std::vector<uint32_t> own;           // slots that outlive the call, large ones first

  Device* device() const { return slots.empty() ? nullptr : slots[0].device; }
  // Lays out the arena where the set of slots that outlive the call is another one than before.
  void lay_out(const std::vector<uint8_t>& outliving);
  pg_address workspace_of(const Launch& launch) const;

 private:
  void find_steps();
  void find_lifetimes();
  void take_over_memory();
  void take_over(uint32_t from, uint32_t to);
  bool takes_over(uint32_t step) const;
  bool dies_into(uint32_t step, uint32_t from, uint32_t to) const;
};

// An operand shows memory that somebody else holds until the launches are over: a count less to keep at each. What it
// shows by then is taken back, not let go of.
inline void lend(Tensor& operand, const StorageRef& storage) {
  operand.storage.release();
  operand.storage = StorageRef::adopt(storage.get());
}
inline void take_back(Tensor& operand) { operand.storage.release(); }

// Whether two plans are the same up to an item.
bool same_until(const Plan& a, const Plan& b, size_t items);
bool same_static(const Item& a, const Item& b);

}  // namespace perigee
