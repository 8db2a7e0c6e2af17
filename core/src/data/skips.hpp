// SPDX-License-Identifier: Apache-2.0
// Elements that were left out because a function failed: how many, and why the first of them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace perigee {

// Thread-safe. `what` says whose elements they are.
class Skips {
 public:
  explicit Skips(std::string what) : what_(std::move(what)) {}
  // Of the element at a position, from 0. The first ones are logged as warnings.
  void add(int64_t position, const std::string& message);
  int64_t count() const;
  // Message i; NULL: not so many are kept. It stays as long as this.
  const char* message(int64_t i) const;

 private:
  const std::string what_;
  mutable std::mutex mutex_;
  int64_t count_ = 0;
  std::deque<std::string> messages_;  // which do not move
};
using SkipsRef = std::shared_ptr<Skips>;

}  // namespace perigee
