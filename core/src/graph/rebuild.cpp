// SPDX-License-Identifier: Apache-2.0
// Reads graphs from JSON documents. A document may come from anywhere: each name, index, kind and shape in it is looked
// at before it is used, and what an operator makes of its inputs is what counts.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/log.hpp"
#include "graph/checked_json.hpp"
#include "graph/document.hpp"
#include "graph/expression.hpp"
#include "graph/values.hpp"

namespace perigee {
namespace {

using namespace document;

// ---- the graph ----

class Reader {
 public:
  Reader(const Json& document, GraphContents contents, Graph& g)
      : document_(document), contents_(std::move(contents)), g_(g) {}

  void read() {
    check_object(document_, "the graph", {"symbols", "sources", "nodes"});
    Scoped<Graph*> recording(ambient().graph, &g_);
    Scoped<int32_t> place(ambient().device, -1);
    Scoped<const char*> no_scope(ambient().name_scope, nullptr);
    Scoped<const char*> origin(ambient().origin, nullptr);
    Scoped<const Autocast*> no_casts(ambient().autocast, nullptr);
    Scoped<Condition*> no_condition(ambient().condition, nullptr);
    Scoped<bool> no_lines(ambient().log_placement, false);
    Scoped<bool> not_looked_at(ambient().detect_anomaly, false);
    Scoped<bool> taped(ambient().grad_enabled, true);
    read_symbols(list_of(document_, "symbols", "the graph"));
    for (const Json& source : list_of(document_, "sources", "the graph")) read_source(source);
    if (!contents_.tensors.empty()) fail("the tensor " + shown(contents_.tensors.begin()->first) + " is of no source");
    for (const Json& node : list_of(document_, "nodes", "the graph")) read_node(node);
    for (auto& [word, symbol] : declared_)
      if (symbols_.find(word) == nullptr) fail("symbol '" + word + "' is of no placeholder and no output");
    finish_variables();
    warn_of_devices();
  }

 private:
  struct Symbol {
    std::string name, node;  // a placeholder's; a node's, with the output that has it
    uint32_t output = 0;
  };
  struct Variable {
    uint32_t id;
    std::string latest;
  };

  // ---- symbols and shapes ----

  void read_symbols(const Json& list) {
    for (const Json& json : list) {
      std::string where = "a symbol";
      check_object(json, where, {"id", "name", "node", "output"});
      const std::string word = text_in(json, "id", where);
      where = "symbol " + shown(word);
      if (!is_word(word)) fail(where + " is no word of letters, digits and _");
      Symbol symbol;
      if (json.contains("node")) {
        if (json.contains("name")) fail(where + ": it has both a name and a node");
        symbol.node = text_in(json, "node", where);
        symbol.output = index_of(member(json, "output", where), UINT32_MAX, where + ": \"output\"");
        if (!counted_.emplace(std::make_pair(symbol.node, symbol.output), word).second)
          fail(where + ": another one is of that output");
      } else {
        if (json.contains("output")) fail(where + ": it has an output, but no node");
        symbol.name = text_in(json, "name", where);
      }
      if (!declared_.emplace(word, symbol).second) fail(where + " stands there twice");
    }
  }

  int64_t dimension(const Json& json, const std::string& where) const {
    if (json.is_string()) {
      try {
        const int64_t d = read_dim(json.get<std::string>(), symbols_);
        if (PG_DIM_IS_SYMBOLIC(d)) return d;
      } catch (const pg::Error& e) {
        throw pg::Error(e.code, where + ": " + e.what());
      }
      fail(where + ": a size that is a number is written as one");
    }
    if (!is_int64(json) || PG_DIM_IS_SYMBOLIC(json.get<int64_t>())) fail(where + ": a size is no whole number");
    return json.get<int64_t>();
  }

  // A placeholder's axis: its symbol is made with it.
  const Symbol* feed_symbol(const Json& json, const std::string& where) const {
    if (!json.is_string()) return nullptr;
    auto it = declared_.find(json.get<std::string>());
    if (it == declared_.end() || it->second.name.empty())
      fail(where + ": an axis of a placeholder is a number or a symbol that feeds decide");
    return &it->second;
  }

  const Json& shape_list(const Json& json, const std::string& where) const {
    const Json& list = list_of(json, "shape", where);
    if (list.size() > PG_MAX_RANK) fail(where + pg::format(": %zu axes are more than %d", list.size(), PG_MAX_RANK));
    return list;
  }

