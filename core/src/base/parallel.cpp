// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"

#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/fork.hpp"

#if defined(__SANITIZE_THREAD__)
#define PERIGEE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERIGEE_TSAN 1
#endif
#endif

namespace perigee {

namespace {

std::atomic<int> wanted_threads{0};
std::atomic<bool> deterministic{false};
thread_local bool inside = false;

// libgomp is not instrumented, so the thread sanitizer cannot see its fork and join: tell it.
#ifdef PERIGEE_TSAN
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
char fork_tag, join_tag;
void before_fork() { __tsan_release(&fork_tag); }
void after_fork() { __tsan_acquire(&fork_tag); }
void before_join() { __tsan_release(&join_tag); }
void after_join() { __tsan_acquire(&join_tag); }
#else
void before_fork() {}
void after_fork() {}
void before_join() {}
void after_join() {}
#endif

// Whether pieces are to be the smallest ones, run by one thread from the last to the first: what a piece writes outside
// of its own elements then stays, and tests see at once what threads would show once in a thousand times.
bool are_pieces_reversed() {
  static const bool reversed = [] {
    const char* text = std::getenv("PERIGEE_PIECES");
    return text != nullptr && std::strcmp(text, "reversed") == 0;
  }();
  return reversed;
}

void run_piece(int64_t begin, int64_t end, void (*body)(void*, int64_t, int64_t), void* argument) {
  inside = true;
  body(argument, begin, end);
  inside = false;
}

// Whether the kernel alone says where threads run. Then it likes to wake a helper on the very processor of the caller,
// who spins there until he goes to sleep: 65 us for a region of nothing, measured, instead of 1.
bool places_are_free() {
  static const bool free = !std::getenv("OMP_PROC_BIND") && !std::getenv("OMP_PLACES") &&
                           !std::getenv("GOMP_CPU_AFFINITY") && omp_get_num_procs() > 1;
  return free;
}

// Whether fewer threads of all processes want to run than there are processors: "0.20 0.18 0.12 1/80 11206" has one.
bool a_processor_rests() {
  static const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  static const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  char text[64];
  ssize_t bytes = pread(file, text, sizeof text - 1, 0);
  if (bytes <= 0) return false;
  text[bytes] = 0;
  const char* field = text;
  for (int i = 0; i < 3 && field != nullptr; i++) field = std::strchr(field + 1, ' ');
  return field != nullptr && std::strtol(field, nullptr, 10) <= processors;
}

// Called by a helper that finds itself on the caller's processor: moves to another one if one rests, and may run
// anywhere again afterwards. On a busy machine it stays: there the caller's processor is the one that is sure to have
// time for it, others may take milliseconds.
void move_away(int processor) {
  cpu_set_t all, others;
  if (!a_processor_rests() || sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(static_cast<size_t>(processor), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof all, &all);
}

constexpr int64_t kMostShares = 256;  // threads that a loop is given to
constexpr int64_t kPiecesAShare = 4;  // the smallest part of a share that another thread takes over
constexpr int64_t kLongPiece = 1024;  // from here on pieces begin at
constexpr int64_t kPieceBegins = 64;  // multiples of this: vectors see the same elements with any number of threads

// A loop's range in equal shares, one a thread, each in pieces. A thread works its own share off, from its beginning
// (so the next loop over the same memory finds in its caches what this one left there), and then helps the others:
// whoever the system holds up does not hold up the loop.
class Shares {
 public:
  Shares(int64_t count, int64_t grain, int64_t shares) : count_(count), shares_(shares) {
    piece_ = std::max(grain, count / (shares * kPiecesAShare));
    if (piece_ >= kLongPiece) piece_ = (piece_ + kPieceBegins - 1) / kPieceBegins * kPieceBegins;
    pieces_ = std::max<int64_t>(1, count / piece_);
    for (int64_t i = 0; i < shares; i++) next_[i].taken = 0;
  }

  void work(int64_t thread, void (*body)(void*, int64_t, int64_t), void* argument) {
    for (int64_t i = 0; i < shares_; i++) {
      const int64_t share = (thread + i) % shares_;
      const int64_t first = pieces_ * share / shares_, size = pieces_ * (share + 1) / shares_ - first;
      while (true) {
        const int64_t taken = std::atomic_ref(next_[share].taken).fetch_add(1, std::memory_order_relaxed);
        if (taken >= size) break;
        const int64_t piece = first + taken;
        run_piece(piece * piece_, piece + 1 == pieces_ ? count_ : (piece + 1) * piece_, body, argument);
      }
    }
  }

 private:
  struct alignas(64) Next {
    int64_t taken;  // the pieces that someone has begun
  };
  int64_t count_, shares_, piece_, pieces_;
  Next next_[kMostShares];
};

}  // namespace

void compute_alone() {
  inside = true;
  omp_set_num_threads(1);  // of this thread's regions, for libraries
}

int thread_count() {
  int threads = wanted_threads.load(std::memory_order_relaxed);
  if (threads == 0) {
    // Honours OMP_NUM_THREADS and the process's affinity; starts no thread.
    threads = std::max(1, omp_get_max_threads());
    int unset = 0;
    if (!wanted_threads.compare_exchange_strong(unset, threads)) threads = unset;
  }
  return threads;
}

void set_thread_count(int count) {
  int threads = count < 1 ? std::max(1, omp_get_num_procs()) : count;
  wanted_threads.store(threads, std::memory_order_relaxed);
  omp_set_num_threads(threads);  // for libraries that open regions of their own on this thread
}

bool is_deterministic() { return deterministic.load(std::memory_order_relaxed); }
void set_deterministic(bool on) { deterministic.store(on, std::memory_order_relaxed); }

void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* argument) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t wanted = inside || is_forked() ? 1 : count / grain;
  if (wanted > 1) wanted = std::min<int64_t>({wanted, thread_count(), kMostShares});
  if (wanted <= 1) {
    body(argument, 0, count);
    return;
  }
  if (are_pieces_reversed()) {
    for (int64_t piece = count / grain - 1, end = count; piece >= 0; end = piece-- * grain) {
      run_piece(piece * grain, end, body, argument);
    }
    return;
  }
  const int here = places_are_free() ? sched_getcpu() : -1;
  Shares shares(count, grain, wanted);
  before_fork();
#pragma omp parallel num_threads(static_cast <int>(wanted))
  {
    after_fork();
    // The runtime may give fewer threads than were asked for: then shares are left, which anyone takes.
    const int64_t thread = omp_get_thread_num();
    if (here >= 0 && thread > 0 && sched_getcpu() == here) move_away(here);
    shares.work(thread, body, argument);
    before_join();
  }
  after_join();
}

}  // namespace perigee
