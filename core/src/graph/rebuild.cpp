// SPDX-License-Identifier: Apache-2.0
// Reads graphs from JSON documents. A document may come from anywhere: each name, index, kind and shape in it is looked
// at before it is used, and what an operator makes of its inputs is what counts.
#include "graph/rebuild.hpp"

#include <array>

#include "base/log.hpp"

namespace perigee {

using namespace document;

void GraphReader::read() {
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
  check_symbols();
  finish_variables();
  warn_of_devices();
}

void GraphReader::check_symbols() const {
  for (auto& [word, symbol] : declared_)
    if (symbols_.find(word) == nullptr) fail("symbol '" + word + "' is of no placeholder and no output");
}

void GraphReader::read_symbols(const Json& list) {
  for (const Json& json : list) {
    std::string where = "a symbol";
    check_object(json, where, {"id", "name", "node", "output", "axis"});
    const std::string word = text_in(json, "id", where);
    where = "symbol " + shown(word);
    if (!is_word(word)) fail(where + " is no word of letters, digits and _");
    Symbol symbol;
    if (json.contains("node")) {
      if (json.contains("name")) fail(where + ": it has both a name and a node");
      symbol.node = text_in(json, "node", where);
      symbol.output = index_of(member(json, "output", where), UINT32_MAX, where + ": \"output\"");
      if (json.contains("axis")) symbol.axis = index_of(json["axis"], PG_MAX_RANK, where + ": \"axis\"");
      if (!counted_.emplace(std::make_tuple(symbol.node, symbol.output, symbol.axis), word).second)
        fail(where + ": another one is of that output");
    } else {
      if (json.contains("output") || json.contains("axis")) fail(where + ": it has an output, but no node");
      symbol.name = text_in(json, "name", where);
    }
    if (!declared_.emplace(word, symbol).second) fail(where + " stands there twice");
  }
}

int64_t GraphReader::dimension(const Json& json, const std::string& where) const {
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
const GraphReader::Symbol* GraphReader::feed_symbol(const Json& json, const std::string& where) const {
  if (!json.is_string()) return nullptr;
  auto it = declared_.find(json.get<std::string>());
  if (it == declared_.end() || it->second.name.empty())
    fail(where + ": an axis of a placeholder is a number or a symbol that feeds decide");
  return &it->second;
}

const Json& GraphReader::shape_list(const Json& json, const std::string& where) const {
  const Json& list = list_of(json, "shape", where);
  if (list.size() > PG_MAX_RANK) fail(where + pg::format(": %zu axes are more than %d", list.size(), PG_MAX_RANK));
  return list;
}

void GraphReader::check_described(uint32_t id, const Json& json, const std::string& where) const {
  const Meta& meta = *g_.values[id].meta;
  const uint32_t dtype = dtype_of(member(json, "dtype", where), where);
  const Json& list = shape_list(json, where);
  bool equal = dtype == meta.dtype && list.size() == meta.rank;
  for (uint32_t i = 0; equal && i < meta.rank; i++) equal = dimension(list[i], where) == meta.shape[i];
  if (!equal)
    fail(where + ": it is to be " + pg::dtype_name(dtype) + " " + list.dump().substr(0, 100) + ", but is " +
         pg::dtype_name(meta.dtype) + " " + shape_text(meta));
}

Device& GraphReader::find_place(const std::string& name) {
  if (around_ != nullptr) return around_->find_place(name);
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

void GraphReader::warn_of_devices() const {
  if (!absent_.empty())
    write_log(PG_LOG_WARNING, contents_.shown + ": what is placed on " + absent_ + ", which is not here, goes to " +
                                  default_device().name);
}

void GraphReader::read_source(const Json& json) {
  std::string where = "a source";
  check_object(json, where, {"name", "kind", "dtype", "shape", "device", "named", "latest", "gradient"});
  const std::string name = text_in(json, "name", where), kind = text_in(json, "kind", "source " + shown(name));
  where = kind.substr(0, 20) + " " + shown(name);
  Device& place = find_place(text_in(json, "device", where));
  if (values_.count(name)) fail(where + ": the name is taken");
  uint32_t id = 0;
  if (json.contains("gradient") && kind != "argument") fail(where + ": it has a gradient, as arguments have");
  const bool fits = around_ == nullptr ? kind != "argument" : kind == "argument" || kind == "description";
  if (!fits)
    fail(where + ": there is no such kind of source");
  else if (kind == "argument")
    id = read_argument(json, name, place, where);
  else if (kind == "placeholder")
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

uint32_t GraphReader::read_placeholder(const Json& json, const std::string& name, Device& place,
                                       const std::string& where) {
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

uint32_t GraphReader::read_contents(const Json& json, const std::string& name, ValueKind kind, Device& place,
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

uint32_t GraphReader::read_description(const Json& json, const std::string& name, Device& place,
                                       const std::string& where) {
  const Json& list = shape_list(json, where);
  std::array<int64_t, PG_MAX_RANK> shape{};
  for (size_t i = 0; i < list.size(); i++)
    if (PG_DIM_IS_SYMBOLIC(shape[i] = dimension(list[i], where)) && around_ == nullptr)
      fail(where + ": it has a symbol as a size");
  return guarded(where,
                 [&] {
                   MetaRef meta = intern_meta(dtype_of(member(json, "dtype", where), where),
                                              static_cast<uint32_t>(list.size()), shape.data());
                   return graph_take(g_, ValueKind::constant, name, make_tensor(meta, nullptr, 0, &place));
                 })
      ->value;
}

// Two axes may have one symbol.
void GraphReader::bind(const std::string& word, int64_t symbol) {
  const int64_t* known = symbols_.find(word);
  if (known == nullptr || *known != symbol) symbols_.bind(word, symbol);
}

void GraphReader::finish_variables() {
  g_.written = std::move(written_);
  for (auto& [name, variable] : variables_) {
    auto it = values_.find(variable.latest);
    if (it == values_.end()) fail("variable " + shown(name) + ": its latest value is not there");
    if (it->second != variable.id && g_.values[it->second].variable != variable.id)
      fail("variable " + shown(name) + ": its latest value is not one of its own");
    g_.latest[variable.id] = it->second;
  }
}

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
    GraphReader(document["graph"], std::move(contents), *graph).read();
  } catch (...) {
    graph->forget_history();  // which holds the graph
    throw;
  }
  return graph;
}

}  // namespace perigee