  void check_described(uint32_t id, const Json& json, const std::string& where) const {
    const Meta& meta = *g_.values[id].meta;
    const uint32_t dtype = dtype_of(member(json, "dtype", where), where);
    const Json& list = shape_list(json, where);
    bool equal = dtype == meta.dtype && list.size() == meta.rank;
    for (uint32_t i = 0; equal && i < meta.rank; i++) equal = dimension(list[i], where) == meta.shape[i];
    if (!equal)
      fail(where + ": it is to be " + pg::dtype_name(dtype) + " " + list.dump().substr(0, 100) + ", but is " +
           pg::dtype_name(meta.dtype) + " " + shape_text(meta));
  }

  // ---- devices ----

  Device& find_place(const std::string& name) {
    if (contents_.device != nullptr) return *contents_.device;
    auto [it, fresh] = devices_.try_emplace(name, nullptr);
    if (fresh) {
      try {
        it->second = &find_device(name);
      } catch (const pg::Error&) {
        it->second = &default_device();
        absent_ += (absent_.empty() ? "" : ", ") + name.substr(0, 80);
      }
    }
    return *it->second;
  }

  void warn_of_devices() const {
    if (!absent_.empty())
      write_log(PG_LOG_WARNING, contents_.shown + ": what is placed on " + absent_ + ", which is not here, goes to " +
                                    default_device().name);
  }

  // ---- sources ----

  void read_source(const Json& json) {
    std::string where = "a source";
    check_object(json, where, {"name", "kind", "dtype", "shape", "device", "named", "latest"});
    const std::string name = text_in(json, "name", where), kind = text_in(json, "kind", "source " + shown(name));
    where = kind.substr(0, 20) + " " + shown(name);
    Device& place = find_place(text_in(json, "device", where));
    if (values_.count(name)) fail(where + ": the name is taken");
    uint32_t id = 0;
    if (kind == "placeholder")
      id = read_placeholder(json, name, place, where);
    else if (kind == "variable" || kind == "constant")
      id = read_contents(json, name, kind == "variable" ? ValueKind::variable : ValueKind::constant, place, where);
    else if (kind == "description")
      id = read_description(json, name, place, where);
    else
      fail(where + ": there is no such kind of source");
    values_[name] = id;
    placed_[name] = json["device"].get<std::string>();
    g_.values[id].named = flag_in(json, "named", false, where);
    if (kind == "variable")
      variables_[name] = {id, text_in(json, "latest", where)};
    else if (json.contains("latest"))
      fail(where + ": it has a latest value, as variables have");
  }

  uint32_t read_placeholder(const Json& json, const std::string& name, Device& place, const std::string& where) {
    const Json& list = shape_list(json, where);
    std::array<int64_t, PG_MAX_RANK> shape{};
    std::array<const char*, PG_MAX_RANK> names{};
    for (size_t i = 0; i < list.size(); i++) {
      const Symbol* symbol = feed_symbol(list[i], where);
      if (symbol != nullptr)
        names[i] = symbol->name.c_str();
      else if ((shape[i] = dimension(list[i], where)) < 0)
        fail(where + ": a size is less than 0");
    }
    Scoped<int32_t> here(ambient().device, place.id);
    TensorRef t = guarded(where, [&] {
      return graph_placeholder(g_, name, dtype_of(member(json, "dtype", where), where),
                               static_cast<uint32_t>(list.size()), shape.data(), names.data());
    });
    for (size_t i = 0; i < list.size(); i++)
      if (names[i] != nullptr) bind(list[i].get<std::string>(), t->meta->shape[i]);
    return t->value;
  }

  uint32_t read_contents(const Json& json, const std::string& name, ValueKind kind, Device& place,
                         const std::string& where) {
    auto it = contents_.tensors.find(name);
    if (it == contents_.tensors.end()) fail(where + ": the file has no tensor of that name");
    TensorRef value = std::move(it->second);
    contents_.tensors.erase(it);
    TensorRef t = guarded(
        where, [&] { return graph_take(g_, kind, name, value->device == &place ? value : move_to(*value, place)); });
    check_described(t->value, json, where);
    return t->value;
  }

  uint32_t read_description(const Json& json, const std::string& name, Device& place, const std::string& where) {
    const Json& list = shape_list(json, where);
    std::array<int64_t, PG_MAX_RANK> shape{};
    for (size_t i = 0; i < list.size(); i++)
      if (PG_DIM_IS_SYMBOLIC(shape[i] = dimension(list[i], where))) fail(where + ": it has a symbol as a size");
    return guarded(where,
                   [&] {
                     MetaRef meta = intern_meta(dtype_of(member(json, "dtype", where), where),
                                                static_cast<uint32_t>(list.size()), shape.data());
                     return graph_take(g_, ValueKind::constant, name, make_tensor(meta, nullptr, 0, &place));
                   })
        ->value;
  }

