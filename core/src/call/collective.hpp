// SPDX-License-Identifier: Apache-2.0
// Operators between processes: what they ask of a group's engine.
#pragma once

#include <memory>

#include "builder/builder.hpp"
#include "collective/group.hpp"

namespace perigee {

// Whether a call's role is one that an engine carries out, and it names a group.
bool is_between_processes(const Op& op, const void* attrs);
// What such a call asks for, but for where its tensors lie.
struct BetweenProcesses {
  Group* group;
  Collective call;
};
// Throws where the call does not fit its group.
std::unique_ptr<const BetweenProcesses> plan_collective(const Op& op, const void* attrs, uint32_t input_count,
                                                        const Meta& x, const Meta& y);
// Returns when `y` has its contents.
void run_between_processes(const BetweenProcesses& planned, const Op& op, Tensor& x, const void* attrs, Tensor& y);

// Whether the device has host memory that is at rest between calls, so that calls between processes can go on beside.
bool can_begin(const Device& device);
// Begins to sum a dense tensor over the group, in place, or to make the mean: a request (collective/group.hpp), until
// whose end nobody else touches the tensor. 0, and nothing has begun: its device cannot.
uint64_t begin_sum(Group& group, Tensor& x, bool mean = false);
// The same of any device's, now.
void sum_in_place(Group& group, Tensor& x);
// The largest of each number over the group, in its place.
void find_largest(Group& group, int32_t* numbers, uint32_t count);

// Writes every rank's dense input, in their order, into a dense output that is as many times as large. `begin` answers
// a request as begin_sum does; 0: it is written.
uint64_t gather_into(Group& group, Tensor& x, Tensor& y, bool begin);
// The same of a dense tensor that goes to one process. 0, and nothing has been sent: not host memory at rest.
uint64_t begin_send(Group& group, Tensor& x, int32_t peer, int32_t tag);

// To and from one process of a group, in pairs of one tag.
void send_tensor(Group& group, Tensor& x, int32_t peer, int32_t tag);
TensorRef receive_tensor(Group& group, const Tensor& like, int32_t peer, int32_t tag);

}  // namespace perigee
