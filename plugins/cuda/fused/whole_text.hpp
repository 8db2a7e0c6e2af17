// SPDX-License-Identifier: Apache-2.0
// Softmax, its gradient and layer_norm as statements of a kernel of lines (line_source.cpp): what is wanted of a line,
// and then its elements.
#pragma once

#include <string>

#include "line_node.hpp"

namespace cuda::fused {

struct WholeText {
  const LineNode& line;
  uint32_t node;        // whose names these are
  std::string room[2];  // where what is known of lines lies: totals, or means and 1 / sqrt(variance + eps)

  // Reads it for line t, and the element that is made of those of its inputs; empty: there is none.
  std::string known() const;
  std::string element(const std::string (&inputs)[3]) const;
  // Finds it, for lines that lie at `where` of t. aligned[i]: a condition that input i begins at a packet; dealt:
  // number of the pair with the threads of a line. eps: a number, for layer_norm.
  std::string find(const std::string& where, const std::string (&aligned)[3], size_t dealt,
                   const std::string& eps) const;
  // The same of a gradient of softmax, for lines of y and dy; beyond: where the former begins (find_flows).
  std::string find_flows(const std::string& y, const std::string& dy, const std::string& beyond) const;

 private:
  bool is(const char* op) const { return pg::KernelCall(&line.call.call).is(op); }
};

}  // namespace cuda::fused