  // Two axes may have one symbol.
  void bind(const std::string& word, int64_t symbol) {
    const int64_t* known = symbols_.find(word);
    if (known == nullptr || *known != symbol) symbols_.bind(word, symbol);
  }

  // ---- nodes ----

  struct Call {
    const Op* op;
    Device* place;
    std::vector<uint32_t> inputs;
    std::vector<uint32_t> groups;
    std::vector<uint8_t> attrs;
    std::vector<TensorRef> held;
    std::vector<Tensor*> pointers;
  };

  void read_node(const Json& json) {
    std::string where = "a node";
    check_object(json, where,
                 {"name", "operator", "device", "origin", "inputs", "groups", "attributes", "outputs", "writes",
                  "after", "bound", "taped", "detached"});
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
    if (json.contains("origin")) n.origin = g_.origins.insert(text_in(json, "origin", where)).first->c_str();
    name_node(n, name, outputs, json, where);
  }

  void read_inputs(Call& c, const Json& json, const std::string& where) {
    for (const Json& input : list_of(json, "inputs", where)) {
      c.inputs.push_back(UINT32_MAX);
      if (input.is_null()) continue;
      const std::string name = text_of(input, "inputs", where);
      auto it = values_.find(name);
      if (it == values_.end())
        fail(where + pg::format(": input %zu, ", c.inputs.size()) + shown(name) +
             ", is no value that is made before it");
      c.inputs.back() = it->second;
    }
    for (uint32_t id : c.inputs) {
      c.held.push_back(id == UINT32_MAX ? nullptr : tensor_of(g_, id));
      c.pointers.push_back(c.held.back().get());
    }
    if (json.contains("detached")) {
      for (const Json& index : list_of(json, "detached", where)) {
        const uint32_t i = index_of(index, c.inputs.size(), where + ": an entry of \"detached\"");
        if (c.held[i]) c.held[i]->node = nullptr;
      }
    }
    read_groups(c, json, where);
  }

