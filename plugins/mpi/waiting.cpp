// SPDX-License-Identifier: Apache-2.0
#include "waiting.hpp"

#include <sched.h>
#include <time.h>

namespace mpi {
namespace {

// Looks at a request before others get the processor: few where there are more processes than processors, and some
// milliseconds' worth where each has its own, since what it gives away for a moment comes back late on a machine with
// other work.
constexpr uint64_t kFewLooks = 500, kManyLooks = 20000, kYields = 4500;
uint64_t looks = kFewLooks;  // of this process

}  // namespace

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void relax(uint64_t spins) {
  if (spins < looks) return;
  if (spins < looks + kYields) {
    sched_yield();
    return;
  }
  const timespec pause{0, spins < looks + 11 * kYields ? 20000 : 200000};
  nanosleep(&pause, nullptr);
}

uint64_t looks_before_rest() { return looks + kYields; }
void expect_processors() { looks = kManyLooks; }

}  // namespace mpi
