// SPDX-License-Identifier: Apache-2.0
// Writes graphs as JSON documents.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "graph/control.hpp"
#include "graph/document.hpp"
#include "graph/expression.hpp"

namespace perigee {

const char* attr_kind_name(uint32_t kind) {
  switch (kind) {
    case PG_ATTR_BOOL: return "bool";
    case PG_ATTR_INT: return "int";
    case PG_ATTR_FLOAT: return "float";
    case PG_ATTR_DTYPE: return "dtype";
    case PG_ATTR_CHOICE: return "choice";
    case PG_ATTR_AXIS: return "axis";
    case PG_ATTR_INTS: return "ints";
    case PG_ATTR_AXES: return "axes";
    case PG_ATTR_DIMS: return "dims";
    case PG_ATTR_DEVICE: return "device";
    case PG_ATTR_SCALAR: return "scalar";
    case PG_ATTR_NUMBER: return "number";
    default: return "none";
  }
}

bool is_draw(const Op& op, const pg_attr_info& attr) {
  return op.seed_offset != 0 && (attr.offset == op.seed_offset || attr.offset == op.offset_offset);
}

namespace {

using Json = nlohmann::ordered_json;

template <class T>
T read(const GraphNode& n, uint32_t offset) {
  T value;
  std::memcpy(&value, n.attrs.data() + offset, sizeof value);
  return value;
}

// JSON has neither infinities nor a zero with a sign.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0 && std::signbit(value)) return "-0";
  return value;
}

class Writer {
 public:
  explicit Writer(const Graph& g) : g_(g) {}

  Json document() {
    Json json{{"operators", Json::object()}, {"graph", Json::object()}};
    write(json["graph"], json["operators"]);
    return json;
  }

 private:
  Writer(const Graph& body, const Writer& around) : g_(body), names_(around.names_), depth_(around.depth_ + 1) {}

  void write(Json& graph, Json& operators) {
    graph["symbols"] = symbols();
    name_leaves();
    for (const WrittenValue& w : g_.written) over_[w.value] = w.before;
    graph["sources"] = sources();
    graph["nodes"] = Json::array();
    for (const GraphNode& n : g_.nodes) {
      graph["nodes"].push_back(n.control ? control(n, operators) : node(n));
      if (!n.control) operators[n.op->info->name] = {{"version", n.op->info->version}, {"plugin", n.op->plugin->name}};
    }
  }

  // Those that feeds decide, then those that nodes find out.
  Json symbols() {
    Json list = Json::array();
    for (const GraphValue& v : g_.values) {
      if (v.kind != ValueKind::placeholder) continue;
      for (uint32_t i = 0; i < v.meta->rank; i++)
        for (int64_t d : dim_symbols(v.meta->shape[i])) {
          if (names_.find(d) != nullptr) continue;
          list.push_back({{"id", names_.add(d, dim_text(d))}, {"name", dim_text(d)}});
        }
    }
    for (const GraphNode& n : g_.nodes) {
      auto count = [&](uint32_t flat, uint32_t axis, int64_t symbol) {
        if (names_.find(symbol) != nullptr) return;
        list.push_back({{"id", names_.add(symbol, n.name + "_count")}, {"node", n.name}, {"output", flat}});
        if (axis != 0) list.back()["axis"] = axis;
      };
      if (n.control)
        each_open(n, count);
      else
        each_counted(n, [&](uint32_t flat, int64_t symbol) { count(flat, 0, symbol); });
    }
    return list;
  }

  template <class Visit>
  void each_counted(const GraphNode& n, Visit&& visit) {
    uint32_t flat = 0;
    for (uint32_t i = 0; i < n.op->info->output_count; i++) {
      const pg_output_info& output = *n.op->info->outputs[i];
      uint32_t count = output.flags & PG_OUTPUT_VARIADIC ? n.groups[output.like] : 1;
      for (uint32_t k = 0; k < count; k++, flat++)
        if (output.flags & PG_OUTPUT_DYNAMIC) visit(flat, g_.values[n.outputs[flat]].meta->shape[0]);
    }
  }

