// SPDX-License-Identifier: Apache-2.0
// Nodes that own bodies in a JSON document. add_control looks at what they are; here is what it cannot know.
#include <algorithm>

#include "graph/rebuild.hpp"
#include "tape/custom.hpp"
#include "tensor/dims.hpp"

namespace perigee {

using namespace document;

namespace {

bool is_flagged(const Json& output) { return output.contains("gradient"); }

ControlKind kind_of(const std::string& name, const std::string& where) {
  for (uint32_t kind = 0; kind < static_cast<uint32_t>(ControlKind::count); kind++)
    if (name == control_name(static_cast<ControlKind>(kind))) return static_cast<ControlKind>(kind);
  fail(where + ": there is no such kind of node");
}

}  // namespace

void GraphReader::read_control(const Json& json) {
  std::string where = "a node";
  check_object(json, where,
               {"name", "control", "device", "origin", "inputs", "carries", "steps", "length", "most", "reverse",
                "bodies", "kept", "outputs", "after", "detached"});
  const std::string name = text_in(json, "name", where), kind = text_in(json, "control", "node " + shown(name));
  where = "node " + shown(name) + " (" + kind.substr(0, 60) + ")";
  Control c{};
  c.kind = kind_of(kind, where);
  place_ = text_in(json, "device", where);
  find_place(place_);
  std::vector<uint32_t> ids;
  std::vector<TensorRef> held;
  take_inputs(ids, held, json, where);
  if (std::find(ids.begin(), ids.end(), UINT32_MAX) != ids.end()) fail(where + ": one of its inputs is not there");
  read_numbers(c, json, where);
  for (const Json& body : list_of(json, "bodies", where)) c.bodies.push_back(read_body(body, where));
  const Json& outputs = list_of(json, "outputs", where);
  if (g_.names.count(name)) fail(where + ": the name is taken");
  g_.names[name] = UINT32_MAX;
  std::vector<Tensor*> pointers;
  for (const TensorRef& t : held) pointers.push_back(t.get());
  std::vector<TensorRef> made;
  const size_t made_before = g_.made_symbols.size();
  const uint32_t index = guarded(where, [&] {
    return add_control(g_, std::move(c), name, pointers.data(), static_cast<uint32_t>(pointers.size()), made);
  });
  GraphNode& n = g_.nodes[index];
  if (json.contains("kept")) {
    const uint32_t kept = index_of(json["kept"], n.outputs.size() - n.control->carries + 1, where + ": \"kept\"");
    if (kept == 0) fail(where + ": \"kept\" is 0, which goes without saying");
    n.control->own -= kept;
  }
  if (json.contains("origin")) n.origin = whole().g_.origins.insert(text_in(json, "origin", where)).first->c_str();
  if (outputs.size() != n.outputs.size())
    fail(where + pg::format(": it has %zu outputs; expected %zu", outputs.size(), n.outputs.size()));
  name_outputs(index, made_before, name, outputs, where);
  read_after(n, json, where);
  if (n.outputs.empty()) g_.names[name] = UINT32_MAX;
  hang(index, held, outputs);
}

void GraphReader::read_numbers(Control& c, const Json& json, const std::string& where) {
  auto number = [&](const char* key) -> uint32_t {
    if (!json.contains(key)) return 0;
    const uint32_t count = index_of(json[key], UINT32_MAX, where + ": \"" + key + "\"");
    if (count == 0) fail(where + ": \"" + key + "\" is 0, which goes without saying");
    return count;
  };
  c.carries = number("carries");
  c.steps = number("steps");
  c.reverse = flag_in(json, "reverse", false, where);
  if (json.contains("length")) {
    if (c.kind != ControlKind::scan || c.steps > 0) fail(where + ": it has a length, which its inputs tell");
    c.length = dimension(json["length"], where);
  }
  if (!json.contains("most")) return;
  if (c.kind != ControlKind::loop || !is_int64(json["most"]) || json["most"].get<int64_t>() < 0)
    fail(where + ": \"most\" is no number of rounds of a loop");
  c.most = json["most"].get<int64_t>();
}

// Values of the body by name; null: none.
std::vector<uint32_t> GraphReader::read_values(const Json& list, const char* what, const std::string& where) const {
  std::vector<uint32_t> ids;
  for (const Json& name : list) {
    ids.push_back(Control::none);
    if (name.is_null()) continue;
    auto it = values_.find(text_of(name, what, where));
    if (it == values_.end()) fail(where + pg::format(": entry %zu of \"%s\" is no value of it", ids.size(), what));
    ids.back() = it->second;
  }
  return ids;
}

Control::Body GraphReader::read_body(const Json& json, const std::string& where) {
  if (depth_ >= kDeepestBody) fail(where + pg::format(": bodies are nested more than %u deep", kDeepestBody));
  check_object(json, where + ": a body", {"name", "symbols", "sources", "nodes", "arguments", "results", "detached"});
  Control::Body body{make_body(g_), text_in(json, "name", where + ": a body"), {}, {}, {}};
  try {
    GraphReader(json, *this, *body.graph).read_inside(body);
  } catch (const pg::Error& e) {
    body.graph->forget_history();  // which holds the graph
    body.graph->parent = nullptr;
    if (e.code != PG_E_DATA_LOSS && e.code != PG_E_NOT_SUPPORTED) throw;
    const std::string inner = e.what();  // of bodies in bodies in bodies the innermost say enough
    if (inner.size() > 250) throw;
    throw pg::Error(e.code, where + ": " + body.name.substr(0, 60) + ": " + inner, e.native, e.flags);
  } catch (...) {
    body.graph->forget_history();
    body.graph->parent = nullptr;
    throw;
  }
  return body;
}

void GraphReader::read_inside(Control::Body& body) {
  const std::string where = "the body";
  Scoped<Graph*> recording(ambient().graph, &g_);
  read_symbols(list_of(document_, "symbols", where));
  for (auto& [word, symbol] : declared_) {
    if (symbols_.find(word) != nullptr) fail("symbol '" + word + "' is one of the graph around");
    if (symbol.node.empty()) symbols_.bind(word, new_symbol(g_, symbol.name));
  }
  for (const Json& source : list_of(document_, "sources", where)) read_source(source);
  for (const Json& node : list_of(document_, "nodes", where)) read_node(node);
  check_symbols();
  body.arguments = read_values(list_of(document_, "arguments", where), "arguments", where);
  body.results = read_values(list_of(document_, "results", where), "results", where);
  for (uint32_t id : body.results) body.linked.push_back(id != Control::none && g_.is_linked(id) ? 1 : 0);
  if (!document_.contains("detached")) return;
  for (const Json& index : list_of(document_, "detached", where))
    body.linked[index_of(index, body.linked.size(), where + ": an entry of \"detached\"")] = 0;
}

uint32_t GraphReader::read_argument(const Json& json, const std::string& name, Device& place,
                                    const std::string& where) {
  const Json& list = shape_list(json, where);
  int64_t shape[PG_MAX_RANK];
  for (uint32_t i = 0; i < list.size(); i++)
    if (shape[i] = dimension(list[i], where); !PG_DIM_IS_SYMBOLIC(shape[i]) && shape[i] < 0)
      fail(where + ": a size is less than 0");
  return guarded(where, [&] {
    MetaRef meta =
        intern_meta(dtype_of(member(json, "dtype", where), where), static_cast<uint32_t>(list.size()), shape);
    const uint32_t id = add_value(g_, ValueKind::placeholder, meta, &place, name);
    if (flag_in(json, "gradient", false, where)) source_tensor(g_, id);
    return id;
  });
}

// Sizes that add_control left open are those that the document tells: of two bodies, or of several outputs, they may
// be known to be one. Runs compare them.
void GraphReader::take_sizes(uint32_t id, const Json& json, size_t made_before, const std::string& what) {
  const Meta& meta = *g_.values[id].meta;
  const Json& list = shape_list(json, what);
  int64_t shape[PG_MAX_RANK];
  bool other = false;
  for (uint32_t i = 0; i < meta.rank; i++) {
    shape[i] = meta.shape[i];
    auto fresh = g_.made_symbols.begin() + static_cast<std::ptrdiff_t>(made_before);
    if (list.size() != meta.rank || std::find(fresh, g_.made_symbols.end(), shape[i]) == g_.made_symbols.end())
      continue;
    const int64_t told = dimension(list[i], what);
    if (!PG_DIM_IS_SYMBOLIC(told)) continue;
    other |= told != shape[i];
    shape[i] = told;
  }
  if (other) g_.values[id].meta = intern_meta(meta.dtype, meta.rank, shape);
}

void GraphReader::name_outputs(uint32_t index, size_t made_before, const std::string& name, const Json& outputs,
                               const std::string& where) {
  const auto ids = g_.nodes[index].outputs;  // recording moves nodes
  for (uint32_t k = 0; k < ids.size(); k++)
    for (uint32_t axis = 0; axis < g_.values[ids[k]].meta->rank; axis++) {
      auto word = counted_.find({name, k, axis});
      if (word == counted_.end()) continue;
      const int64_t d = g_.values[ids[k]].meta->shape[axis];
      auto fresh = g_.made_symbols.begin() + static_cast<std::ptrdiff_t>(made_before);
      if (std::find(fresh, g_.made_symbols.end(), d) == g_.made_symbols.end())
        fail(where + ": its output has no symbol of its own");
      guarded(where, [&] { symbols_.bind(word->second, d); });
    }
  for (uint32_t k = 0; k < ids.size(); k++) {
    const std::string what = where + pg::format(": output %u", k + 1);
    check_object(outputs[k], what, {"name", "dtype", "shape", "device", "named", "gradient"});
    flag_in(outputs[k], "gradient", false, what);
    const std::string own = text_in(outputs[k], "name", what);
    if (k == 0 && own != name) fail(what + " has another name than its node");
    take_sizes(ids[k], outputs[k], made_before, what);
    check_described(ids[k], outputs[k], what);
    const std::string place = place_;
    if (outputs[k].contains("device")) place_ = text_in(outputs[k], "device", what);
    add_name(own, ids[k], what);
    place_ = place;
    guarded(what, [&] { graph_rename(g_, ids[k], own); });
    g_.values[ids[k]].named = flag_in(outputs[k], "named", false, what);
  }
}

// The outputs on the tape, as the front end had hung them: those that the node was made with together, those that were
// kept for gradients each on its own.
void GraphReader::hang(uint32_t index, const std::vector<TensorRef>& held, const Json& outputs) {
  std::vector<Tensor*> inputs;
  for (const TensorRef& t : held)
    if (t->node) inputs.push_back(t.get());
  if (inputs.empty()) return;
  const auto ids = g_.nodes[index].outputs;  // recording moves nodes
  const uint32_t own = g_.nodes[index].control->own;
  auto hang_on = [&](uint32_t first, uint32_t count) {
    bool any = false;
    std::vector<TensorRef> made;
    for (uint32_t k = first; k < first + count; k++) {
      any |= is_flagged(outputs[k]);
      made.push_back(tensor_of(g_, ids[k]));
    }
    if (!any) return;
    const uint64_t number = record_custom(inputs.data(), static_cast<uint32_t>(inputs.size()), made.data(), count, {});
    for (uint32_t k = 0; k < count; k++) {
      if (!is_flagged(outputs[first + k])) continue;
      graph_note_custom(*made[k]);
      GraphValue& v = g_.values[ids[first + k]];  // which is looked up by name from now on
      v.history = made[k]->node;
      v.output = made[k]->output;
    }
    whole().g_.hung.push_back({number, &g_, index, first, count, static_cast<uint32_t>(inputs.size()), false});
  };
  hang_on(0, own);
  for (uint32_t k = own; k < ids.size(); k++) hang_on(k, 1);
}

// A value whose gradient a function of a script was.
void GraphReader::read_lost(uint32_t id, const Json& json, const std::string& what) {
  if (!json.contains("custom")) return;
  std::vector<TensorRef> held;
  std::vector<Tensor*> inputs;
  for (const Json& name : list_of(json, "custom", what)) {
    auto it = values_.find(text_of(name, "custom", what));
    if (it == values_.end() || it->second == id) fail(what + ": its gradient is by a value that is not there");
    held.push_back(tensor_of(g_, it->second));
    if (held.back()->node) inputs.push_back(held.back().get());
  }
  if (inputs.empty()) return;
  std::vector<TensorRef> made{tensor_of(g_, id)};
  const uint64_t number = record_custom(inputs.data(), static_cast<uint32_t>(inputs.size()), made.data(), 1, {});
  g_.values[id].history = nullptr;
  graph_note_custom(*made[0]);
  g_.values[id].history = made[0]->node;
  g_.values[id].output = made[0]->output;
  whole().g_.hung.push_back(
      {number, &g_, g_.values[id].node, g_.values[id].output, 1, static_cast<uint32_t>(inputs.size()), true});
}

}  // namespace perigee
