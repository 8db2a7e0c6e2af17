// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes as statements of a generated kernel.
#pragma once

#include <string>
#include <vector>

#include "expression.hpp"
#include "source.hpp"

namespace cuda::fused {

class NodeText {
 public:
  // Numbers of the call that statements read are added to `numbers`.
  NodeText(const pg::Region& piece, std::vector<KernelNumber>& numbers)
      : names(piece.raw->value_count), piece_(piece), numbers_(numbers) {}

  std::vector<std::string> names;  // by value: what stands for its element in the statements that follow
  std::string body;                // the statements

  void line(const std::string& text) { body += "      " + text + "\n"; }
  // Declares the node's result, rounded to its dtype.
  void add(uint32_t node);

 private:
  std::string number(KernelNumber number, const char* type);
  std::string operand(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw, int k);
  std::string expression(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw);
  std::string parameters(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw, bool special);

  const pg::Region& piece_;
  std::vector<KernelNumber>& numbers_;
  size_t arrays_ = 0;
};

}  // namespace cuda::fused
