// SPDX-License-Identifier: Apache-2.0
// How a reducer's sums travel between processes.
#pragma once

#include <memory>

#include "collective/group.hpp"
#include "tensor/tensor.hpp"

namespace perigee {

// All ranks make the same calls in the same order.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual int32_t size() const = 0;
  // Whether sums of this device's memory can begin and go on under other work.
  virtual bool runs_beside(const Device& device) const = 0;
  // Begins to sum a dense tensor in place, or to make the mean: a request, until whose end nobody touches it.
  virtual uint64_t begin(Tensor& x, bool mean) = 0;
  virtual bool look(uint64_t request) = 0;  // lets it go on without waiting; true: it is over, and the request none
  virtual void finish(uint64_t request) = 0;
  virtual void sum(Tensor& x) = 0;  // of any device, now
  // The largest of each number over all ranks, in its place.
  virtual void largest(int32_t* numbers, uint32_t count) = 0;
  // What has begun and nobody will wait for: the tensor lives until it is over, or the process is.
  virtual void abandon(uint64_t request, TensorRef x) noexcept = 0;
};

// Over the processes of two groups of the same ranks: `gradients` for sums, which come between others' calls at any
// time.
std::unique_ptr<Wire> make_wire(Group& among, Group& gradients);

}  // namespace perigee
