// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

namespace perigee {
namespace {

std::string value_text(const Graph& g, uint32_t id) { return id == UINT32_MAX ? "-" : g.values[id].name; }

std::string type_text(const GraphValue& v) {
  return std::string(pg::dtype_name(v.meta->dtype)) + " " + shape_text(*v.meta);
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

std::string graph_text(const Graph& g) {
  std::string text;
  for (const GraphValue& v : g.values)
    if (v.kind != ValueKind::node)
      text += v.name + " = " + kind_text(v.kind) + "  " + type_text(v) + "  " + v.device->name + "\n";
  for (const GraphNode& n : g.nodes) {
    std::string outputs, inputs;
    for (uint32_t id : n.outputs) outputs += (outputs.empty() ? "" : ", ") + g.values[id].name;
    for (uint32_t id : n.inputs) inputs += (inputs.empty() ? "" : ", ") + value_text(g, id);
    for (auto& [input, id] : n.writes) outputs += (outputs.empty() ? "" : ", ") + g.values[id].name;
    text += outputs + " = " + n.op->info->name + "(" + inputs + ")";
    if (!n.outputs.empty()) text += "  " + type_text(g.values[n.outputs[0]]);
    text += "  " + n.device->name + "\n";
  }
  return text;
}

std::string graph_dot(const Graph& g) {
  std::string text = "digraph perigee {\n  node [shape=box, fontname=monospace];\n";
  for (uint32_t id = 0; id < g.values.size(); id++) {
    const GraphValue& v = g.values[id];
    if (v.kind != ValueKind::node)
      text += "  v" + std::to_string(id) + " [label=\"" + escaped(v.name) + "\\n" + kind_text(v.kind) + " " +
              escaped(type_text(v)) + "\", style=rounded];\n";
  }
  for (uint32_t i = 0; i < g.nodes.size(); i++) {
    const GraphNode& n = g.nodes[i];
    text += "  n" + std::to_string(i) + " [label=\"" + escaped(n.name) + "\\n" + n.device->name + "\"];\n";
    for (uint32_t id : n.inputs) {
      if (id == UINT32_MAX) continue;
      const GraphValue& v = g.values[id];
      std::string from = v.kind == ValueKind::node ? "n" + std::to_string(v.node) : "v" + std::to_string(id);
      text += "  " + from + " -> n" + std::to_string(i) + " [label=\"" + escaped(shape_text(*v.meta)) + "\"];\n";
    }
  }
  return text + "}\n";
}

}  // namespace perigee
