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
  bool faulty = false;             // some of them note faults: at element i of n of a packet that begins at `at`

  void line(const std::string& text) { body += "      " + text + "\n"; }
  // Declares the node's result; what each of its steps makes is rounded to its dtype, as an operator's result is.
  void add(uint32_t node);

 private:
  // What the steps of a node are written with.
  struct Steps {
    const pg::KernelCall& call;
    const NodeExpression& node;
    const pg_node& raw;
    std::vector<std::string> names;  // of those that are there already
  };
  std::string number(KernelNumber number, const char* type);
  std::string operand(const Steps& s, const pg::ScalarStep& step, int k);
  void check(const pg::math::PrimitiveInfo& info, const std::string& operand);
  std::string expression(const Steps& s, const pg::ScalarStep& step);
  std::string parameters(const Steps& s, const pg::ScalarStep& step, bool special);

  const pg::Region& piece_;
  std::vector<KernelNumber>& numbers_;
  size_t arrays_ = 0;
};

}  // namespace cuda::fused
