// SPDX-License-Identifier: Apache-2.0
#include "plan/place.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/log.hpp"
#include "call/interposers.hpp"
#include "call/signature.hpp"
#include "graph/control.hpp"
#include "tensor/dims.hpp"

namespace perigee {
namespace {

constexpr uint32_t none = UINT32_MAX;

bool is_transfer(const GraphNode& n) { return !n.control && n.op->role == Role::transfer; }

// Calls fn(flat input, its declared flags) for all inputs of a node.
template <class Each>
void each_input(const GraphNode& n, Each&& fn) {
  if (n.control) {
    for (uint32_t i = 0; i < n.inputs.size(); i++) fn(i, 0u);
    return;
  }
  uint32_t flat = 0;
  for (uint32_t i = 0; i < n.op->info->input_count; i++)
    for (uint32_t k = 0; k < n.groups[i]; k++, flat++) fn(flat, n.op->info->inputs[i]->flags);
}

// The input that a node cannot leave: what it writes into, or shows; none where it may run anywhere.
uint32_t fixed_input(const Graph& g, const GraphNode& n) {
  if (n.control || is_transfer(n)) return none;
  if (!n.writes.empty()) return n.inputs[n.writes[0].first];
  // Written in place, or a write through a view.
  if (!n.wished && !n.outputs.empty() && !n.inputs.empty() && g.values[n.outputs[0]].variable != none)
    return n.inputs[0];
  return (n.op->info->traits & PG_OP_VIEW) != 0 ? n.inputs[0] : none;
}

// Whether a device computes what a node is, for descriptions like its inputs'. Sizes that only runs know are tried as
// some numbers; where no such call can be described, the run tells.
bool can_run(const Graph& g, const GraphNode& n, Device& device) {
  for (int64_t sample : {16, 3}) {
    Bindings sizes;
    auto known = [&](int64_t d) {
      for (int64_t symbol : dim_symbols(d)) sizes[symbol] = sample;
      return dim_value(d, sizes);
    };
    bool symbolic = false;
    std::vector<TensorRef> inputs;
    std::vector<Tensor*> given;
    std::vector<uint8_t> attrs = n.attrs;
    try {
      for (uint32_t id : n.inputs) {
        given.push_back(nullptr);
        if (id == none) continue;
        const Meta& m = *g.values[id].meta;
        symbolic |= m.symbolic;
        int64_t shape[PG_MAX_RANK];
        for (uint32_t i = 0; i < m.rank; i++) shape[i] = known(m.shape[i]);
        MetaRef meta = m.symbolic ? intern_meta(m.dtype, m.rank, shape) : g.values[id].meta;
        inputs.push_back(make_tensor(meta, nullptr, 0, &device));
        given.back() = inputs.back().get();
      }
      for (uint32_t i = 0; i < n.op->info->attr_count; i++) {
        const pg_attr_info& a = *n.op->info->attrs[i];
        if (a.kind != PG_ATTR_DIMS) continue;
        pg_ints list;
        std::memcpy(&list, attrs.data() + a.offset, sizeof list);
        for (int64_t d = 0; d < list.count; d++) {
          symbolic |= PG_DIM_IS_SYMBOLIC(list.value[d]);
          list.value[d] = known(list.value[d]);
        }
        std::memcpy(attrs.data() + a.offset, &list, sizeof list);
      }
      if (has_kernel({n.op, &device, given.data(), static_cast<uint32_t>(given.size()), n.groups.data(), attrs.data(),
                      false, false}))
        return true;
    } catch (const pg::Error&) {
      return true;
    }
    if (!symbolic) return false;
  }
  return false;
}

std::string type_text(const Graph& g, const GraphNode& n) {
  std::string text;
  for (uint32_t id : n.inputs) {
    if (id == none) continue;
    std::string dtype = pg::dtype_name(g.values[id].meta->dtype);
    if (text.find(dtype) == std::string::npos) text += (text.empty() ? "" : ", ") + dtype;
  }
  if (text.empty() && !n.outputs.empty()) text = pg::dtype_name(g.values[n.outputs[0]].meta->dtype);
  return text;
}

struct Placer {
  const Graph& g;
  const Placement* before;
  std::shared_ptr<Placement> p = std::make_shared<Placement>();
  std::vector<std::string> impossible{}, moved{};  // as an error, and as the log, tell it
  std::map<Device*, Device*> resolved{};

