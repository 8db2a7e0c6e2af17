// SPDX-License-Identifier: Apache-2.0
// A plan's launches as plans of the device (perigee/capture.h): runs of steps that are launched as one, between
// steps that cannot be captured. Numbers that change from call to call lie in a block of memory on the device, which is
// written before each launch.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compile/plan.hpp"
#include "device/captured.hpp"

namespace perigee {

// What is being launched, for whoever has to say what failed.
struct Running {
  uint32_t item = 0;
  const Op* op = nullptr;
};
void launch_step(Plan& plan, const PlanStep& step, Running& running);
// The same for what launching leaves behind: versions.
void note_step(Plan& plan, const PlanStep& step);
// Its run-time attributes, of a region those of all its nodes.
std::vector<uint8_t> numbers_of(const Plan& plan, const PlanStep& step);

// The memory of a call: by numbers of tensors from outside, and by slots.
struct CallMemory {
  const std::vector<TensorRef>& tensors;
  const std::vector<StorageRef>& storages;
};

class Captured final : public CaptureLog {
 public:
  Captured();
  ~Captured();
  Captured(const Captured&) = delete;
  // Launches the plan, capturing it first where it has to. False: nothing has been done, launch step by step.
  bool run(Plan& plan, const CallMemory& memory, Running& running);
  bool holds_arena() const { return !pieces_.empty(); }
  std::string text() const;  // JSON members, for :stats()

  uint64_t sequence(const char* what, const char* origin) override;
  void launch(Signature& s, const pg_launch& launch) override;
  void launch(Region& region, RegionKernel& kernel, const pg_launch& launch) override;
  pg_address workspace(uint64_t bytes) override;
  static void end_all();  // at shutdown, before devices are closed

 private:
  // The memory of a tensor from outside.
  struct Where {
    const Storage* storage = nullptr;
    int64_t offset = 0;
    uint64_t buffer = 0, begin = 0;  // of the storage's block
    bool operator==(const Where&) const = default;
  };
  // A base of operands that do not lie in the arena: where captured work finds it.
  struct Stand {
    bool outside = false, written = false, moves = false;
    uint32_t base = 0;
    int64_t low = 0, high = 0;  // bytes of it that operands cover, from where it begins
    std::vector<uint32_t> operands;
    StorageRef held;  // of one that stays where it is
    Where at;         // and that is where
    StorageRef own;   // of one that moves: a copy, of the bytes from low to high
  };
  // A captured launch, as pg_capture is asked about it, or, of a region, the compiler that made its kernel.
  struct Entry {
    SignatureRef signature;
    Region* region = nullptr;
    RegionKernel* kernel = nullptr;
    uint32_t step = 0;
    std::vector<pg_address> in, out;
    pg_launch launch{};
    uint64_t bytes = 0, offset = 0;
    std::vector<uint8_t> attrs;  // of the call that is launched, the generator's state included
    bool written = false;        // the image has what they come to, and it is the same whenever they are
  };
  struct Named {
    const char *what, *origin;
  };
  struct Piece {
    uint32_t first = 0, end = 0;  // steps
    bool captured = false;
    uint64_t plan = 0;
    std::vector<Named> names;
    std::vector<Entry> entries;
    uint64_t begin = 0, bytes = 0;  // in the block
    bool written = false;           // the block has what `image` has
  };

  static Where where(const Tensor& x);
  bool is_eligible(const Plan& plan);
  bool is_present(const CallMemory& memory) const;
  void look(const CallMemory& memory);
  bool is_as_seen(const CallMemory& memory);
  bool has_frozen_changes(const Plan& plan);
  void place_operands(Plan& plan);
  void put_back(Plan& plan, const CallMemory& memory);
  void copy_in(const CallMemory& memory);
  void copy_out(const CallMemory& memory);
  int32_t write(Entry& entry, pg_error& error);
  bool renew(Plan& plan, Piece& piece, Running& running);
  void launch_piece(Plan& plan, Piece& piece, Running& running);
  void drop();
  void bar(const std::string& why);
  // ---- capture_make.cpp ----
  void find_stands(const Plan& plan);
  bool is_capturable(const Plan& plan, uint32_t step) const;
  Entry& note_entry(const pg_launch& launch);
  pg_address block_of_next();
  void make_room(const CallMemory& memory);
  void measure(Plan& plan);
  void divide(Plan& plan);
  void capture_piece(Plan& plan, Piece& piece);
  void capture(Plan& plan, const CallMemory& memory);

  Device* device_ = nullptr;
  uint32_t stream_ = 0, captures_ = 0;
  bool stale_ = false;        // a piece has to be captured anew
  std::string barred_, why_;  // why nothing is captured; why something was captured anew
  StorageRef arena_;          // as it was laid out
  std::vector<Stand> stands_;
  std::map<uint32_t, Where> seen_;  // where tensors from outside were the first time
  std::set<uint32_t> moving_;       // those that have been elsewhere since
  std::set<uint32_t> cut_;          // launches whose numbers changed, and that keep those they were captured with
  std::vector<Piece> pieces_;
  std::vector<std::vector<uint8_t>> frozen_;  // by step: run-time attributes that it keeps
  std::map<uint32_t, StorageRef> rooms_;      // by step: workspaces of regions
  StorageRef block_;
  std::vector<uint8_t> image_;  // of the block
  // ---- while something is captured ----
  bool measuring_ = false, unsupported_ = false;
  std::vector<Entry> measured_;
  Piece* into_ = nullptr;
  uint32_t step_ = 0;
  size_t entry_ = 0;
};

}  // namespace perigee
