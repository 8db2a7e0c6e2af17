// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"

#include <omp.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

using namespace perigee;

namespace {

struct Range {
  int64_t begin, end;
  std::thread::id thread;
};

template <class Body>
void loop(int64_t count, int64_t grain, Body body) {
  parallel_for(
      count, grain, [](void* b, int64_t begin, int64_t end) { (*static_cast<Body*>(b))(begin, end); }, &body);
}

std::vector<Range> pieces_of(int64_t count, int64_t grain) {
  std::vector<Range> pieces;
  std::mutex mutex;
  loop(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    pieces.push_back({begin, end, std::this_thread::get_id()});
  });
  return pieces;
}

// The threads that a test asks for; what was set before comes back at its end.
struct Threads {
  explicit Threads(int count) : before(thread_count()) { set_thread_count(count); }
  ~Threads() { set_thread_count(before); }
  int before;
};

// Whether the runtime gives two threads here.
bool has_two() {
  int given = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    given = omp_get_num_threads();
  }
  return given == 2;
}

}  // namespace

TEST_CASE("a parallel loop sees every index once, in pieces of at least the grain") {
  for (int threads : {1, 2, 3, 7}) {
    Threads guard(threads);
    for (int64_t count : {0, 1, 2, 3, 7, 63, 64, 65, 1000, 1024, 65537}) {
      for (int64_t grain : {-1, 0, 1, 2, 5, 64, 1000, 100000}) {
        std::vector<int> seen(static_cast<size_t>(count));
        for (const Range& r : pieces_of(count, grain)) {
          INFO(threads << " threads, count " << count << ", grain " << grain << ", piece " << r.begin << " to "
                       << r.end);
          CHECK(r.begin < r.end);
          CHECK(r.end <= count);
          CHECK((r.end - r.begin >= grain || (r.begin == 0 && r.end == count)));
          for (int64_t i = r.begin; i < r.end; i++) seen[static_cast<size_t>(i)]++;
        }
        CHECK(seen == std::vector<int>(static_cast<size_t>(count), 1));
      }
    }
  }
}

TEST_CASE("long pieces of a parallel loop begin where a vector begins") {
  for (int threads : {2, 3, 5}) {
    Threads guard(threads);
    for (const Range& r : pieces_of(100003, 1024)) CHECK(r.begin % 64 == 0);
  }
}

TEST_CASE("a parallel loop inside of one runs on its thread") {
  Threads guard(2);
  std::atomic<int> strangers{0}, calls{0};
  loop(2, 1, [&](int64_t, int64_t) {
    const auto here = std::this_thread::get_id();
    loop(1000, 1, [&](int64_t, int64_t) {
      calls++;
      if (std::this_thread::get_id() != here) strangers++;
    });
  });
  CHECK(calls >= 1);
  CHECK(strangers == 0);
}

TEST_CASE("a thread that is held up leaves its pieces to the others") {
  Threads guard(2);
  if (!has_two()) {
    WARN("the runtime gives one thread only");
    return;
  }
  std::atomic<int> done{0};
  std::atomic<bool> helped{false};
  loop(8, 1, [&](int64_t begin, int64_t end) {
    if (begin == 0) {  // waits for all the other pieces, its own share's too
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (done < 7 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      helped = done == 7;
      return;
    }
    done += static_cast<int>(end - begin);
  });
  CHECK(helped);
}
