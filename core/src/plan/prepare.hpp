// SPDX-License-Identifier: Apache-2.0
// What computing some values of a graph comes down to, worked out once: which nodes, in which order, where their values
// lie, and when each is read for the last time. Costs what those nodes cost, however large the graph is.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"
#include "plan/place.hpp"

namespace perigee {

struct PreparedRun {
  static constexpr uint32_t none = UINT32_MAX;
  // A value of the graph, in the place that it has in a run.
  struct Source {
    uint32_t slot, value;
  };
  struct Feed {
    uint32_t slot, value;  // slot none: fed, but nothing asks for it
    Device* place;
  };
  struct Constant {
    uint32_t slot, value;
    Device* place;
  };
  // Handed out at the end. To the last of those who take a value goes that value itself, to others a copy.
  struct Taken {
    uint32_t slot;
    bool last;
  };
  struct Commit {
    uint32_t variable;  // a value of the graph
    Taken taken;
  };
  struct Write {
    uint32_t input, slot;  // of flat inputs; where the new value goes, none: nobody asks for it
    bool last;             // nobody reads the old one any more
  };
  // A number among a step's attributes that is read off a value.
  struct Bound {
    uint32_t offset, slot;
  };
  // A copy to another device is a step, too: of one input, for the node that first needs it.
  struct Step {
    uint32_t node;
    Device* place;  // where it runs; NULL: a node that owns bodies
    bool move;
    uint32_t at;  // in `slots`: its inputs, outputs, and what it reads as the last one
    uint32_t input_count, output_count, end_count;
    uint32_t write_at, write_count;
    uint32_t bound_at, bound_count;
    bool symbols;  // sizes of the graph stand among its attributes
  };

  std::vector<Feed> feeds;
  std::vector<Source> variables;
  std::vector<Constant> constants;
  std::vector<Step> steps;
  std::vector<Taken> fetches;
  std::vector<Commit> commits;
  uint32_t slot_count = 0;
  bool dynamic = false;  // some sizes are known only when it runs
  std::vector<uint32_t> slots;
  std::vector<Write> writes;
  std::vector<Bound> bounds;

  std::span<const uint32_t> inputs(const Step& s) const { return {&slots[s.at], s.input_count}; }
  std::span<const uint32_t> outputs(const Step& s) const { return {&slots[s.at + s.input_count], s.output_count}; }
  std::span<const uint32_t> ends(const Step& s) const {
    return {&slots[s.at + s.input_count + s.output_count], s.end_count};
  }
  std::span<const Bound> bounds_of(const Step& s) const { return {bounds.data() + s.bound_at, s.bound_count}; }
  std::span<const Write> writes_of(const Step& s) const { return {writes.data() + s.write_at, s.write_count}; }
};

// `fetches` and `feeds` are values of the graph. Throws for placeholders that are needed and not fed. Nodes with
// ordered effects are needed in any case. Without a placement (NULL) all is where it was
// recorded.
PreparedRun prepare_run(const Graph& g, std::span<const uint32_t> fetches, std::span<const uint32_t> feeds,
                        const Placement* placement);
// Of values that `later` needs, those that are made on the way to `now`; those of `known` need nothing.
std::vector<uint32_t> made_on_the_way(const Graph& g, std::span<const uint32_t> now, std::span<const uint32_t> later,
                                      std::span<const uint32_t> known);
// The variables that values need, where those of `known` need nothing.
std::vector<uint32_t> variables_behind(const Graph& g, std::span<const uint32_t> values,
                                       std::span<const uint32_t> known);

}  // namespace perigee
