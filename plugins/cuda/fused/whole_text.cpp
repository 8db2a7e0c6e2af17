// SPDX-License-Identifier: Apache-2.0
#include "whole_text.hpp"

#include "expression.hpp"

namespace cuda::fused {

std::string WholeText::known() const {
  const char* type = compute_name(line.dtype);
  if (line.kind == LineNode::kSoftmax)
    return pg::format("    const auto m%u = load_one<cuda::Total<%s>>(%s, t);\n", node, type, room[0].c_str());
  if (line.kind == LineNode::kSoftmaxGrad)
    return pg::format("    const auto m%u = load_one<%s>(%s, t);\n", node, type, room[0].c_str());
  return pg::format("    const auto m%u = load_one<%s>(%s, t), g%u = load_one<%s>(%s, t);\n", node, type,
                    room[0].c_str(), node, type, room[1].c_str());
}

std::string WholeText::element(const std::string (&inputs)[3]) const {
  const std::string &x = inputs[0], &weight = inputs[1], &bias = inputs[2];
  if (line.kind == LineNode::kSoftmax)
    return pg::format("m%u.%s(%s)", node, is("log_softmax") ? "log_of" : "of", x.c_str());
  if (line.kind == LineNode::kSoftmaxGrad)
    return pg::format("cuda::slope_of<%s>(%s, %s, m%u, %s)", storage_name(line.dtype), x.c_str(), inputs[1].c_str(),
                      node, is("log_softmax_grad") ? "true" : "false");
  const char* type = compute_name(line.dtype);
  return pg::format("(%s - m%u) * g%u * static_cast<%s>(%s) + static_cast<%s>(%s)", x.c_str(), node, node, type,
                    weight.empty() ? "1" : weight.c_str(), type, bias.empty() ? "0" : bias.c_str());
}

std::string WholeText::find(const std::string& where, const std::string (&aligned)[3], size_t dealt,
                            const std::string& eps) const {
  const bool softmax = line.kind == LineNode::kSoftmax;
  const std::string rooms = softmax ? room[0] : room[0] + ", " + room[1] + ", " + eps;
  const std::string lines = pg::format("length, lines, [&](int t) -> const char* { return %s; });\n", where.c_str());
  // Packets are taken, and lines are kept in registers, where the operator's own kernel does.
  auto by_width = [&](int width, int which) {
    return pg::format("        %s<%s, %d>(%s, %uu, static_cast<int>(a.dealt[%zu][%d]), ",
                      softmax ? "find_totals" : "find_scales", line.storage.c_str(), width, rooms.c_str(), line.dtype,
                      dealt, which) +
           lines;
  };
  std::string all = "    {\n";
  if (line.kept > 0)
    all += pg::format("      if (%s && %s && %s)\n        find_scales_kept<%s, %d>(%s, ", aligned[0].c_str(),
                      aligned[1].c_str(), aligned[2].c_str(), storage_name(line.dtype), line.kept, rooms.c_str()) +
           lines + "      else\n";
  if (line.in_packets)
    all += pg::format("      if (%s)\n", aligned[0].c_str()) + by_width(line.width, 0) + "      else\n";
  return all + by_width(1, 1) + "    }\n";
}

std::string WholeText::find_flows(const std::string& y, const std::string& dy, const std::string& beyond) const {
  auto at = [](const char* type, const std::string& place) {
    return pg::format(", [&](int t) -> %s { return %s; }", type, place.c_str());
  };
  return pg::format("    find_flows<%s, %s>(%s, length, lines", storage_name(line.dtype),
                    is("log_softmax_grad") ? "true" : "false", room[0].c_str()) +
         at("const char*", y) + at("const char*", dy) + at("uint32_t", beyond) + ");\n";
}

}  // namespace cuda::fused