  // What is here of a device that was recorded: itself, what has its name by now, or what takes its place.
  Device* present(Device* wish) {
    if (!wish->absent) return wish;
    auto [it, fresh] = resolved.try_emplace(wish, nullptr);
    if (fresh) it->second = present_device(*wish);
    return it->second;
  }
  Device* otherwise() const { return g.usual != nullptr ? g.usual : &default_device(); }
  Device* resolve(Device* wish) {
    Device* here = present(wish);
    return here != nullptr ? here : otherwise();
  }

  static std::string at(const char* origin) { return origin == nullptr ? "" : std::string("; at ") + origin; }
  void refuse(const std::string& name, const std::string& kind, const std::string& dtype, const Device& wish,
              const std::string& why, const char* origin) {
    impossible.push_back(name + ": (" + kind + ") of " + dtype + " on " + common_name(wish) + ": " + why + at(origin));
  }
  void tell(const std::string& name, const char* kind, const Device& now, const std::string& why) {
    std::string line = placement_line(name, kind, now);
    line.pop_back();
    moved.push_back(line + ", since " + why);
  }

  // Which source each value is, through views, writes and transfers; none: a value of its own.
  std::vector<uint32_t> find_groups() const {
    std::vector<uint32_t> group(g.values.size(), none);
    for (uint32_t id = 0; id < g.values.size(); id++)
      if (g.values[id].kind != ValueKind::node) group[id] = id;
    for (const GraphNode& n : g.nodes) {
      const uint32_t fixed = is_transfer(n) && !n.wished ? n.inputs[0] : fixed_input(g, n);
      if (fixed == none) continue;
      if ((n.op->info->traits & PG_OP_VIEW) != 0 || is_transfer(n)) group[n.outputs[0]] = group[fixed];
      for (auto& [input, id] : n.writes) group[id] = group[n.inputs[input]];
    }
    for (uint32_t id = 0; id < g.values.size(); id++)
      if (g.values[id].variable != none) group[id] = g.values[id].variable;
    join_written(group);
    return group;
  }

  // Sources that one operator writes into go together, as parameters and what an optimizer keeps of them: those that
  // nobody wished anywhere are one group.
  void join_written(std::vector<uint32_t>& group) const {
    std::vector<uint32_t> first(g.values.size());
    std::iota(first.begin(), first.end(), 0);
    auto find = [&](uint32_t id) {
      while (first[id] != id) id = first[id] = first[first[id]];
      return id;
    };
    for (const GraphNode& n : g.nodes) {
      uint32_t of = none;
      for (auto& [input, id] : n.writes) {
        const uint32_t source = group[n.inputs[input]];
        if (source == none || g.values[source].wished) continue;
        if (of != none) first[find(source)] = find(of);
        of = source;
      }
    }
    for (uint32_t& id : group)
      if (id != none) id = find(id);
  }

  // Where sources are read that nobody wished anywhere: all in one place, or NULL.
  std::vector<Device*> find_readers(const std::vector<uint32_t>& group) {
    std::vector<Device*> reader(g.values.size(), nullptr);
    std::vector<uint8_t> several(g.values.size(), 0);
    for (const GraphNode& n : g.nodes) {
      const uint32_t fixed = fixed_input(g, n);
      if (is_transfer(n) && !n.wished) continue;
      each_input(n, [&](uint32_t i, uint32_t flags) {
        const uint32_t id = n.inputs[i];
        if (id == none || (flags & PG_INPUT_META) != 0 || group[id] == none) return;
        const uint32_t source = group[id];
        if (fixed != none && group[fixed] == source) return;
        // Where what it writes into goes is decided here, too.
        const bool follows = fixed != none && group[fixed] != none && !g.values[group[fixed]].wished;
        Device* place = follows ? nullptr : resolve(n.device);
        if (place == nullptr) return;
        if (reader[source] != nullptr && reader[source] != place) several[source] = 1;
        reader[source] = place;
      });
    }
    for (uint32_t id = 0; id < g.values.size(); id++)
      if (several[id]) reader[id] = nullptr;
    return reader;
  }

