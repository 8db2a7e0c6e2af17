// SPDX-License-Identifier: Apache-2.0
// Which nodes of a region may become one kernel: those that are joined so far. A group works on elements of one shape,
// whose results lie in one order of axes. Where some of its nodes work on lines, it may also have nodes that work on
// numbers, one a line.
#pragma once

#include "line_node.hpp"
#include "perigee/node_groups.hpp"

namespace cuda::fused {

class Groups {
 public:
  explicit Groups(uint32_t nodes) : groups_(nodes) {}

  // plain: its result and all that it reads are dense, of one shape or one element, as numbers of lines have to be.
  void add_elementwise(uint32_t node, const pg_tensor& result, bool plain);
  void add_lines(uint32_t node, const pg_tensor& x, const LineNode& line);
  // Makes one group of two where a kernel could compute both.
  void join(uint32_t a, uint32_t b) { groups_.join(a, b, fit, merge); }
  // The two are never in one group.
  void bar(uint32_t a, uint32_t b) { groups_.bar(a, b); }
  // Whether a node of this shape that reads t, which `maker` makes, reads of it one number a line of the maker's group,
  // which is known before the line has been left.
  bool spreads(uint32_t maker, const pg_tensor& t, const pg_tensor& shape);
  // Whether its group works on lines that lie together.
  bool has_rows(uint32_t node);
  uint32_t find(uint32_t node) { return groups_.find(node); }

 private:
  struct Group {
    const pg_tensor* full = nullptr;
    bool lines = false;  // some node works on lines
    LineAxes axes;
    bool streamed = false;
    int together = 0;   // of streamed lines: elements of a packet, or of a column that are taken together
    bool plain = true;  // of a group without lines
  };
  static bool fit(const Group& a, const Group& b);
  static void merge(Group& to, const Group& from);

  pg::NodeGroups<Group> groups_;
};

}  // namespace cuda::fused
