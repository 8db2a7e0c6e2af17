// SPDX-License-Identifier: Apache-2.0
#include "clock.hpp"

#include <algorithm>
#include <cmath>

#include "settings.hpp"

namespace sim {
namespace {

constexpr int64_t kLook = 100;  // nanoseconds

}  // namespace

std::map<std::string, int64_t> VirtualClock::parse(const char* variable, const std::string& text) {
  std::map<std::string, int64_t> delays;
  for (const std::string& part : split(text)) {
    const size_t colon = part.find(':');
    if (colon == std::string::npos || colon == 0)
      pg::fail_argument(pg::format("%s: '%s' is not like matmul:1000 (microseconds)", variable, part.c_str()));
    delays[part.substr(0, colon)] = 1000 * number(variable, part.substr(colon + 1), 0, 10'000'000);
  }
  return delays;
}

int64_t VirtualClock::free_at(uint64_t stream) { return std::max(streams_[stream], host_); }

int64_t VirtualClock::carry(int64_t from, const Hop& hop) {
  int64_t& free = lanes_[{hop.from, hop.to}];
  const double seconds = links_.seconds(hop.from, hop.to, hop.bytes);
  if (seconds <= 0) return from;
  return free = std::max(from, free) + std::llround(seconds * 1e9);
}

Period VirtualClock::launch(uint64_t stream, const std::string& what) {
  if (!on_) return {};
  auto found = delays_.find(what);
  if (found == delays_.end()) found = delays_.find("*");
  std::lock_guard lock(mutex_);
  const int64_t begin = free_at(stream), end = begin + (found == delays_.end() ? 0 : found->second);
  streams_[stream] = end;
  return {begin, end};
}

Period VirtualClock::transfer(uint64_t stream, const Hop& hop) {
  if (!on_) return {};
  std::lock_guard lock(mutex_);
  const int64_t begin = free_at(stream), end = carry(begin, hop);
  streams_[stream] = end;
  return {begin, end};
}

Period VirtualClock::meet(const std::vector<uint64_t>& streams, const std::vector<std::vector<Hop>>& hops) {
  if (!on_) return {};
  std::lock_guard lock(mutex_);
  Period all;
  for (const uint64_t stream : streams) all.begin = std::max(all.begin, free_at(stream));
  all.end = all.begin;
  for (const std::vector<Hop>& own : hops) {
    int64_t at = all.begin;
    for (const Hop& hop : own) at = carry(at, hop);
    all.end = std::max(all.end, at);
  }
  for (const uint64_t stream : streams) streams_[stream] = all.end;
  return all;
}

int64_t VirtualClock::record(uint64_t stream) {
  if (!on_) return 0;
  std::lock_guard lock(mutex_);
  return free_at(stream);
}

void VirtualClock::wait(uint64_t stream, int64_t time) {
  if (!on_) return;
  std::lock_guard lock(mutex_);
  streams_[stream] = std::max(streams_[stream], time);
}

void VirtualClock::wait_on_host(int64_t time) {
  if (!on_) return;
  std::lock_guard lock(mutex_);
  host_ = std::max(host_, time);
}

bool VirtualClock::has_passed(int64_t time) {
  std::lock_guard lock(mutex_);
  if (time <= host_) return true;
  host_ += kLook;
  return false;
}

void VirtualClock::forget(uint64_t stream) {
  std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void VirtualClock::start_telling(int64_t now) {
  std::lock_guard lock(mutex_);
  offset_ = now - host_;
}

Period VirtualClock::told(Period period) {
  std::lock_guard lock(mutex_);
  return {period.begin + offset_, period.end + offset_};
}

}  // namespace sim
