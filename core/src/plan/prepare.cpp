// SPDX-License-Identifier: Apache-2.0
#include "plan/prepare.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

namespace perigee {
namespace {

bool has_symbols(const GraphNode& n) {
  if (!n.op->has_dims) return false;
  for (uint32_t i = 0; i < n.op->info->attr_count; i++) {
    const pg_attr_info& a = *n.op->info->attrs[i];
    if (a.kind != PG_ATTR_DIMS) continue;
    pg_ints list;
    std::memcpy(&list, n.attrs.data() + a.offset, sizeof list);
    if (std::any_of(list.value, list.value + list.count, [](int64_t d) { return PG_DIM_IS_SYMBOLIC(d); })) return true;
  }
  return false;
}

struct Preparer {
  static constexpr uint32_t none = PreparedRun::none;
  const Graph& g;
  const Placement* placement;
  PreparedRun p{};
  std::vector<uint32_t> slot_of{};  // by value
  std::vector<uint32_t> uses{};     // by slot: readers that are still to come
  std::vector<uint8_t> fed{};       // by value
  std::vector<uint8_t> needed{};    // by node
  std::vector<uint32_t> nodes{};    // that are
  // A value, and the device that it is asked for on; NULL: where it is.
  struct Asked {
    uint32_t value;
    Device* place;
    friend bool operator<(const Asked& a, const Asked& b) {
      return std::tie(a.value, a.place) < std::tie(b.value, b.place);
    }
  };
  struct Copy {
    uint32_t slot;
    bool made;
  };
  std::vector<Asked> open{};
  std::map<Asked, Copy> copies{};  // of values, on devices other than their own

  Device* home(uint32_t value) const { return placement != nullptr ? placement->value[value] : g.values[value].device; }
  // Transfers are copies of what they were made of; with a placement that decides which copies there are.
  uint32_t origin_of(uint32_t value) const {
    while (placement != nullptr && !fed[value]) {
      if (g.values[value].kind != ValueKind::node) break;
      const GraphNode& n = g.nodes[g.values[value].node];
      if (n.control || n.op->role != Role::transfer) break;
      value = n.inputs[0];
    }
    return value;
  }
  // What is meant by an input: the value, and its device if that is another one than where the value lies.
  Asked asked(uint32_t value, Device* place) const {
    value = origin_of(value);
    return {value, place == home(value) ? nullptr : place};
  }
  Device* place_of_node(uint32_t index) const {
    const GraphNode& n = g.nodes[index];
    return n.control ? nullptr : placement != nullptr ? placement->node[index] : n.device;
  }

  // Calls fn(flat input, where it is to be) for what a node reads.
  template <class Each>
  void each_input(uint32_t index, Each&& fn) const {
    const GraphNode& n = g.nodes[index];
    Device* place = place_of_node(index);
    uint32_t flat = 0;
    if (n.control) {
      for (; flat < n.inputs.size(); flat++) fn(flat, nullptr);
      return;
    }
    for (uint32_t i = 0; i < n.op->info->input_count; i++)
      for (uint32_t k = 0; k < n.groups[i]; k++, flat++)
        fn(flat, n.op->info->inputs[i]->flags & PG_INPUT_META ? nullptr : place);
  }

  // The slot of a value on a device; makes it if nobody has asked for it.
  uint32_t slot_at(const Asked& a) {
    if (a.place == nullptr) return slot(a.value);
    auto [it, fresh] = copies.try_emplace(a, Copy{p.slot_count, false});
    if (fresh) {
      p.slot_count++;
      uses.push_back(0);
      if (is_constant(a.value)) p.constants.push_back({it->second.slot, a.value, a.place});
    }
    return it->second.slot;
  }
  // There is no need to copy in a run what never changes.
  bool is_constant(uint32_t value) const { return g.values[value].kind == ValueKind::constant && !fed[value]; }

  // The copy that an input is, made now if no step before has made it.
  uint32_t slot_for(uint32_t value, Device* place, uint32_t reader) {
    const Asked a = asked(value, place);
    if (a.place == nullptr) return slot_of[a.value];
    Copy& copy = copies.at(a);
    if (std::exchange(copy.made, true) || is_constant(a.value)) return copy.slot;
    PreparedRun::Step s{};
    s.node = reader;
    s.place = a.place;
    s.move = true;
    s.at = static_cast<uint32_t>(p.slots.size());
    s.input_count = s.output_count = 1;
    p.slots.insert(p.slots.end(), {slot_of[a.value], copy.slot});
    if (--uses[slot_of[a.value]] == 0) {
      p.slots.push_back(slot_of[a.value]);
      s.end_count = 1;
    }
    p.steps.push_back(s);
    return copy.slot;
  }

