// SPDX-License-Identifier: Apache-2.0
// Runs a second of one thread and of two, by turns; medians. With OMP_NUM_THREADS=1 each run is one thread's work.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "fixture.hpp"

namespace {

constexpr int kRounds = 7;

double runs_per_second(int threads, const std::vector<const Session*>& sessions, const Recorded& r, int64_t rows,
                       int64_t n, int runs) {
  std::vector<std::thread> list;
  const auto begin = std::chrono::steady_clock::now();
  for (int t = 0; t < threads; t++)
    list.emplace_back([&, t] {
      const Tensor x = filled(rows, n, 1);
      for (int i = 0; i < runs; i++) run(*sessions[static_cast<size_t>(t)], r.y, r, x);
    });
  for (std::thread& thread : list) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return threads * runs / took.count();
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

void compare(const char* name, int64_t rows, int64_t n, int depth, int runs) {
  const Recorded r = record(n, depth);
  const Session shared = session_of(r), own = session_of(r);
  std::vector<double> one, together, apart;
  for (int round = 0; round <= kRounds; round++) {
    const double a = runs_per_second(1, {&shared}, r, rows, n, runs),
                 b = runs_per_second(2, {&shared, &shared}, r, rows, n, runs),
                 c = runs_per_second(2, {&shared, &own}, r, rows, n, runs);
    if (round == 0) continue;
    one.push_back(a), together.push_back(b / a), apart.push_back(c / a);
  }
  std::printf("%-28s one thread %9.0f runs/s  two of one session x %.2f  of a session each x %.2f\n", name, median(one),
              median(together), median(apart));
}

}  // namespace

int main() {
  start();
  compare("20 products [4,16]x[16,16]", 4, 16, 20, 20000);
  compare("200 products [4,16]x[16,16]", 4, 16, 200, 2000);
  compare("10 products [64,256]x[256,256]", 64, 256, 10, 300);
}
