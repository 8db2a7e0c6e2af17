// SPDX-License-Identifier: Apache-2.0
// From a graph of operations to something that runs: engines are asked for by cuDNN's heuristics, those that would
// break a promise of ours are left out, and the first that takes the graph becomes the plan.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "cudnn/descriptor.hpp"

namespace cuda::dnn {

struct Wanted {
  bool exact = false;      // no TF32, and no transforms that cost digits
  uint64_t workspace = 0;  // bytes at most
  std::string what;        // is asked for, in messages
};

// Bytes that a plan may ask for where so many are free. The fastest engines of a large convolution want some hundred
// megabytes (they turn dense operands into channels-last ones), so a fixed limit would cost the tensor cores just where
// they pay. Half, as results are yet to be made; and never less than what engines for small operands want.
constexpr uint64_t workspace_limit(uint64_t free) { return std::max(free / 2, uint64_t{256} << 20); }
// By what is free on it now; under deterministic=true by what it has, whoever else uses it: then a launch may run out
// of memory where another engine would have computed other bits.
uint64_t workspace_limit_of(uint32_t device);

// What plans are made for: a device that a handle was created for, or one that is only described to cuDNN.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* description = nullptr;
};

class Plan {
 public:
  uint64_t workspace() const { return workspace_; }
  bool on_tensor_cores() const { return on_tensor_cores_; }
  // The addresses of the tensors by uid; aligned as the graph says.
  void run(uint32_t device, cudaStream_t stream, std::span<const int64_t> uids, std::span<void* const> addresses,
           void* workspace) const;

 private:
  friend std::optional<Plan> find_plan(const Target& target, std::span<const Descriptor* const> operations,
                                       const Wanted& wanted, std::shared_ptr<const void> parts);
  // Whether cuDNN keeps what a plan was made of is not said: all of it lives as long as the plan.
  std::shared_ptr<const void> parts_;
  std::shared_ptr<const Descriptor> graph_;
  Descriptor config_, descriptor_;
  uint64_t workspace_ = 0;
  bool on_tensor_cores_ = false;
};

// None: no engine takes the graph under these conditions. `parts` holds what the operations are made of.
std::optional<Plan> find_plan(const Target& target, std::span<const Descriptor* const> operations, const Wanted& wanted,
                              std::shared_ptr<const void> parts);
// For a device of this process.
std::optional<Plan> find_plan(uint32_t device, std::span<const Descriptor* const> operations, const Wanted& wanted,
                              std::shared_ptr<const void> parts);

// Notes, with the reason that cuDNN gave, that own kernels compute `what`.
void log_no_engine(const std::string& what);

}  // namespace cuda::dnn
