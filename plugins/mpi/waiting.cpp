// SPDX-License-Identifier: Apache-2.0
#include "waiting.hpp"

#include <sys/prctl.h>
#include <time.h>

namespace mpi {

namespace {

double read(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

double now() { return read(CLOCK_MONOTONIC); }
double roughly_now() { return read(CLOCK_MONOTONIC_COARSE); }

void Patience::rest() {
  if (++looks_ < kShort) return;
  if (slack_ < 0) {
    slack_ = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  }
  const timespec pause{0, looks_ < kTired ? 20000 : 200000};
  nanosleep(&pause, nullptr);
}

Patience::~Patience() {
  if (slack_ > 0) prctl(PR_SET_TIMERSLACK, slack_, 0, 0, 0);
}

}  // namespace mpi