  // Sizes of a node's outputs that it makes known: the first one that has a symbol tells it.
  template <class Visit>
  void each_open(const GraphNode& n, Visit&& visit) {
    for (uint32_t k = 0; k < n.outputs.size(); k++) {
      const Meta& meta = *g_.values[n.outputs[k]].meta;
      for (uint32_t i = 0; i < meta.rank; i++)
        if (std::vector<int64_t> symbols = dim_symbols(meta.shape[i]);
            symbols.size() == 1 && symbols[0] == meta.shape[i])
          visit(k, i, symbols[0]);
    }
  }

  void name_leaves() {
    for (const GraphValue& v : g_.values)
      if (v.kind != ValueKind::node && v.history && v.history->kind == NodeKind::leaf)
        leaves_[v.history.get()] = v.name;
  }

  Json dimension(int64_t d) const { return PG_DIM_IS_SYMBOLIC(d) ? Json(write_dim(d, names_)) : Json(d); }

  Json shape(const Meta& meta) const {
    Json list = Json::array();
    for (uint32_t i = 0; i < meta.rank; i++) list.push_back(dimension(meta.shape[i]));
    return list;
  }

  Json described(const GraphValue& v) const {
    return {{"name", v.name}, {"dtype", pg::dtype_name(v.meta->dtype)}, {"shape", shape(*v.meta)}};
  }

  Json sources() const {
    Json list = Json::array();
    for (uint32_t id = 0; id < g_.values.size(); id++) {
      const GraphValue& v = g_.values[id];
      if (v.kind == ValueKind::node) continue;
      Json source = described(v);
      const bool argument = v.kind == ValueKind::placeholder && depth_ > 0;
      source["kind"] = v.kind == ValueKind::constant && !v.eager->storage ? "description" : kind_text(v.kind);
      if (argument) source["kind"] = "argument";
      if (argument && v.history) source["gradient"] = true;
      source["device"] = v.device->name;
      if (v.named) source["named"] = true;
      if (v.kind == ValueKind::variable) source["latest"] = g_.values[g_.latest.at(id)].name;
      list.push_back(std::move(source));
    }
    return list;
  }

  // What a value is besides a node's output.
  void mark(Json& json, uint32_t id) const {
    const GraphValue& v = g_.values[id];
    if (v.named) json["named"] = true;
    if (v.variable != UINT32_MAX) {
      json["variable"] = g_.values[v.variable].name;
      if (auto before = over_.find(id); before != over_.end()) json["over"] = g_.values[before->second].name;
    }
    // Its gradient is a script's function: what can be told is by which values there is one.
    if (auto custom = g_.custom.find(id); custom != g_.custom.end())
      for (uint32_t by : custom->second) json["custom"].push_back(g_.values[by].name);
    if (!v.history || v.history->kind != NodeKind::leaf) return;
    auto leaf = leaves_.find(v.history.get());
    if (leaf != leaves_.end()) json["leaf"] = leaf->second;
  }

