// SPDX-License-Identifier: Apache-2.0
// Capture: what a stream is given is kept instead of queued, and queued again each time that the plan is launched, as
// launches and copies of their own: faults count them, and order looks at what they touch then.
#include <utility>

#include "device.hpp"

namespace sim {

bool Device::capture(uint64_t stream, Piece piece) {
  std::lock_guard lock(mutex_);
  auto found = captures_.find(stream);
  if (found == captures_.end()) return false;
  found->second->pieces.push_back(std::move(piece));
  return true;
}

void Device::refuse_capture(uint64_t stream, const char* what) {
  std::lock_guard lock(mutex_);
  if (captures_.contains(stream))
    pg::fail(PG_E_FAILED_PRECONDITION, pg::format("%s cannot be captured, and the stream is being captured", what));
}

void Device::capture_begin(uint32_t device, uint64_t handle) {
  alive(device);
  stream(device, handle);  // that there is one
  refuse_capture(handle, "capture_begin");
  auto plan = std::make_shared<Plan>();
  plan->device = device;
  std::lock_guard lock(mutex_);
  captures_[handle] = std::move(plan);
}

uint64_t Device::capture_end(uint32_t device, uint64_t handle) {
  stream(device, handle);
  std::lock_guard lock(mutex_);
  auto found = captures_.find(handle);
  if (found == captures_.end()) pg::fail(PG_E_FAILED_PRECONDITION, "the stream is not being captured");
  std::shared_ptr<Plan> plan = std::move(found->second);
  captures_.erase(found);
  const uint64_t made = ++serial_;
  plans_[made] = std::move(plan);
  return made;
}

void Device::plan_launch(uint32_t device, uint64_t handle, pg::Ticket ticket) {
  alive(device);
  refuse_capture(ticket.stream, "plan_launch");
  std::shared_ptr<Plan> plan;
  {
    std::lock_guard lock(mutex_);
    auto found = plans_.find(handle);
    if (found == plans_.end()) pg::fail_argument(pg::format("no plan %llu", static_cast<unsigned long long>(handle)));
    plan = found->second;
  }
  if (plan->device != device)
    pg::fail_argument(pg::format("the plan belongs to sim:%u, the call is for sim:%u", plan->device, device));
  for (const Piece& piece : plan->pieces) {
    const pg::Ticket own{ticket.stream, ticket.sequence + piece.number};
    if (piece.launch)
      launch(device, own, piece.what, piece.touches, piece.body);
    else
      queue_copy(device, own, piece.what, piece.touches, piece.activity, piece.body);
  }
}

void Device::plan_destroy(uint32_t device, uint64_t handle) {
  one(device);
  std::shared_ptr<Plan> plan;  // goes outside the lock
  std::lock_guard lock(mutex_);
  auto found = plans_.find(handle);
  if (found == plans_.end()) pg::fail_argument(pg::format("no plan %llu", static_cast<unsigned long long>(handle)));
  plan = std::move(found->second);
  plans_.erase(found);
}

}  // namespace sim
