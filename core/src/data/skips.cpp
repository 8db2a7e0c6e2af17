// SPDX-License-Identifier: Apache-2.0
#include "data/skips.hpp"

#include "base/log.hpp"
#include "perigee/plugin.h"

namespace perigee {

namespace {

constexpr size_t kMostKept = 1000;
constexpr int64_t kMostLogged = 10;

}  // namespace

void Skips::add(int64_t position, const std::string& message) {
  std::lock_guard lock(mutex_);
  count_++;
  const std::string whole = "element " + std::to_string(position + 1) + ": " + message;
  if (messages_.size() < kMostKept) messages_.push_back(whole);
  if (count_ <= kMostLogged) write_log(PG_LOG_WARNING, what_ + " left out " + whole);
  if (count_ == kMostLogged) write_log(PG_LOG_WARNING, what_ + ": what else is left out is counted and not shown");
}

int64_t Skips::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

const char* Skips::message(int64_t i) const {
  std::lock_guard lock(mutex_);
  return i >= 0 && static_cast<size_t>(i) < messages_.size() ? messages_[static_cast<size_t>(i)].c_str() : nullptr;
}

}  // namespace perigee
