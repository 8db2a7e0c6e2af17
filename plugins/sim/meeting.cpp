// SPDX-License-Identifier: Apache-2.0
#include "meeting.hpp"

#include <algorithm>
#include <utility>

namespace sim {

void Team::fail(int32_t with, const std::string& why) {
  std::lock_guard lock(mutex);
  if (broken.empty()) broken = why, code = with;
}

void Team::check() {
  std::lock_guard lock(mutex);
  if (!broken.empty()) pg::fail(code, "the group is broken: " + broken);
}

Meeting::Meeting(std::shared_ptr<Team> team, std::vector<Part> parts, const Links& links, std::string what,
                 double deadline)
    : team_(std::move(team)),
      parts_(std::move(parts)),
      links_(links),
      what_(std::move(what)),
      deadline_(deadline),
      late_(deadline > 0 ? std::chrono::steady_clock::now() +
                               std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(deadline))
                         : Time::max()),
      come_(parts_.size()),
      done_(parts_.size()) {}

size_t Meeting::expected() const {
  return static_cast<size_t>(std::count_if(parts_.begin(), parts_.end(), [](const Part& p) { return p.takes_part; }));
}

// Mutex held.
std::string Meeting::absent() const {
  std::string list;
  for (size_t k = 0; k < parts_.size(); k++)
    if (parts_[k].takes_part && !come_[k])
      list += (list.empty() ? "sim:" : ", sim:") + std::to_string(team_->devices[k]);
  return list;
}

// Mutex held.
void Meeting::fail(int32_t code, const std::string& why) {
  if (failed_) return;
  failed_ = true;
  code_ = code;
  why_ = what_ + ": " + why;
  team_->fail(code, why_);
  changed_.notify_all();
}

// Mutex held: until that time, or a failure, which it throws.
void Meeting::wait_until(std::unique_lock<std::mutex>& lock, Time when, const char* doing) {
  while (!failed_ && std::chrono::steady_clock::now() < when) {
    // By its own clock in slices, since one that has been aborted says so to its group alone.
    const Time slice = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    changed_.wait_until(lock, std::min({when, slice, late_}));
    if (failed_) break;
    try {
      team_->check();
    } catch (const pg::Error& error) {
      fail(error.code, error.what());
      break;
    }
    if (std::chrono::steady_clock::now() >= late_ && late_ < when) {
      const std::string who = absent();
      fail(PG_E_DEADLINE_EXCEEDED,
           pg::format("took more than %g seconds: ", deadline_) + (who.empty() ? doing : who + " has not come to it"));
    }
    if (when == Time::max()) return;  // the caller's condition may hold now
  }
  if (failed_) pg::fail(code_, why_);
}

void Meeting::miss(size_t member) {
  std::lock_guard lock(mutex_);
  let_go(member);
  fail(PG_E_FAILED_PRECONDITION,
       pg::format("sim:%u does not come to it, since what came before it there has failed", team_->devices[member]));
}

// Mutex held. The member's memory may be freed once its stream has passed, whoever else is still here.
void Meeting::let_go(size_t member) {
  parts_[member].input = Use();
  parts_[member].output = Use();
}

void Meeting::come(size_t member) {
  std::unique_lock lock(mutex_);
  try {
    take_part(lock, member);
  } catch (...) {
    let_go(member);
    throw;
  }
  let_go(member);
}

void Meeting::take_part(std::unique_lock<std::mutex>& lock, size_t member) {
  while (held_ && member + 1 == parts_.size() && !failed_) wait_until(lock, Time::max(), "");
  come_[member] = true;
  if (!fault_.empty()) fail(PG_E_INTERNAL, fault_);
  if (!failed_) {
    try {
      team_->check();
    } catch (const pg::Error& error) {
      fail(error.code, error.what());
    }
  }
  changed_.notify_all();
  while (!failed_ && static_cast<size_t>(std::count(come_.begin(), come_.end(), true)) < expected())
    wait_until(lock, Time::max(), "");
  if (failed_) pg::fail(code_, why_);
  if (!std::exchange(moved_, true)) {
    try {
      compute_collective(parts_);
    } catch (const pg::Error& error) {
      fail(error.code, error.what());
    }
  }
  try {
    for (const Hop& hop : hops_of(member)) {
      if (failed_) break;
      wait_until(lock, links_.reserve(hop.from, hop.to, hop.bytes), "its bytes are under way");
    }
  } catch (const pg::Error& error) {
    fail(error.code, error.what());
  }
  done_[member] = true;
  changed_.notify_all();
  while (!failed_ && static_cast<size_t>(std::count(done_.begin(), done_.end(), true)) < expected())
    wait_until(lock, Time::max(), "bytes of others are under way");
  if (failed_) pg::fail(code_, why_);
}

// As rings do it: each sends to the next, as often, and in as large pieces, as the kind asks for.
std::vector<Hop> Meeting::hops_of(size_t member) const {
  const Part& part = parts_[member];
  const size_t n = parts_.size();
  const auto at = [&](size_t k) { return static_cast<int32_t>(team_->devices[k]); };
  const size_t next = (member + 1) % n;
  const uint64_t bytes = part.count * static_cast<uint64_t>(pg::dtype_bytes(part.dtype));
  const auto ring = [&](size_t times, uint64_t each) {
    return std::vector<Hop>(times, Hop{at(member), at(next), each});
  };
  switch (part.kind) {
    case PG_COLLECTIVE_ALL_REDUCE: return ring(2 * (n - 1), (bytes + n - 1) / n);
    case PG_COLLECTIVE_ALL_GATHER:
    case PG_COLLECTIVE_REDUCE_SCATTER: return ring(n - 1, bytes);
    case PG_COLLECTIVE_BROADCAST:  // pieces follow each other along the ring, up to the member before the root
      return ring(next == static_cast<size_t>(part.peer) ? 0 : 1, bytes);
    case PG_COLLECTIVE_REDUCE: return ring(member == static_cast<size_t>(part.peer) ? 0 : 1, bytes);
    case PG_COLLECTIVE_BARRIER: return ring(1, 0);
    case PG_COLLECTIVE_SEND: return {{at(member), at(static_cast<size_t>(part.peer)), bytes}};
    case PG_COLLECTIVE_ALL_TO_ALL: {
      std::vector<Hop> list;
      for (size_t k = 1; k < n; k++) list.push_back({at(member), at((member + k) % n), bytes});
      return list;
    }
    default: return {};
  }
}

}  // namespace sim
