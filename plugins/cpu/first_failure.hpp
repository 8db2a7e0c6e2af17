// SPDX-License-Identifier: Apache-2.0
// Errors out of loops whose body must not throw (pg::parallel_for): the first one is raised behind the loop.
#pragma once

#include <exception>
#include <mutex>

namespace cpu {

class FirstFailure {
 public:
  template <class Body>
  void watch(const Body& body) noexcept {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (first_ == nullptr) first_ = std::current_exception();
    }
  }
  void raise() const {
    if (first_ != nullptr) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace cpu
