// SPDX-License-Identifier: Apache-2.0
// A program, run over tensors.
#pragma once

#include <algorithm>
#include <memory>

#include "program.hpp"

namespace cpu {

// Bytes for one launch or piece: on the stack where they are few.
class RegionBytes {
 public:
  static constexpr int64_t kNear = 24576;
  // given: so many that the caller has, aligned; or NULL.
  explicit RegionBytes(int64_t bytes, char* given = nullptr) {
    if (given != nullptr) {
      at_ = given;
      return;
    }
    if (bytes > static_cast<int64_t>(sizeof near_))
      far_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(bytes) + 64);
    at_ = far_ ? far_.get() + (64 - reinterpret_cast<uintptr_t>(far_.get()) % 64) % 64 : near_;
  }
  char* take(int64_t bytes) {
    char* at = at_;
    at_ += (bytes + 63) / 64 * 64;
    return at;
  }

 private:
  alignas(64) char near_[kNear];
  std::unique_ptr<char[]> far_;
  char* at_;
};

// Elementwise operators over tensors of one shape, as a kernel of their own or as a part of one (line_region.hpp).
class RegionKernel final : public pg::Kernel {
 public:
  explicit RegionKernel(const pg::Region& piece);
  void launch(const pg_launch& launch) override;

  // ---- a part of another kernel ----

  struct Bases {
    char* lane[kTileOperands];  // where inputs begin, then outputs
    const char* numbers;        // a tile each
    const char* parameters;
    bool past;
  };
  class Worker;

  int64_t count() const { return count_; }  // elements
  int cost() const { return program_.cost; }
  uint32_t inputs() const { return inputs_; }
  // Room for a launch's numbers, and they: into bases.
  int64_t number_bytes() const {
    return static_cast<int64_t>(program_.numbers.size()) * kTileMost + program_.parameter_bytes + 128;
  }
  void put_numbers(const pg_launch& launch, RegionBytes& bytes, Bases& bases) const;
  // Room for a worker.
  int64_t worker_bytes() const {
    return static_cast<int64_t>(lanes_.size() + slots_) * kTileMost + gathered() * kBlock * 8;
  }
  // The output is read soon: it is never written past the caches.
  void keep_near(uint32_t output);

 private:
  // A tensor of the region, as the loop walks over it: inputs, then outputs.
  struct Lane {
    Storage storage;
    int64_t stride[PG_MAX_RANK] = {};
    bool linear = false;    // element p of the loop lies p elements from the start
    bool constant = false;  // one element for all
  };

  int64_t gathered() const {  // tensors whose elements may have to be picked up
    return std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& l) { return !l.linear && !l.constant; });
  }
  void merge_axes(const pg_tensor& like);

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

// What a thread needs to run it.
class RegionKernel::Worker {
 public:
  // bases: its lanes may change between runs.
  Worker(const RegionKernel& kernel, const Bases& bases, RegionBytes& room);
  // Elements [begin, end).
  void run(int64_t begin, int64_t end);

 private:
  struct Back {
    char* to;
    const char* pad;
    int64_t bytes;
  };

  // What is picked up element by element has room for so many.
  int64_t longest_of_rows() const;
  TileOperand& operand(size_t lane) { return frame_.operand[k_.operand_of_[lane]]; }
  void repeat(size_t lane, const char* element);
  void place(size_t lane, int64_t p, int64_t n);
  void rest(int64_t from, int64_t end);

  const RegionKernel& k_;
  const Bases& bases_;
  char *pads_[kTileOperands], *blocks_[kTileOperands];
  TileFrame frame_;
};

}  // namespace cpu
