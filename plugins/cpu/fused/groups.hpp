// SPDX-License-Identifier: Apache-2.0
// Which nodes of a region may become one kernel: those that are joined so far.
//
// A group works on elements of one shape, whose results lie in one order of axes. Where some of its nodes work on lines
// (lines.hpp), it also has numbers a line: what they make, and what is made of that element by element.
#pragma once

#include <vector>

#include "../lines.hpp"
#include "perigee/compiler.hpp"
#include "perigee/node_groups.hpp"

namespace cpu {

// Lines up to here lie in the caches as a whole. What makes a number of a longer one takes it in pieces; the number is
// known at the end only.
constexpr int64_t kLongestLine = 16384;

// How long the lines of `of` are of which `t` holds a number each: of the same rank with ones at the end, or one
// element. 0: it does not.
int64_t line_length(const pg_tensor& t, const pg_tensor& of);

class Groups {
 public:
  explicit Groups(uint32_t nodes) : groups_(nodes) {}

  void add_elementwise(uint32_t node, const pg_tensor& result, int width);  // -1: truth values only
  // numbers: of what it makes a number a line; NULL: nothing.
  void add_lines(uint32_t node, const pg_tensor& x, int64_t length, bool leading, const pg_tensor* numbers);
  // Makes one group of two where a kernel could compute both.
  void join(uint32_t a, uint32_t b) { groups_.join(a, b, fit, merge); }
  // The two are never in one group: one needs of the other what a kernel has in pieces only.
  void bar(uint32_t a, uint32_t b) { groups_.bar(a, b); }
  bool makes_numbers(uint32_t node, const pg_tensor& like);  // whether its group has numbers a line, of that shape
  const pg_tensor* full(uint32_t node) { return groups_.of(node).full; }
  bool leading(uint32_t node) { return groups_.of(node).leading; }
  bool in_lines(uint32_t node) { return groups_.of(node).length != 0 && !leading(node); }
  uint32_t find(uint32_t node) { return groups_.find(node); }

 private:
  struct Group {
    int width = -1;  // of words: 4 bytes (0) or 8 (1)
    const pg_tensor *full = nullptr, *numbers = nullptr;
    int64_t length = 0;    // of lines; 0: no node works on lines
    bool leading = false;  // they are columns
    bool used = false;     // something elementwise is made of its numbers
  };
  static bool fit(const Group& a, const Group& b);
  static void merge(Group& to, const Group& from);

  pg::NodeGroups<Group> groups_;
};

}  // namespace cpu
