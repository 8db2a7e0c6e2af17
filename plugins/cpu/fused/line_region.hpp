// SPDX-License-Identifier: Apache-2.0
// A piece with operators that work on lines: reductions, softmax, normalisation, with what is elementwise before,
// between and behind them. A few lines at a time go through all of it, in blocks that stay in the caches; lines that
// are longer than that are folded in pieces, into accumulators, and so are columns, some rows at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "../lines.hpp"
#include "region_kernel.hpp"

namespace cpu {

class LineRegion final : public pg::Kernel {
 public:
  // Whether its nodes are more than elements of one shape.
  static bool is_needed(const pg::Region& piece);

  LineRegion(const pg::Region& piece, pg::Plan& plan);
  void launch(const pg_launch& launch) override;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Value {
    enum Kind : uint8_t { kUnknown, kInput, kOutput, kBuffer };
    Kind kind = kUnknown;
    uint32_t index = 0;    // of the region's input or output
    bool full = false;     // elements of all lines
    bool numbers = false;  // one a line
    bool by_line = false;  // numbers that elements of their line can take as they are broadcast
    int64_t bytes = 0;     // of a line; 0: it has none
    int64_t offset = 0;    // of a buffer: bytes of a line, of an element where lines are folded
    uint32_t maker = kNone, level = 0;
  };
  // What is run in order, for each block of lines.
  struct Stage {
    bool of_numbers = false;                // elements are numbers a line
    std::unique_ptr<RegionKernel> program;  // else:
    std::unique_ptr<Lines> lines;
    std::vector<uint32_t> inputs, outputs;  // values; kNone: absent
    uint64_t attrs = 0;                     // of the node
    int64_t written = 0;                    // bytes of results that nobody reads here
    bool over_input = false;                // a result may lie where an input does
  };
  struct Copy {
    uint32_t value, output;
  };
  enum class Way : uint8_t {
    kBlocks,  // lines as wholes, some at a time
    kPieces,  // long lines are folded into numbers, known at the end
    kColumns  // and so are columns: a line is what its elements in all rows are
  };
  struct Shared;
  struct Programs;
  class Thread;
  class Folds;
  class Pieces;
  class Columns;
  bool folds() const { return way_ != Way::kBlocks; }
  void run_pieces(const Shared& shared) const;   // line_pieces.cpp
  void run_columns(const Shared& shared) const;  // line_columns.cpp

  void find_lines_of(const pg::Region& piece);
  void find_levels(const pg::Region& piece);
  void make_stages(const pg::Region& piece);
  void add_program(const pg::Region& piece, const std::vector<uint32_t>& nodes, bool of_numbers);
  void add_lines(const pg::Region& piece, uint32_t node);
  void place_values(const pg::Region& piece);
  void place_output(const pg::Region& piece, uint32_t output, const std::vector<uint32_t>& last_read);
  bool is_read_after(uint32_t value, uint32_t stage) const;
  bool reads_by_line(const Stage& stage, uint32_t value) const;

  std::vector<std::unique_ptr<Lines>> makers_;  // by node, until stages take them
  std::vector<Value> values_;
  std::vector<Stage> stages_;
  std::vector<Copy> late_;  // results that are put in their place behind the last stage of a block
  int64_t lines_bytes() const;
  int64_t thread_bytes() const;
  bool has_product() const {
    return std::any_of(stages_.begin(), stages_.end(), [](const Stage& s) { return s.lines && s.lines->makes; });
  }

  int64_t lines_ = 1, length_ = 1, block_ = 1;
  int64_t rooms_ = 0;  // threads that have what they need in the host's workspace; 0: it is little, or not in blocks
  int64_t full_bytes_ = 0, number_bytes_ = 0,
          shared_bytes_ = 0;  // of buffers a line (full: where it folds, an element)
  int cost_ = 1;
  Way way_ = Way::kBlocks;
};

}  // namespace cpu
