// SPDX-License-Identifier: Apache-2.0
// From a graph of operations to something that runs: engines are asked for by cuDNN's heuristics, those that would
// break a promise of ours are left out, and the first that takes the graph becomes the plan.
#pragma once

#include <memory>
#include <optional>

#include "cudnn/descriptor.hpp"

namespace cuda::dnn {

struct Wanted {
  bool exact = false;                        // no TF32, and no transforms that cost digits
  uint64_t workspace = uint64_t{256} << 20;  // bytes at most
};

class Plan {
 public:
  uint64_t workspace() const { return workspace_; }
  // The addresses of the tensors by uid; aligned as the graph says.
  void run(uint32_t device, cudaStream_t stream, std::span<const int64_t> uids, std::span<void* const> addresses,
           void* workspace) const;

 private:
  friend std::optional<Plan> find_plan(uint32_t device, std::span<const Descriptor* const> operations,
                                       const Wanted& wanted, std::shared_ptr<const void> parts);
  // Whether cuDNN keeps what a plan was made of is not said: all of it lives as long as the plan.
  std::shared_ptr<const void> parts_;
  std::shared_ptr<const Descriptor> graph_;
  Descriptor config_, descriptor_;
  uint64_t workspace_ = 0;
};

// None: no engine takes the graph under these conditions. `parts` holds what the operations are made of.
std::optional<Plan> find_plan(uint32_t device, std::span<const Descriptor* const> operations, const Wanted& wanted,
                              std::shared_ptr<const void> parts);

// Notes, with the reason that cuDNN gave, that own kernels compute `what`.
void log_no_engine(const std::string& what);

}  // namespace cuda::dnn
