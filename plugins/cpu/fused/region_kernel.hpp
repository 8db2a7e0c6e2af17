// SPDX-License-Identifier: Apache-2.0
// A program, run over tensors.
#pragma once

#include <algorithm>

#include "program.hpp"

namespace cpu {

class RegionKernel final : public pg::Kernel {
 public:
  explicit RegionKernel(const pg::Region& piece);
  void launch(const pg_launch& launch) override;

 private:
  // A tensor of the region, as the loop walks over it: inputs, then outputs.
  struct Lane {
    Storage storage;
    int64_t stride[PG_MAX_RANK] = {};
    bool linear = false;    // element p of the loop lies p elements from the start
    bool constant = false;  // one element for all
  };
  struct Bases {
    char* lane[kTileOperands];
    const char* numbers;  // a tile each
    const char* parameters;
    const TileStep* program;
    bool past;
  };
  class Piece;

  int64_t gathered() const {  // tensors whose elements may have to be picked up
    return std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& l) { return !l.linear && !l.constant; });
  }
  void merge_axes(const pg_tensor& like);
  void put_numbers(const pg_launch& launch, char* numbers, char* parameters) const;

  Program program_;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> operand_of_;  // the program's, by lane
  uint32_t inputs_ = 0, slots_ = 0;
  int rank_ = 0;
  int64_t shape_[PG_MAX_RANK] = {};
  int64_t count_ = 1, tile_ = 0, grain_ = 0;
  bool rows_ = false;  // the innermost rows are long: blocks do not cross them
  bool plain_ = true;  // nothing has to be picked up
};

}  // namespace cpu
