// SPDX-License-Identifier: Apache-2.0
#include "base/fork.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "perigee/plugin.hpp"

namespace perigee {
namespace {

std::atomic<bool> forked{false};
void (*child_handler)() = nullptr;

void enter_child() {
  forked.store(true, std::memory_order_relaxed);
  child_handler();
}

}  // namespace

void watch_forks(void (*in_child)()) {
  static std::once_flag once;
  std::call_once(once, [&] {
    child_handler = in_child;
    pthread_atfork(nullptr, nullptr, enter_child);
  });
}

bool is_forked() { return forked.load(std::memory_order_relaxed); }

void check_forked() {
  if (is_forked())
    pg::fail(
        PG_E_FAILED_PRECONDITION,
        "used after fork: the threads that compute stayed in the parent process; fork before the first operator, or "
        "start a program of its own");
}

}  // namespace perigee
