// SPDX-License-Identifier: Apache-2.0
// How a reducer's sums travel.
#pragma once

#include <memory>
#include <vector>

#include "collective/group.hpp"
#include "tensor/tensor.hpp"

namespace perigee {

// Dense tensors of one dtype and size, one of each member that is in this process.
using Row = std::vector<Tensor*>;

struct SumKind {
  bool mean = false;
  bool to_all = true;  // or to the first member alone
};

// All processes make the same calls in the same order.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual int32_t size() const = 0;  // processes
  // Whether sums of this device's memory can begin and go on under other work.
  virtual bool runs_beside(const Device& device) const = 0;
  // The stream for what fills rows, beside that of who computes.
  virtual uint32_t filling_stream(uint32_t own) const { return own; }
  virtual void filled(Tensor&) {}  // all of this member's part of a row has been given to that stream
  // Begins to sum a row in place: a request, until whose end nobody touches it. Later work on streams waits for it.
  virtual uint64_t begin(const Row& row, const SumKind& kind) = 0;
  virtual bool look(uint64_t request) = 0;  // lets it go on without waiting; true: it is over, and the request none
  virtual void finish(uint64_t request) = 0;
  virtual void sum(Tensor& x) = 0;  // of any device, now; of one member
  // The largest of each number over all ranks, in its place.
  virtual void largest(int32_t* numbers, uint32_t count) = 0;
  // What has begun and nobody will wait for: the tensors live until it is over, or the process is.
  virtual void abandon(uint64_t request, std::vector<TensorRef> row) noexcept = 0;
};

// Over the processes of two groups of the same ranks: `gradients` for sums, which come between others' calls at any
// time.
std::unique_ptr<Wire> make_wire(Group& among, Group& gradients);
// Over devices of this process, one a member, which have an engine (collective/devices.hpp).
std::unique_ptr<Wire> make_device_wire(std::vector<Device*> devices);

}  // namespace perigee