  uint32_t slot(uint32_t value) {
    uint32_t& s = slot_of[value];
    if (s != none) return s;
    s = p.slot_count++;
    uses.push_back(0);
    const GraphValue& v = g.values[value];
    if (fed[value]) return s;
    if (v.kind == ValueKind::placeholder)
      pg::fail(PG_E_FAILED_PRECONDITION, "placeholder '" + v.name + "' was not fed");
    if (v.kind == ValueKind::variable) p.variables.push_back({s, value});
    if (v.kind == ValueKind::constant) p.constants.push_back({s, value, home(value)});
    return s;
  }

  void need(uint32_t wanted, Device* at) {
    open.push_back({wanted, at});
    while (!open.empty()) {
      const Asked next = asked(open.back().value, open.back().place);
      open.pop_back();
      if (next.place != nullptr) {
        const bool known = copies.count(next) != 0;
        uses[slot_at(next)]++;
        if (known || is_constant(next.value)) continue;  // else the copy reads the value
      }
      uses[slot(next.value)]++;
      const GraphValue& v = g.values[next.value];
      if (fed[next.value] || v.kind != ValueKind::node || std::exchange(needed[v.node], 1)) continue;
      nodes.push_back(v.node);
      const GraphNode& n = g.nodes[v.node];
      each_input(v.node, [&](uint32_t i, Device* place) {
        if (n.inputs[i] != none) open.push_back({n.inputs[i], place});
      });
      for (uint32_t id : n.after) open.push_back({id, nullptr});
      for (auto& [offset, value_read] : n.bound) open.push_back({value_read, nullptr});
    }
  }

  bool is_made(uint32_t value) const {
    return g.values[value].kind == ValueKind::node && needed[g.values[value].node] && !fed[value];
  }

  // How many of a node's outputs to ask for: hidden ones only if somebody reads them.
  uint32_t outputs_of(const GraphNode& n) const {
    uint32_t visible = 0;
    if (!n.op->hides) return static_cast<uint32_t>(n.outputs.size());
    output_total(*n.op, n.groups.data(), &visible);
    for (auto count = static_cast<uint32_t>(n.outputs.size()); count > visible; count--)
      if (slot_of[n.outputs[count - 1]] != none) return count;
    return visible;
  }

  // Where a value goes that a node makes; what was fed stays what it was.
  uint32_t place_of(uint32_t value) const { return fed[value] ? none : slot_of[value]; }

  void add_step(uint32_t index) {
    const GraphNode& n = g.nodes[index];
    SmallVector<uint32_t, 8> in;  // slots
    each_input(index, [&](uint32_t i, Device* place) {
      in.push_back(n.inputs[i] == none ? none : slot_for(n.inputs[i], place, index));
    });
    PreparedRun::Step s{};
    s.node = index;
    s.place = place_of_node(index);
    s.at = static_cast<uint32_t>(p.slots.size());
    s.input_count = static_cast<uint32_t>(n.inputs.size());
    s.output_count = outputs_of(n);
    s.write_at = static_cast<uint32_t>(p.writes.size());
    s.write_count = static_cast<uint32_t>(n.writes.size());
    s.symbols = has_symbols(n);
    for (uint32_t slot : in) p.slots.push_back(slot);
    for (uint32_t i = 0; i < s.output_count; i++) p.slots.push_back(place_of(n.outputs[i]));
    for (auto& [input, id] : n.writes)
      p.writes.push_back({input, place_of(id), in[input] != none && uses[in[input]] == 1});
    for (uint32_t slot : in)
      if (slot != none && --uses[slot] == 0) p.slots.push_back(slot);
    s.bound_at = static_cast<uint32_t>(p.bounds.size());
    s.bound_count = static_cast<uint32_t>(n.bound.size());
    auto read = [&](uint32_t value) {
      const uint32_t slot = slot_of[origin_of(value)];
      if (--uses[slot] == 0) p.slots.push_back(slot);
      return slot;
    };
    for (auto& [offset, id] : n.bound) p.bounds.push_back({offset, read(id)});
    for (uint32_t id : n.after) read(id);
    s.end_count = static_cast<uint32_t>(p.slots.size()) - s.at - s.input_count - s.output_count;
    for (uint32_t i = 0; i < n.op->info->output_count; i++)
      p.dynamic |= (n.op->info->outputs[i]->flags & PG_OUTPUT_DYNAMIC) != 0;
    // Sizes of several names may meet where bodies end, or be learnt in them.
    p.dynamic |= n.control != nullptr;
    p.steps.push_back(s);
  }

