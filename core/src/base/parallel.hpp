// SPDX-License-Identifier: Apache-2.0
// The one thread runtime of the process (OpenMP, so that it is the same as oneDNN's).
#pragma once

#include <cstdint>

namespace perigee {

// body(argument, begin, end) over [0, count), on at most thread_count() threads, in pieces of at least `grain`. Runs
// inline when that makes one piece, when called from inside itself, and in the child of a fork; then no thread is
// started. body must not throw.
void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* argument);
// From now on loops of this thread run on it alone: others like it compute beside it.
void compute_alone();
int thread_count();
void set_thread_count(int count);  // below 1: as many as there are processors
// Whether no result may depend on the number of threads, devices or workers: what kernels go by when they are prepared.
bool is_deterministic();
void set_deterministic(bool on);

}  // namespace perigee
