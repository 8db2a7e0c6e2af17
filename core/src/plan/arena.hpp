// SPDX-License-Identifier: Apache-2.0
// One block for what a run makes and nobody sees: where each value lies in it is worked out once for given sizes.
#pragma once

#include <string>
#include <vector>

#include "call/signature.hpp"
#include "plan/joined.hpp"

namespace perigee {

// Of one run at a time.
class RunArena {
 public:
  // `known`: by step, its signature where that is a view's or plain; NULL: what it does with memory is its own affair,
  // and so is the memory of what it reads. `joined` may be NULL: every step is launched by itself.
  void lay_out(const PreparedRun& p, const std::vector<const Signature*>& known, const JoinedSteps* joined);
  void clear() { *this = RunArena(); }
  void allocate();  // for a run
  void release();
  // The tensor that a slot's value is while the block is allocated; NULL: it has memory of its own.
  Tensor* at(uint32_t slot) const { return tensors_.empty() ? nullptr : tensors_[slot].get(); }
  // What a run comes to: a line about all of it, then a line a step. `moved`: bytes that it copied between devices.
  std::string text(const Graph& g, const PreparedRun& p, const std::vector<const Signature*>& known,
                   const JoinedSteps* joined, bool laid_out, uint64_t moved) const;
  // Bytes: of the block, of what lives in it at once at least, and without reuse.
  uint64_t bytes = 0, bound = 0, separate = 0;

 private:
  std::vector<TensorRef> tensors_;  // by slot
  StorageRef block_;
};

}  // namespace perigee
