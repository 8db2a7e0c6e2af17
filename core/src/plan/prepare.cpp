// SPDX-License-Identifier: Apache-2.0
#include "plan/prepare.hpp"

#include <algorithm>
#include <cstring>
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
  PreparedRun p{};
  std::vector<uint32_t> slot_of{};  // by value
  std::vector<uint32_t> uses{};     // by slot: readers that are still to come
  std::vector<uint8_t> fed{};       // by value
  std::vector<uint8_t> needed{};    // by node
  std::vector<uint32_t> nodes{};    // that are
  std::vector<uint32_t> open{};

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
    if (v.kind == ValueKind::constant) p.constants.push_back({s, value});
    return s;
  }

  void need(uint32_t value) {
    open.push_back(value);
    while (!open.empty()) {
      uint32_t next = open.back();
      open.pop_back();
      uses[slot(next)]++;
      const GraphValue& v = g.values[next];
      if (fed[next] || v.kind != ValueKind::node || std::exchange(needed[v.node], 1)) continue;
      nodes.push_back(v.node);
      for (uint32_t input : g.nodes[v.node].inputs)
        if (input != none) open.push_back(input);
      open.insert(open.end(), g.nodes[v.node].after.begin(), g.nodes[v.node].after.end());
      for (auto& [offset, value_read] : g.nodes[v.node].bound) open.push_back(value_read);
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
    PreparedRun::Step s{};
    s.node = index;
    s.at = static_cast<uint32_t>(p.slots.size());
    s.input_count = static_cast<uint32_t>(n.inputs.size());
    s.output_count = outputs_of(n);
    s.write_at = static_cast<uint32_t>(p.writes.size());
    s.write_count = static_cast<uint32_t>(n.writes.size());
    s.symbols = has_symbols(n);
    for (uint32_t id : n.inputs) p.slots.push_back(id == none ? none : slot_of[id]);
    for (uint32_t i = 0; i < s.output_count; i++) p.slots.push_back(place_of(n.outputs[i]));
    for (auto& [input, id] : n.writes)
      p.writes.push_back({input, place_of(id), n.inputs[input] != none && uses[slot_of[n.inputs[input]]] == 1});
    for (uint32_t id : n.inputs)
      if (id != none && --uses[slot_of[id]] == 0) p.slots.push_back(slot_of[id]);
    s.bound_at = static_cast<uint32_t>(p.bounds.size());
    s.bound_count = static_cast<uint32_t>(n.bound.size());
    for (auto& [offset, id] : n.bound) {
      p.bounds.push_back({offset, slot_of[id]});
      if (--uses[slot_of[id]] == 0) p.slots.push_back(slot_of[id]);
    }
    for (uint32_t id : n.after)
      if (--uses[slot_of[id]] == 0) p.slots.push_back(slot_of[id]);
    s.end_count = static_cast<uint32_t>(p.slots.size()) - s.at - s.input_count - s.output_count;
    for (uint32_t i = 0; i < n.op->info->output_count; i++)
      p.dynamic |= (n.op->info->outputs[i]->flags & PG_OUTPUT_DYNAMIC) != 0;
    // Sizes of several names may meet where bodies end, or be learnt in them.
    p.dynamic |= n.control != nullptr;
    p.steps.push_back(s);
  }

  void run(std::span<const uint32_t> fetches, std::span<const uint32_t> feeds, bool effects) {
    slot_of.assign(g.values.size(), none);
    fed.assign(g.values.size(), 0);
    needed.assign(g.nodes.size(), 0);
    for (uint32_t id : feeds) fed[id] = 1;
    for (uint32_t id : fetches) need(id);
    for (uint32_t n : g.ordered)
      if (effects && !g.nodes[n].outputs.empty()) need(g.nodes[n].outputs[0]);
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
        uses[slot(last->second)]++;
        p.commits.push_back({id, {slot_of[last->second], false}});
      }
    for (uint32_t id : fetches) {
      auto last = updated.find(id);
      p.fetches.push_back({slot_of[last != updated.end() ? last->second : id], false});
      if (last != updated.end()) uses[p.fetches.back().slot]++;
    }
    std::sort(nodes.begin(), nodes.end());
    for (uint32_t n : nodes) add_step(n);
    for (uint32_t id : feeds) p.feeds.push_back({slot_of[id], id});
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
                        bool effects) {
  Preparer preparer{g};
  preparer.run(fetches, feeds, effects);
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