  Json control(const GraphNode& n, Json& operators) {
    const Control& c = *n.control;
    Json json{{"name", n.name}, {"control", control_name(c.kind)}, {"device", n.device->name}};
    if (n.origin != nullptr) json["origin"] = n.origin;
    json["inputs"] = Json::array();
    for (uint32_t i = 0; i < n.inputs.size(); i++) {
      json["inputs"].push_back(g_.values[n.inputs[i]].name);
      if (!c.linked[i] && g_.is_linked(n.inputs[i])) json["detached"].push_back(i);
    }
    if (c.carries > 0) json["carries"] = c.carries;
    if (c.steps > 0) json["steps"] = c.steps;
    if (c.kind == ControlKind::scan && c.steps == 0) json["length"] = dimension(c.length);
    if (c.most >= 0) json["most"] = c.most;
    if (c.reverse) json["reverse"] = true;
    if (depth_ >= kDeepestBody)
      pg::fail_support(pg::format("%s (%s): bodies that are nested more than %u deep", n.name.c_str(),
                                  control_name(c.kind), kDeepestBody));
    for (const Control::Body& b : c.bodies) json["bodies"].push_back(Writer(*b.graph, *this).body(b, operators));
    if (n.outputs.size() > c.own) json["kept"] = n.outputs.size() - c.own;
    json["outputs"] = Json::array();
    for (uint32_t id : n.outputs) {
      const GraphValue& v = g_.values[id];
      Json output = described(v);
      if (v.device != n.device) output["device"] = v.device->name;
      if (v.named) output["named"] = true;
      if (g_.is_linked(id)) output["gradient"] = true;
      json["outputs"].push_back(std::move(output));
    }
    for (uint32_t id : n.after) json["after"].push_back(g_.values[id].name);
    return json;
  }

  Json body(const Control::Body& b, Json& operators) {
    Json json{{"name", b.name}};
    write(json, operators);
    json["arguments"] = Json::array();
    for (uint32_t id : b.arguments) json["arguments"].push_back(name_or_none(id));
    json["results"] = Json::array();
    for (uint32_t k = 0; k < b.results.size(); k++) {
      json["results"].push_back(name_or_none(b.results[k]));
      if (b.results[k] != Control::none && !b.linked[k] && g_.is_linked(b.results[k])) json["detached"].push_back(k);
    }
    return json;
  }

  Json name_or_none(uint32_t id) const { return id == Control::none ? Json(nullptr) : Json(g_.values[id].name); }

  Json node(const GraphNode& n) {
    Json json{{"name", n.name}, {"operator", n.op->info->name}, {"device", n.device->name}};
    if (n.origin != nullptr) json["origin"] = n.origin;
    json["inputs"] = Json::array();
    for (uint32_t id : n.inputs) json["inputs"].push_back(id == UINT32_MAX ? Json(nullptr) : Json(g_.values[id].name));
    if (n.op->variadic) json["groups"] = n.groups;
    json["attributes"] = attributes(n);
    json["outputs"] = Json::array();
    for (uint32_t id : n.outputs) {
      Json output = described(g_.values[id]);
      mark(output, id);
      json["outputs"].push_back(std::move(output));
    }
    for (auto& [input, id] : n.writes) {
      Json write{{"input", input}, {"name", g_.values[id].name}};
      mark(write, id);
      json["writes"].push_back(std::move(write));
    }
    for (auto& [offset, id] : n.bound) json["bound"][attr_at(n, offset)] = g_.values[id].name;
    for (uint32_t id : n.after) json["after"].push_back(g_.values[id].name);
    differentiation(n, json);
    return json;
  }

  static const char* attr_at(const GraphNode& n, uint32_t offset) {
    for (uint32_t i = 0; i < n.op->info->attr_count; i++)
      if (n.op->info->attrs[i]->offset == offset) return n.op->info->attrs[i]->name;
    pg::fail(PG_E_INTERNAL, n.name + " reads a number that it has not");
  }

  Json attributes(const GraphNode& n) const {
    Json all = Json::object();
    for (uint32_t i = 0; i < n.op->info->attr_count; i++) {
      const pg_attr_info& a = *n.op->info->attrs[i];
      if (is_draw(*n.op, a) || is_scalar_number(*n.op, a)) continue;
      if (a.kind == PG_ATTR_SCALAR && read<pg_scalar>(n, a.offset).kind == PG_SCALAR_NONE) continue;
      try {
        all[a.name] = {{"type", attr_kind_name(a.kind)}, {"value", value(n, a)}};
      } catch (const pg::Error& e) {
        throw pg::Error(e.code, n.name + " (" + n.op->info->name + "): " + a.name + ": " + e.what());
      }
    }
    return all;
  }