  void run(std::span<const uint32_t> fetches, std::span<const uint32_t> feeds) {
    slot_of.assign(g.values.size(), none);
    fed.assign(g.values.size(), 0);
    needed.assign(g.nodes.size(), 0);
    for (uint32_t id : feeds) fed[id] = 1;
    for (uint32_t id : fetches) need(id, home(id));
    for (uint32_t n : g.ordered)
      if (!g.nodes[n].outputs.empty()) need(g.nodes[n].outputs[0], nullptr);
    // A variable keeps the last value of its own that the run makes, which is what a fetch of the variable gives.
    std::unordered_map<uint32_t, uint32_t> updated;
    for (const WrittenValue& w : g.written) {
      if (!is_made(w.value)) continue;
      const uint32_t variable = g.values[w.value].variable;
      auto [it, fresh] = updated.try_emplace(variable, w.value);
      if (!fresh && it->second != w.before)
        pg::fail(PG_E_FAILED_PRECONDITION, "'" + g.values[variable].name +
                                               "' would be updated twice, each time from what it was before the run: "
                                               "run the two one after the other");
      it->second = w.value;
    }
    for (uint32_t id : g.variables)
      if (auto last = updated.find(id); last != updated.end()) {
        need(last->second, home(id));
        p.commits.push_back({id, {none, false}});
      }
    for (uint32_t id : fetches)
      if (auto last = updated.find(id); last != updated.end()) need(last->second, home(id));
    std::sort(nodes.begin(), nodes.end());
    for (uint32_t n : nodes) add_step(n);
    const uint32_t reader = nodes.empty() ? none : nodes.back();
    for (PreparedRun::Commit& c : p.commits) c.taken.slot = slot_for(updated.at(c.variable), home(c.variable), reader);
    for (uint32_t id : fetches) {
      auto last = updated.find(id);
      p.fetches.push_back({slot_for(last != updated.end() ? last->second : id, home(id), reader), false});
    }
    for (uint32_t id : feeds) p.feeds.push_back({slot_of[id], id, home(id)});
    mark_last();
  }

  void mark_last() {
    std::vector<uint8_t> seen(p.slot_count, 0);
    for (auto c = p.commits.rbegin(); c != p.commits.rend(); ++c)
      c->taken.last = !std::exchange(seen[c->taken.slot], 1);
    for (auto f = p.fetches.rbegin(); f != p.fetches.rend(); ++f) f->last = !std::exchange(seen[f->slot], 1);
  }
};

// Visits all values that some values are computed of, themselves included, each once. Behind a value for which
// `stops` says so, nothing is visited.
template <class Stops>
void walk(const Graph& g, std::span<const uint32_t> from, Stops stops) {
  std::vector<uint8_t> seen(g.values.size(), 0);
  std::vector<uint32_t> open(from.begin(), from.end());
  while (!open.empty()) {
    uint32_t id = open.back();
    open.pop_back();
    if (std::exchange(seen[id], 1) || stops(id) || g.values[id].kind != ValueKind::node) continue;
    const GraphNode& n = g.nodes[g.values[id].node];
    for (uint32_t input : n.inputs)
      if (input != PreparedRun::none) open.push_back(input);
    open.insert(open.end(), n.after.begin(), n.after.end());
  }
}

std::vector<uint8_t> marked(const Graph& g, std::span<const uint32_t> values) {
  std::vector<uint8_t> marks(g.values.size(), 0);
  for (uint32_t id : values) marks[id] = 1;
  return marks;
}

}  // namespace

PreparedRun prepare_run(const Graph& g, std::span<const uint32_t> fetches, std::span<const uint32_t> feeds,
                        const Placement* placement) {
  Preparer preparer{g, placement};
  preparer.run(fetches, feeds);
  return std::move(preparer.p);
}

std::vector<uint32_t> made_on_the_way(const Graph& g, std::span<const uint32_t> now, std::span<const uint32_t> later,
                                      std::span<const uint32_t> known) {
  const std::vector<uint8_t> given = marked(g, known);
  std::vector<uint8_t> runs(g.nodes.size(), 0);
  walk(g, now, [&](uint32_t id) {
    if (!given[id] && g.values[id].kind == ValueKind::node) runs[g.values[id].node] = 1;
    return given[id] != 0;
  });
  std::vector<uint32_t> made;
  walk(g, later, [&](uint32_t id) {
    bool there = !given[id] && g.values[id].kind == ValueKind::node && runs[g.values[id].node];
    if (there) made.push_back(id);
    return there || given[id];
  });
  return made;
}

std::vector<uint32_t> variables_behind(const Graph& g, std::span<const uint32_t> values,
                                       std::span<const uint32_t> known) {
  const std::vector<uint8_t> given = marked(g, known);
  std::vector<uint32_t> found;
  walk(g, values, [&](uint32_t id) {
    if (!given[id] && g.values[id].kind == ValueKind::variable) found.push_back(id);
    return given[id] != 0;
  });
  return found;
}

}  // namespace perigee
