// SPDX-License-Identifier: Apache-2.0
// Calls of operators in a JSON document.
#include <algorithm>
#include <cstring>

#include "graph/rebuild.hpp"

namespace perigee {

using namespace document;

void GraphReader::read_node(const Json& json) {
  if (json.is_object() && json.contains("control")) return read_control(json);
  std::string where = "a node";
  check_object(json, where,
               {"name", "operator", "device", "origin", "inputs", "groups", "attributes", "outputs", "writes", "after",
                "bound", "taped", "detached"});
  const std::string name = text_in(json, "name", where), kind = text_in(json, "operator", "node " + shown(name));
  where = "node " + shown(name) + " (" + kind.substr(0, 60) + ")";
  Call c;
  c.op = find_op(kind);
  if (c.op == nullptr) pg::fail(PG_E_NOT_SUPPORTED, where + ": there is no such operator");
  place_ = text_in(json, "device", where);
  c.place = &find_place(place_);
  read_inputs(c, json, where);
  std::vector<bool> present;
  for (uint32_t id : c.inputs) present.push_back(id != UINT32_MAX);
  c.attrs = Attributes{
      *c.op, c.groups, present, [&](const Json& d, const std::string& at) { return dimension(d, at); },
      [&](const std::string& name) {
        return find_place(name).id;
      }}.read(json, where);
  Scoped<bool> taped(ambient().grad_enabled, flag_in(json, "taped", true, where));
  Scoped<int32_t> here(ambient().device, c.place->id);
  const Json& outputs = list_of(json, "outputs", where);
  if (copies_nothing(c, json)) {
    if (g_.values[c.inputs[0]].kind != ValueKind::variable) return pass_through(c, name, outputs, json, where);
    c.op = &role_op(Role::clone);  // the variable's name is for its latest value
    c.attrs.clear();
  }
  record_call(c, name, where);
  GraphNode& n = g_.nodes.back();
  if (json.contains("origin")) n.origin = whole().g_.origins.insert(text_in(json, "origin", where)).first->c_str();
  name_node(n, name, outputs, json, where);
}

// Values by name, as the node saw them.
void GraphReader::take_inputs(std::vector<uint32_t>& ids, std::vector<TensorRef>& held, const Json& json,
                              const std::string& where) {
  for (const Json& input : list_of(json, "inputs", where)) {
    ids.push_back(UINT32_MAX);
    if (input.is_null()) continue;
    const std::string name = text_of(input, "inputs", where);
    auto it = values_.find(name);
    if (it == values_.end())
      fail(where + pg::format(": input %zu, ", ids.size()) + shown(name) + ", is no value that is made before it");
    ids.back() = it->second;
  }
  for (uint32_t id : ids) held.push_back(id == UINT32_MAX ? nullptr : tensor_of(g_, id));
  if (!json.contains("detached")) return;
  for (const Json& index : list_of(json, "detached", where)) {
    const uint32_t i = index_of(index, ids.size(), where + ": an entry of \"detached\"");
    if (held[i]) held[i]->node = nullptr;
  }
}

void GraphReader::read_inputs(Call& c, const Json& json, const std::string& where) {
  take_inputs(c.inputs, c.held, json, where);
  for (const TensorRef& t : c.held) c.pointers.push_back(t.get());
  read_groups(c, json, where);
}

void GraphReader::read_groups(Call& c, const Json& json, const std::string& where) {
  const uint32_t declared = c.op->info->input_count;
  c.groups.assign(declared, 1);
  if (c.op->variadic) {
    const Json& list = list_of(json, "groups", where);
    if (list.size() != declared) fail(where + pg::format(": it has %zu groups; expected %u", list.size(), declared));
    for (uint32_t i = 0; i < declared; i++)
      c.groups[i] = index_of(list[i], c.inputs.size() + 1, where + ": an entry of \"groups\"");
  } else if (json.contains("groups")) {
    fail(where + ": it has groups, but none of its inputs is a list");
  }
  uint64_t total = 0;
  for (uint32_t i = 0; i < declared; i++) {
    total += c.groups[i];
    if (c.groups[i] != 1 && !(c.op->info->inputs[i]->flags & PG_INPUT_VARIADIC))
      fail(where + ": " + c.op->info->inputs[i]->name + " is one tensor, not a list");
  }
  if (total != c.inputs.size())
    fail(where +
         pg::format(": it has %zu inputs; expected %llu", c.inputs.size(), static_cast<unsigned long long>(total)));
}

// A copy to where its input is already: both devices are one here.
bool GraphReader::copies_nothing(const Call& c, const Json& json) const {
  if (c.op->role != Role::transfer || c.inputs.size() != 1 || c.inputs[0] == UINT32_MAX) return false;
  if (placed_.at(json["inputs"][0].get<std::string>()) == place_) return false;  // here as there
  int32_t target;
  std::memcpy(&target, c.attrs.data() + c.op->device_offset, sizeof target);
  return target == c.pointers[0]->device->id && c.place->id == target;
}

void GraphReader::pass_through(const Call& c, const std::string& name, const Json& outputs, const Json& json,
                               const std::string& where) {
  if (outputs.size() != 1 || json.contains("writes")) fail(where + ": it has one output and writes into nothing");
  if (text_in(outputs[0], "name", where) != name) fail(where + ": its first output has another name");
  check_described(c.inputs[0], outputs[0], where);
  add_name(name, c.inputs[0], where);
  g_.names.try_emplace(name, c.inputs[0]);
}

// Exactly this call and nothing else: an honest file needs no conversion and no copy more.
void GraphReader::record_call(Call& c, const std::string& name, const std::string& where) {
  const size_t slash = name.rfind('/');  // symbols that it makes are called by the scope too
  const std::string scope = slash == std::string::npos ? "" : name.substr(0, slash);
  Scoped<const char*> inside(ambient().name_scope, scope.empty() ? nullptr : scope.c_str());
  const size_t before = g_.nodes.size();
  uint32_t visible = 0;
  const uint32_t total = output_total(*c.op, c.groups.data(), &visible);
  std::vector<TensorRef> made(total);
  guarded(where, [&] {
    call(*c.op, c.pointers.data(), static_cast<uint32_t>(c.pointers.size()), c.groups.data(),
         c.attrs.empty() ? nullptr : c.attrs.data(), emit_functional, made.data(), total);
  });
  if (g_.nodes.size() != before + 1 || !std::ranges::equal(g_.nodes.back().inputs, c.inputs) ||
      g_.nodes.back().op != c.op)
    fail(where + ": its inputs have dtypes or devices that do not go together");
  if (!c.attrs.empty() && g_.nodes.back().attrs != c.attrs) fail(where + ": its attributes leave something open");
  if (g_.nodes.back().device != c.place) fail(where + ": it cannot be on " + c.place->name);
}

void GraphReader::add_name(const std::string& name, uint32_t id, const std::string& where) {
  if (!values_.emplace(name, id).second) fail(where + ": the name " + shown(name) + " is taken");
  placed_[name] = place_;
}

void GraphReader::name_node(GraphNode& n, const std::string& name, const Json& outputs, const Json& json,
                            const std::string& where) {
  if (outputs.size() != n.outputs.size())
    fail(where + pg::format(": it has %zu outputs; expected %zu", outputs.size(), n.outputs.size()));
  for (uint32_t i = 0; i < n.outputs.size(); i++) {
    auto word = counted_.find({name, i, 0});
    if (word == counted_.end()) continue;
    const int64_t d = g_.values[n.outputs[i]].meta->rank > 0 ? g_.values[n.outputs[i]].meta->shape[0] : 0;
    if (std::find(g_.made_symbols.begin(), g_.made_symbols.end(), d) == g_.made_symbols.end())
      fail(where + ": its output has no symbol of its own");
    symbols_.bind(word->second, d);
  }
  for (uint32_t i = 0; i < n.outputs.size(); i++) {
    const std::string what = where + pg::format(": output %u", i + 1);
    check_object(outputs[i], what, {"name", "dtype", "shape", "named", "variable", "over", "leaf", "custom"});
    const std::string own = text_in(outputs[i], "name", what);
    if (i == 0 && own != name) fail(what + " has another name than its node");
    check_described(n.outputs[i], outputs[i], what);
    take_mark(n.outputs[i], own, outputs[i], what);
    read_lost(n.outputs[i], outputs[i], what);
  }
  read_writes(n, json, where);
  read_after(n, json, where);
  read_bound(n, json, where);
  if (!n.outputs.empty()) return;
  if (g_.names.count(name) && n.name != name) fail(where + ": the name is taken");
  forget_name(g_, n.name);
  g_.names[n.name = name] = UINT32_MAX;
}

void GraphReader::read_writes(GraphNode& n, const Json& json, const std::string& where) {
  static const Json kNone = Json::array();
  const Json& writes = json.contains("writes") ? list_of(json, "writes", where) : kNone;
  if (writes.size() != n.writes.size())
    fail(where + pg::format(": it writes %zu values; expected %zu", writes.size(), n.writes.size()));
  for (uint32_t i = 0; i < writes.size(); i++) {
    const std::string what = where + pg::format(": write %u", i + 1);
    check_object(writes[i], what, {"input", "name", "named", "variable", "over", "leaf"});
    if (index_of(member(writes[i], "input", what), n.inputs.size(), what + ": \"input\"") != n.writes[i].first)
      fail(what + " is into another input");
    take_mark(n.writes[i].second, text_in(writes[i], "name", what), writes[i], what);
  }
}

void GraphReader::read_after(GraphNode& n, const Json& json, const std::string& where) {
  if (!json.contains("after")) return;
  const std::vector<uint32_t> own = std::move(n.after);  // found out while it was recorded, and in the list too
  n.after.clear();
  for (const Json& name : list_of(json, "after", where)) {
    auto it = values_.find(text_of(name, "after", where));
    const bool known = it != values_.end();
    if (!known || (g_.values[it->second].kind == ValueKind::node && g_.values[it->second].node + 1 >= g_.nodes.size()))
      fail(where + ": it comes after a value that is not made before it");
    if (std::find(n.after.begin(), n.after.end(), it->second) != n.after.end())
      fail(where + ": it comes after one value twice");
    n.after.push_back(it->second);
  }
  for (uint32_t id : own)
    if (std::find(n.after.begin(), n.after.end(), id) == n.after.end()) n.after.push_back(id);
}

void GraphReader::read_bound(GraphNode& n, const Json& json, const std::string& where) {
  if (!json.contains("bound")) return;
  const Json& bound = json["bound"];
  if (!bound.is_object()) fail(where + ": \"bound\" must be an object");
  for (const auto& [attr, name] : bound.items()) {
    auto it = values_.find(text_of(name, "bound", where));
    if (it == values_.end()) fail(where + ": " + shown(attr) + " is read off a value that is not there");
    const GraphValue& v = g_.values[it->second];
    if (v.kind == ValueKind::node && v.node + 1 >= g_.nodes.size())
      fail(where + ": " + shown(attr) + " is read off a value that no node makes before it");
    TensorRef value = tensor_of(g_, it->second);
    uint32_t count = 0;
    guarded(where, [&] { count = graph_bind(g_, static_cast<uint32_t>(g_.nodes.size() - 1), attr, value.get()); });
    if (count != 1 || n.bound.size() > bound.size()) fail(where + ": it has no number " + shown(attr));
  }
}

void GraphReader::take_mark(uint32_t id, const std::string& name, const Json& json, const std::string& what) {
  add_name(name, id, what);
  guarded(what, [&] { graph_rename(g_, id, name); });
  g_.values[id].named = flag_in(json, "named", false, what);
  g_.values[id].variable = UINT32_MAX;
  if (json.contains("variable")) {
    auto it = variables_.find(text_in(json, "variable", what));
    if (it == variables_.end()) fail(what + ": it is of a variable that is not there");
    check_same(id, it->second.id, what);
    g_.values[id].variable = it->second.id;
    uint32_t before = it->second.id;
    if (json.contains("over")) {
      auto over = values_.find(text_in(json, "over", what));
      const bool own = over != values_.end() && over->second != id &&
                       (over->second == before || g_.values[over->second].variable == before);
      if (!own) fail(what + ": it takes the place of a value that is none of its variable's");
      before = over->second;
    }
    written_.push_back({id, before});
  }
  if (!json.contains("leaf")) return;
  auto leaf = values_.find(text_in(json, "leaf", what));
  if (leaf == values_.end() || g_.values[leaf->second].kind == ValueKind::node || !g_.values[leaf->second].history)
    fail(what + ": its leaf is no source that is differentiated");
  check_same(id, leaf->second, what);
  g_.values[id].history = g_.values[leaf->second].history;
  g_.values[id].output = 0;
}

void GraphReader::check_same(uint32_t id, uint32_t source, const std::string& what) const {
  const GraphValue &v = g_.values[id], &s = g_.values[source];
  if (v.meta->dtype != s.meta->dtype || !same_shape(*v.meta, *s.meta) || v.device != s.device)
    fail(what + ": " + s.name + " is " + pg::dtype_name(s.meta->dtype) + " " + shape_text(*s.meta) + ", it is not");
}

}  // namespace perigee