  void place_sources() {
    std::vector<uint32_t> group;
    std::vector<Device*> reader;
    for (uint32_t id = 0; id < g.values.size(); id++) {
      const GraphValue& v = g.values[id];
      if (v.kind == ValueKind::node) continue;
      if (group.empty()) {
        group = find_groups();
        reader = find_readers(group);
      }
      Device* place = present(v.device);
      if (place == nullptr) {
        place = otherwise();
        const bool said = !v.wished || v.taken || g.parent || (before != nullptr && id < before->value.size());
        if (!said) {
          refuse(v.name, shown_operator(kind_text(v.kind)), pg::dtype_name(v.meta->dtype), *v.device,
                 "the device is not here", v.origin);
          tell(v.name, kind_text(v.kind), *place, common_name(*v.device) + " is not here");
        }
      }
      if (!v.wished && reader[group[id]] != nullptr) place = reader[group[id]];
      const bool held = v.kind == ValueKind::variable && before != nullptr && id < before->value.size();
      p->value[id] = held ? before->value[id] : place;
    }
  }

  void place_bodies(uint32_t index) {
    const GraphNode& n = g.nodes[index];
    std::vector<std::shared_ptr<Placement>>& placed = p->bodies[index];
    for (size_t b = 0; b < n.control->bodies.size(); b++) {
      const Placement* known = nullptr;
      if (before != nullptr)
        if (auto it = before->bodies.find(index); it != before->bodies.end()) known = it->second[b].get();
      Placer inner{*n.control->bodies[b].graph, known};
      inner.run();
      placed.push_back(inner.p);
      std::move(inner.impossible.begin(), inner.impossible.end(), std::back_inserter(impossible));
      std::move(inner.moved.begin(), inner.moved.end(), std::back_inserter(moved));
    }
    p->node[index] = resolve(n.device);
    for (uint32_t k = 0; k < n.outputs.size(); k++) {
      p->value[n.outputs[k]] = p->node[index];
      for (size_t b = n.control->bodies.size(); b-- > 0;) {
        const std::vector<uint32_t>& results = n.control->bodies[b].results;
        if (k >= results.size() || results[k] == none) continue;
        p->value[n.outputs[k]] = placed[b]->value[results[k]];
        break;
      }
    }
  }

  // The first of a few devices that can run a node; NULL: none of them.
  Device* able(const GraphNode& n, std::initializer_list<Device*> places) {
    for (Device* place : places)
      if (can_run(g, n, *place)) return place;
    return nullptr;
  }

  void place_node(uint32_t index) {
    const GraphNode& n = g.nodes[index];
    if (n.control) return place_bodies(index);
    const bool known = before != nullptr && index < before->node.size();
    const uint32_t fixed = fixed_input(g, n);
    // The source it writes into, if a scope said where that is.
    bool wished = n.wished;
    Device* wish = n.device;
    if (fixed != none) {
      wish = p->value[fixed];
      wished = g.values[fixed].kind != ValueKind::node ? g.values[fixed].wished : false;
      if (const uint32_t v = g.values[fixed].variable; v != none) wished = g.values[v].wished;
    }
    Device* here = present(wish);
    Device* place = here != nullptr ? here : otherwise();
    if (is_transfer(n) && !wished) {
      p->node[index] = p->value[n.outputs[0]] = place;
      return;
    }
    if (here == nullptr && wished && !known) {
      refuse(n.name, shown_operator(n.op->info->name), type_text(g, n), *wish,
             "the device is not here" + kernels_text(n), n.origin);
      tell(n.name, n.op->info->name, *place, common_name(*wish) + " is not here");
    }
    const bool anywhere = place == &default_device() && !wished;  // the run tells what it cannot do
    if (!anywhere && !is_transfer(n) && !can_run(g, n, *place)) {
      Device* other = able(n, {otherwise(), &default_device()});
      if (here != nullptr && !known) {
        if (wished || other == nullptr)
          refuse(n.name, shown_operator(n.op->info->name), type_text(g, n), *place,
                 "the device has no kernel for it" + kernels_text(n, place->type), n.origin);
        if (other != nullptr) tell(n.name, n.op->info->name, *other, common_name(*place) + " has no kernel for it");
      }
      if (other != nullptr) place = other;
    }
    p->node[index] = place;
    for (uint32_t id : n.outputs) p->value[id] = place;
    for (auto& [input, id] : n.writes) p->value[id] = place;
  }

  static std::string kernels_text(const GraphNode& n, const std::string& without = "") {
    if (is_transfer(n) || n.op->info->decompose != nullptr) return "";
    const std::string places = kernel_places(*n.op, without);
    return places.empty() ? "" : "; there are kernels on " + places;
  }

