// SPDX-License-Identifier: Apache-2.0
// Steps of a run that are launched as one kernel, where a compiler can (core/src/fuse), for given sizes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuse/region.hpp"
#include "plan/prepare.hpp"

namespace perigee {

// What the run before has told of a step.
struct KnownStep {
  // An output that lies in an input's memory, so many bytes behind where that begins.
  struct Shared {
    uint32_t output, input;
    int64_t offset;
  };
  const Signature* signature = nullptr;  // NULL: a copy between devices, or what is more than one call
  const uint8_t* attrs = nullptr;
  bool joins = false;  // nothing but the call happens: it may be part of another kernel
  const std::vector<Shared>* shared = nullptr;
};

class JoinedSteps {
 public:
  // A step is launched by itself, or with others where the last of them stands. What those make gets its memory where
  // the first of them stands: views of it may come before it is filled.
  enum class Role : uint8_t { alone, first, inner, last };
  struct Piece {
    Region* region;
    RegionKernel* kernel;
    uint32_t first, last;  // steps
  };

  JoinedSteps(const PreparedRun& p, const std::vector<KnownStep>& known);

  bool empty() const { return pieces_.empty(); }
  Role role(uint32_t step) const { return roles_[step]; }
  // Of a step that is not alone. NULL: nobody wants what it makes.
  const Piece* piece(uint32_t step) const { return piece_of_[step] == none ? nullptr : &pieces_[piece_of_[step]]; }
  // By step: the slots that nothing reads after it.
  const std::vector<std::vector<uint32_t>>& ends() const { return ends_; }
  // Whether nothing asks for a slot's value outside of the piece that makes it.
  bool is_left_out(uint32_t slot) const { return left_out_[slot] != 0; }
  // What a slot looked like in the run before, without contents. NULL where no single call makes or reads it.
  const TensorRef& described(uint32_t slot) const { return described_[slot]; }
  // `values`: by slot, all that the piece reads and makes.
  void launch(const Piece& piece, const std::vector<TensorRef>& values);

 private:
  static constexpr uint32_t none = PreparedRun::none;
  void describe(const PreparedRun& p, const std::vector<KnownStep>& known);
  void list(const PreparedRun& p, const std::vector<KnownStep>& known);
  void take(const PreparedRun& p);
  std::vector<uint8_t> outliving(const PreparedRun& p) const;
  void leave_views_out(const PreparedRun& p, const std::vector<KnownStep>& known);
  void move_ends(const PreparedRun& p);

  Launches launches_;              // operands are slots
  std::vector<uint32_t> step_of_;  // by launch
  std::vector<TensorRef> described_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<Piece> pieces_;
  std::vector<Role> roles_;
  std::vector<uint32_t> piece_of_;
  std::vector<uint8_t> left_out_;
  std::vector<std::vector<uint32_t>> ends_;
};

}  // namespace perigee