  // It is written beside what says that it stands for an input.
  static bool is_scalar_number(const Op& op, const pg_attr_info& a) {
    return op.scalar_attr >= 0 && op.info->attrs[op.scalar_attr]->value == a.offset;
  }

  Json value(const GraphNode& n, const pg_attr_info& a) const {
    switch (a.kind) {
      case PG_ATTR_BOOL: return read<int32_t>(n, a.offset) != 0;
      case PG_ATTR_INT:
      case PG_ATTR_AXIS: return read<int64_t>(n, a.offset);
      case PG_ATTR_FLOAT: return number(read<double>(n, a.offset));
      case PG_ATTR_DTYPE: {
        auto dtype = read<uint32_t>(n, a.offset);
        return dtype == 0 ? Json(nullptr) : Json(pg::dtype_name(dtype));
      }
      case PG_ATTR_CHOICE: return a.choices[read<int32_t>(n, a.offset)];
      case PG_ATTR_DEVICE: {
        auto place = read<int32_t>(n, a.offset);
        return place < 0 ? Json(nullptr) : Json(device(place).name);
      }
      case PG_ATTR_SCALAR: return scalar(n, a);
      case PG_ATTR_NUMBER: return tagged(read<pg_number>(n, a.offset));
      default: return list(n, a);
    }
  }

  static Json scalar(const GraphNode& n, const pg_attr_info& a) {
    static constexpr const char* kKinds[] = {"none", "bool", "int", "float"};
    auto s = read<pg_scalar>(n, a.offset);
    return {{"kind", kKinds[s.kind]}, {"input", s.input}, {"number", tagged(read<pg_number>(n, a.value))}};
  }

  // An integer without a point, a complex number as its parts.
  static Json tagged(const pg_number& n) {
    if (n.kind == PG_SCALAR_COMPLEX) return Json::array({number(n.real), number(n.imaginary)});
    return pg::is_whole(n) ? Json(n.integer) : number(n.real);
  }

  Json list(const GraphNode& n, const pg_attr_info& a) const {
    auto ints = read<pg_ints>(n, a.offset);
    Json values = Json::array();
    for (int64_t i = 0; i < ints.count; i++)
      values.push_back(a.kind == PG_ATTR_DIMS ? dimension(ints.value[i]) : Json(ints.value[i]));
    return values;
  }

  // Where the tape knows less of the call than one that is made anew would: nothing at all, or not of all inputs.
  void differentiation(const GraphNode& n, Json& json) const {
    const Node* taped = nullptr;
    for (uint32_t id : n.outputs) {
      const NodeRef& h = g_.values[id].history;
      if (h && h->kind == NodeKind::op && h->op == n.op && g_.values[id].output < h->outputs.size() &&
          h->outputs[g_.values[id].output].value == id)
        taped = h.get();
    }
    bool open = !(n.op->info->traits & PG_OP_NO_GRAD), any = false;
    Json apart = Json::array();
    uint32_t flat = 0;
    for (uint32_t declared = 0; declared < n.groups.size(); declared++)
      for (uint32_t k = 0; k < n.groups[declared]; k++, flat++) {
        const uint32_t id = n.inputs[flat];
        if (id == UINT32_MAX || !g_.is_linked(id) || (n.op->info->inputs[declared]->flags & PG_INPUT_META)) continue;
        any = open;
        if (taped != nullptr && !taped->inputs[flat].edge.node) apart.push_back(flat);
      }
    if (taped == nullptr && any) json["taped"] = false;
    if (!apart.empty()) json["detached"] = std::move(apart);
  }

  const Graph& g_;
  SymbolNames names_{};
  const uint32_t depth_ = 0;  // of a body in others
  std::map<const Node*, std::string> leaves_{};
  std::map<uint32_t, uint32_t> over_{};  // a variable's later value -> the one that it took the place of
};

}  // namespace

std::string graph_document(const Graph& g) {
  const Json json = Writer(g).document();
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    pg::fail_argument("a name or an origin in the graph is not valid UTF-8");
  }
}

}  // namespace perigee