  void run() {
    p->node.assign(g.nodes.size(), nullptr);
    p->value.assign(g.values.size(), nullptr);
    place_sources();
    for (uint32_t i = 0; i < g.nodes.size(); i++) place_node(i);
  }
};

void set_soft(Placement& p, bool soft, const std::shared_ptr<Residents>& residents) {
  p.soft = soft;
  p.residents = residents;
  for (auto& [node, bodies] : p.bodies)
    for (auto& body : bodies) set_soft(*body, soft, residents);
}

[[noreturn]] void fail_impossible(const std::vector<std::string>& lines) {
  std::string text = lines.size() == 1 ? "1 node cannot be where it was placed:"
                                       : std::to_string(lines.size()) + " nodes cannot be where they were placed:";
  for (const std::string& line : lines) text += "\n  " + line;
  text += "\nthere are";
  for (const Device* d : devices()) text += " " + common_name(*d);
  pg::fail(PG_E_FAILED_PRECONDITION, text + "; allow_soft_placement=true runs on another what is impossible there");
}

int64_t bytes_of(const Meta& m) {
  int64_t bytes = pg::dtype_bytes(m.dtype);
  for (uint32_t i = 0; i < m.rank; i++) bytes = dim_mul(bytes, m.shape[i]);
  return bytes;
}

struct Listing {
  std::string nodes{}, copies{};

  void add(const Graph& g, const Placement& p) {
    std::lock_guard lock(p.mutex);
    for (uint32_t id = 0; id < g.values.size(); id++) {
      const GraphValue& v = g.values[id];
      if (v.kind != ValueKind::node && !g.parent) nodes += placement_line(v.name, kind_text(v.kind), *p.value[id]);
    }
    std::set<std::pair<uint32_t, const Device*>> told;
    for (uint32_t i = 0; i < g.nodes.size(); i++) {
      const GraphNode& n = g.nodes[i];
      if (is_transfer(n)) continue;  // what is copied is told by copies
      const Device& place = p.moved.count(i) ? default_device() : *p.node[i];
      nodes += placement_line(n.name, n.op->info->name, place);
      if (n.control)
        for (size_t b = 0; b < n.control->bodies.size(); b++) add(*n.control->bodies[b].graph, *p.bodies.at(i)[b]);
      if (n.control) continue;
      each_input(n, [&](uint32_t input, uint32_t flags) {
        if (n.inputs[input] == none || (flags & PG_INPUT_META) != 0) return;
        const uint32_t id = transfer_source(g, n.inputs[input]);
        const GraphValue& v = g.values[id];
        if (v.kind == ValueKind::constant || p.value[id] == &place || !told.emplace(id, &place).second) return;
        copies += "copy of " + v.name + ": " + common_name(*p.value[id]) + " -> " + common_name(place) + ", " +
                  dim_text(bytes_of(*v.meta)) + " bytes\n";
      });
    }
  }
};

}  // namespace

TensorRef Residents::get(Tensor& constant, Device& place) {
  if (!constant.storage || constant.device == &place) return TensorRef::share(&constant);
  std::lock_guard lock(mutex_);
  const uint64_t version = constant.storage->version.load(std::memory_order_relaxed);
  Copy& kept = copies_[{&constant, place.id}];
  if (!kept.copy || kept.version != version) kept = {TensorRef::share(&constant), move_to(constant, place), version};
  return kept.copy;
}

uint32_t transfer_source(const Graph& g, uint32_t value) {
  while (g.values[value].kind == ValueKind::node) {
    const GraphNode& n = g.nodes[g.values[value].node];
    if (!is_transfer(n)) break;
    value = n.inputs[0];
  }
  return value;
}

std::shared_ptr<Placement> place_graph(const Graph& g, bool soft, const Placement* before) {
  Placer placer{g, before};
  placer.run();
  if (!soft && !placer.impossible.empty()) fail_impossible(placer.impossible);
  for (const std::string& line : placer.moved) write_log(PG_LOG_WARNING, line);
  set_soft(*placer.p, soft, before != nullptr ? before->residents : std::make_shared<Residents>());
  if (before != nullptr) placer.p->moved = before->moved;
  return placer.p;
}

std::string placement_text(const Graph& g, const Placement& p) {
  std::string text = "Device mapping:\n";
  for (const Device* d : devices()) text += common_name(*d) + " -> " + d->name + ", " + d->properties.name + "\n";
  Listing listing;
  listing.add(g, p);
  return text + listing.nodes + listing.copies;
}

}  // namespace perigee