  static void read_groups(Call& c, const Json& json, const std::string& where) {
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

  // ---- calls ----

  template <class Body>
  static auto guarded(const std::string& where, Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (const pg::Error& e) {
      if (e.code == PG_E_DATA_LOSS || e.code == PG_E_OUT_OF_MEMORY) throw;
      const int32_t code =
          e.code == PG_E_INVALID_ARGUMENT || e.code == PG_E_FAILED_PRECONDITION ? PG_E_DATA_LOSS : e.code;
      throw pg::Error(code, where + ": " + e.what(), e.native, e.flags);
    }
  }

  // A copy to where its input is already: both devices are one here.
  bool copies_nothing(const Call& c, const Json& json) const {
    if (c.op->role != Role::transfer || c.inputs.size() != 1 || c.inputs[0] == UINT32_MAX) return false;
    if (placed_.at(json["inputs"][0].get<std::string>()) == place_) return false;  // here as there
    int32_t target;
    std::memcpy(&target, c.attrs.data() + c.op->device_offset, sizeof target);
    return target == c.pointers[0]->device->id && c.place->id == target;
  }

  void pass_through(const Call& c, const std::string& name, const Json& outputs, const Json& json,
                    const std::string& where) {
    if (outputs.size() != 1 || json.contains("writes")) fail(where + ": it has one output and writes into nothing");
    if (text_in(outputs[0], "name", where) != name) fail(where + ": its first output has another name");
    check_described(c.inputs[0], outputs[0], where);
    add_name(name, c.inputs[0], where);
    g_.names.try_emplace(name, c.inputs[0]);
  }

  // Exactly this call and nothing else: an honest file needs no conversion and no copy more.
  void record_call(Call& c, const std::string& name, const std::string& where) {
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
    if (g_.nodes.size() != before + 1 || g_.nodes.back().inputs != c.inputs || g_.nodes.back().op != c.op)
      fail(where + ": its inputs have dtypes or devices that do not go together");
    if (!c.attrs.empty() && g_.nodes.back().attrs != c.attrs) fail(where + ": its attributes leave something open");
    if (g_.nodes.back().device != c.place) fail(where + ": it cannot be on " + c.place->name);
  }

  void add_name(const std::string& name, uint32_t id, const std::string& where) {
    if (!values_.emplace(name, id).second) fail(where + ": the name " + shown(name) + " is taken");
    placed_[name] = place_;
  }

  void name_node(GraphNode& n, const std::string& name, const Json& outputs, const Json& json,
                 const std::string& where) {
    if (outputs.size() != n.outputs.size())
      fail(where + pg::format(": it has %zu outputs; expected %zu", outputs.size(), n.outputs.size()));
    for (uint32_t i = 0; i < n.outputs.size(); i++) {
      auto word = counted_.find({name, i});
      if (word == counted_.end()) continue;
      const int64_t d = g_.values[n.outputs[i]].meta->rank > 0 ? g_.values[n.outputs[i]].meta->shape[0] : 0;
      if (std::find(g_.made_symbols.begin(), g_.made_symbols.end(), d) == g_.made_symbols.end())
        fail(where + ": its output has no symbol of its own");
      symbols_.bind(word->second, d);
    }
    for (uint32_t i = 0; i < n.outputs.size(); i++) {
      const std::string what = where + pg::format(": output %u", i + 1);
      check_object(outputs[i], what, {"name", "dtype", "shape", "named", "variable", "over", "leaf"});
      const std::string own = text_in(outputs[i], "name", what);
      if (i == 0 && own != name) fail(what + " has another name than its node");
      check_described(n.outputs[i], outputs[i], what);
      take_mark(n.outputs[i], own, outputs[i], what);
    }
    read_writes(n, json, where);
    read_after(n, json, where);
    read_bound(n, json, where);
    if (!n.outputs.empty()) return;
    if (g_.names.count(name) && n.name != name) fail(where + ": the name is taken");
    g_.names.erase(n.name);
    g_.names[n.name = name] = UINT32_MAX;
  }

  void read_writes(GraphNode& n, const Json& json, const std::string& where) {
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

  void read_after(GraphNode& n, const Json& json, const std::string& where) {
    if (!json.contains("after")) return;
    for (const Json& name : list_of(json, "after", where)) {
      auto it = values_.find(text_of(name, "after", where));
      const bool known = it != values_.end();
      if (!known ||
          (g_.values[it->second].kind == ValueKind::node && g_.values[it->second].node + 1 >= g_.nodes.size()))
        fail(where + ": it comes after a value that is not made before it");
      if (std::find(n.after.begin(), n.after.end(), it->second) != n.after.end())
        fail(where + ": it comes after one value twice");
      n.after.push_back(it->second);
    }
  }

  void read_bound(GraphNode& n, const Json& json, const std::string& where) {
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

  void take_mark(uint32_t id, const std::string& name, const Json& json, const std::string& what) {
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

  void check_same(uint32_t id, uint32_t source, const std::string& what) const {
    const GraphValue &v = g_.values[id], &s = g_.values[source];
    if (v.meta->dtype != s.meta->dtype || !same_shape(*v.meta, *s.meta) || v.device != s.device)
      fail(what + ": " + s.name + " is " + pg::dtype_name(s.meta->dtype) + " " + shape_text(*s.meta) + ", it is not");
  }

  void finish_variables() {
    g_.written = std::move(written_);
    for (auto& [name, variable] : variables_) {
      auto it = values_.find(variable.latest);
      if (it == values_.end()) fail("variable " + shown(name) + ": its latest value is not there");
      if (it->second != variable.id && g_.values[it->second].variable != variable.id)
        fail("variable " + shown(name) + ": its latest value is not one of its own");
      g_.latest[variable.id] = it->second;
    }
  }

  const Json& document_;
  GraphContents contents_;
  Graph& g_;
  SymbolNames symbols_;
  std::map<std::string, Symbol> declared_;
  std::map<std::pair<std::string, uint32_t>, std::string> counted_;  // word of the symbol of a node's output
  std::map<std::string, uint32_t> values_;                           // by the document's name
  std::map<std::string, std::string> placed_;                        // where it says that each of them is
  std::string place_;                                                // and the node that is read
  std::map<std::string, Variable> variables_;
  std::vector<WrittenValue> written_;
  std::map<std::string, Device*> devices_;
  std::string absent_;
};

}  // namespace

GraphRef read_graph_document(const std::string& text, GraphContents contents) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::exception&) {
    fail("the graph is not valid JSON");
  }
  if (!document.is_object() || !document.contains("graph")) fail("it has no \"graph\"");
  GraphRef graph = GraphRef::adopt(new Graph());
  try {
    Reader(document["graph"], std::move(contents), *graph).read();
  } catch (...) {
    graph->forget_history();  // which holds the graph
    throw;
  }
  return graph;
}

}  // namespace perigee
