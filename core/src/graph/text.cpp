// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/control.hpp"
#include "registry/check.hpp"
#include "tensor/dims.hpp"

namespace perigee {
namespace {

std::string type_text(const GraphValue& v) {
  return std::string(pg::dtype_name(v.meta->dtype)) + " " + shape_text(*v.meta);
}

std::string number_text(double x) {
  return std::abs(x) < 1e15 && x == std::floor(x) ? pg::format("%.0f", x) : pg::format("%.9g", x);
}

std::string number_text(const pg_number& n) {
  if (n.kind == PG_SCALAR_COMPLEX)
    return number_text(n.real) + (n.imaginary < 0 ? " - " : " + ") + number_text(std::abs(n.imaginary)) + "i";
  return pg::is_whole(n) ? std::to_string(n.integer) : number_text(n.real);
}

std::string bool_text(bool on) { return on ? "true" : "false"; }

template <class T>
T read(const GraphNode& n, uint32_t offset) {
  T value;
  std::memcpy(&value, n.attrs.data() + offset, sizeof value);
  return value;
}

// Positions are shown as front ends count them, from 1.
std::string axis_text(int64_t axis) { return std::to_string(axis < 0 ? axis : axis + 1); }

std::string list_text(const GraphNode& n, const pg_attr_info& a) {
  auto list = read<pg_ints>(n, a.offset);
  std::string text;
  for (int64_t i = 0; i < list.count; i++)
    text += (i == 0 ? "" : ", ") + (a.kind == PG_ATTR_AXES ? axis_text(list.value[i]) : dim_text(list.value[i]));
  return "{" + text + "}";
}

std::string attr_text(const GraphNode& n, const pg_attr_info& a) {
  switch (a.kind) {
    case PG_ATTR_BOOL: return bool_text(read<int32_t>(n, a.offset) != 0);
    case PG_ATTR_INT: return dim_text(read<int64_t>(n, a.offset));
    case PG_ATTR_FLOAT: return number_text(read<double>(n, a.offset));
    case PG_ATTR_NUMBER: return number_text(read<pg_number>(n, a.offset));
    case PG_ATTR_DTYPE: return pg::dtype_name(read<uint32_t>(n, a.offset));
    case PG_ATTR_CHOICE: return a.choices[read<int32_t>(n, a.offset)];
    case PG_ATTR_AXIS: return axis_text(read<int64_t>(n, a.offset));
    case PG_ATTR_DEVICE: return device(read<int32_t>(n, a.offset)).name;
    default: return list_text(n, a);
  }
}

// Whether a node says something of an attribute: what is left as the operator has it goes without saying.
bool is_told(const GraphNode& n, const pg_attr_info& a) {
  if (a.kind == PG_ATTR_SCALAR || (a.flags & PG_ATTR_INTERNAL)) return false;
  if (a.flags & PG_ATTR_REQUIRED) return true;
  if (a.kind == PG_ATTR_INTS || a.kind == PG_ATTR_AXES || a.kind == PG_ATTR_DIMS) {
    pg_ints usual, list = read<pg_ints>(n, a.offset);
    std::memcpy(&usual, static_cast<const uint8_t*>(n.op->info->defaults) + a.offset, sizeof usual);
    return list.count != usual.count || !std::equal(list.value, list.value + list.count, usual.value);
  }
  if (a.kind == PG_ATTR_NUMBER) {  // zeroed bytes and what says that it is a float are the same number
    pg_number usual, own = read<pg_number>(n, a.offset);
    std::memcpy(&usual, static_cast<const uint8_t*>(n.op->info->defaults) + a.offset, sizeof usual);
    return number_text(own) != number_text(usual);
  }
  uint32_t bytes = attr_bytes(a.kind);
  return std::memcmp(n.attrs.data() + a.offset, static_cast<const uint8_t*>(n.op->info->defaults) + a.offset, bytes) !=
         0;
}

// The number that stands in place of a declared input, or "-" where nothing does.
std::string absent_text(const GraphNode& n, uint32_t declared) {
  if (n.op->scalar_attr < 0) return "-";
  const pg_attr_info& a = *n.op->info->attrs[n.op->scalar_attr];
  auto scalar = read<pg_scalar>(n, a.offset);
  if (scalar.kind == PG_SCALAR_NONE || scalar.input != static_cast<int32_t>(declared)) return "-";
  auto value = read<pg_number>(n, a.value);
  return scalar.kind == PG_SCALAR_BOOL ? bool_text(value.real != 0) : number_text(value);
}

// "x, 2, keepdim=true"
std::string arguments_text(const Graph& g, const GraphNode& n) {
  std::vector<std::string> parts;
  uint32_t flat = 0;
  for (uint32_t declared = 0; declared < n.groups.size(); declared++)
    for (uint32_t k = 0; k < n.groups[declared]; k++, flat++)
      parts.push_back(n.inputs[flat] == UINT32_MAX ? absent_text(n, declared) : g.values[n.inputs[flat]].name);
  while (!parts.empty() && parts.back() == "-") parts.pop_back();
  for (uint32_t id : n.after) parts.push_back("^" + g.values[id].name);  // as TensorFlow writes it
  for (uint32_t i = 0; i < n.op->info->attr_count; i++) {
    const pg_attr_info& a = *n.op->info->attrs[i];
    auto bound = std::find_if(n.bound.begin(), n.bound.end(), [&](auto& b) { return b.first == a.offset; });
    if (bound != n.bound.end()) {
      parts.push_back(std::string(a.name) + "=" + g.values[bound->second].name);
    } else if (is_told(n, a)) {
      parts.push_back(std::string(a.name) + "=" + attr_text(n, a));
    }
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Said of a value that a variable has from then on.
std::string writes_text(const Graph& g, uint32_t id) {
  uint32_t variable = g.values[id].variable;
  return variable == UINT32_MAX ? "" : "  writes " + g.values[variable].name;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

const char* kind_text(ValueKind kind) {
  switch (kind) {
    case ValueKind::placeholder: return "placeholder";
    case ValueKind::variable: return "variable";
    case ValueKind::constant: return "constant";
    default: return "node";
  }
}

namespace {

// What a value that no node makes is; of a body's argument, what it stands for (`owner` of the graph around).
std::string source_text(const Graph& g, uint32_t id, const Graph* around, const GraphNode* owner,
                        const Control::Body* body) {
  if (owner != nullptr)
    for (size_t i = 0; i < body->arguments.size(); i++)
      if (body->arguments[i] == id) {
        bool step = i >= owner->control->carries && i < owner->control->carries + owner->control->steps;
        return "argument(" + around->values[owner->inputs[i]].name + (step ? "[step])" : ")");
      }
  return kind_text(g.values[id].kind);
}

std::string control_text(const Control& c) {
  std::string text;
  if (c.kind == ControlKind::scan && c.steps == 0) text += ", length=" + dim_text(c.length);
  if (c.most >= 0) text += ", max_iterations=" + std::to_string(c.most);
  return text + (c.reverse ? ", reverse=true" : "");
}

std::string results_text(const Graph& g, const Control::Body& body) {
  std::string text;
  for (uint32_t id : body.results) text += (text.empty() ? "" : ", ") + (id == Control::none ? "-" : g.values[id].name);
  return text;
}

void add_text(std::string& text, const Graph& g, const std::string& indent, const Graph* around, const GraphNode* owner,
              const Control::Body* body) {
  for (uint32_t id = 0; id < g.values.size(); id++) {
    const GraphValue& v = g.values[id];
    if (v.kind != ValueKind::node)
      text += indent + v.name + " = " + source_text(g, id, around, owner, body) + "  " + type_text(v) + "  " +
              v.device->name + "\n";
  }
  for (const GraphNode& n : g.nodes) {
    std::string outputs;
    for (uint32_t id : n.outputs) outputs += (outputs.empty() ? "" : ", ") + g.values[id].name;
    for (auto& [input, id] : n.writes) outputs += (outputs.empty() ? "" : ", ") + g.values[id].name;
    text += indent + outputs + " = " + n.op->info->name + "(" + arguments_text(g, n) +
            (n.control ? control_text(*n.control) : "") + ")";
    if (!n.outputs.empty()) text += "  " + type_text(g.values[n.outputs[0]]);
    text += "  " + n.device->name;
    for (uint32_t id : n.outputs) text += writes_text(g, id);
    for (auto& [input, id] : n.writes) text += writes_text(g, id);
    text += n.origin != nullptr ? std::string("  ") + n.origin + "\n" : "\n";
    if (!n.control) continue;
    for (const Control::Body& b : n.control->bodies) {
      text += indent + "  " + b.name + ":\n";
      add_text(text, *b.graph, indent + "    ", &g, &n, &b);
      text += indent + "    returns " + results_text(*b.graph, b) + "\n";
    }
  }
}

// The dot name of what makes a value; `prefix`: of its graph.
std::string dot_name(const Graph& g, uint32_t id, const std::string& prefix) {
  const GraphValue& v = g.values[id];
  return prefix + (v.kind == ValueKind::node ? "n" + std::to_string(v.node) : "v" + std::to_string(id));
}

void add_dot(std::string& text, const Graph& g, const std::string& prefix) {
  for (uint32_t id = 0; id < g.values.size(); id++) {
    const GraphValue& v = g.values[id];
    if (v.kind != ValueKind::node)
      text += "  " + prefix + "v" + std::to_string(id) + " [label=\"" + escaped(v.name) + "\\n" +
              (prefix.empty() ? kind_text(v.kind) : "argument") + " " + escaped(type_text(v)) + "\", style=rounded];\n";
  }
  for (uint32_t i = 0; i < g.nodes.size(); i++) {
    const GraphNode& n = g.nodes[i];
    const std::string name = prefix + "n" + std::to_string(i);
    text += "  " + name + " [label=\"" + escaped(n.name) + "\\n" + escaped(n.op->info->name) + "(" +
            escaped(arguments_text(g, n)) + ")\\n" + n.device->name;
    for (uint32_t id : n.outputs) text += escaped(writes_text(g, id));
    for (auto& [input, id] : n.writes) text += escaped(writes_text(g, id));
    text += "\"];\n";
    for (uint32_t id : n.inputs) {
      if (id == UINT32_MAX) continue;
      text += "  " + dot_name(g, id, prefix) + " -> " + name + " [label=\"" + escaped(shape_text(*g.values[id].meta)) +
              "\"];\n";
    }
    if (!n.control) continue;
    // Bodies are clusters; what enters and leaves them is dashed.
    for (const Control::Body& b : n.control->bodies) {
      const std::string inner = name + "_" + b.name + "_";
      text += "  subgraph cluster_" + inner + " {\n  label=\"" + escaped(n.name + "/" + b.name) + "\";\n";
      add_dot(text, *b.graph, inner);
      text += "  }\n";
      for (size_t k = 0; k < b.arguments.size(); k++)
        if (b.arguments[k] != Control::none)
          text += "  " + dot_name(g, n.inputs[k], prefix) + " -> " + dot_name(*b.graph, b.arguments[k], inner) +
                  " [style=dashed];\n";
      for (uint32_t id : b.results)
        if (id != Control::none) text += "  " + dot_name(*b.graph, id, inner) + " -> " + name + " [style=dashed];\n";
    }
  }
}

}  // namespace

std::string graph_text(const Graph& g) {
  std::string text;
  add_text(text, g, "", nullptr, nullptr, nullptr);
  return text;
}

std::string graph_dot(const Graph& g) {
  std::string text = "digraph perigee {\n  node [shape=box, fontname=monospace];\n";
  add_dot(text, g, "");
  return text + "}\n";
}

}  // namespace perigee
