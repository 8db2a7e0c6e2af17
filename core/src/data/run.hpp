// SPDX-License-Identifier: Apache-2.0
// One pass over a pipeline: its elements in order, computed ahead by threads of its own.
#pragma once

#include <memory>

#include "data/feed.hpp"
#include "data/stage.hpp"
#include "data/worker.hpp"

namespace perigee {

enum class Step { element, end, waiting, asked };

// How a run works. What it tunes itself goes up and down between 1 and these; `memory` bounds what is ready, in bytes.
struct Pace {
  uint32_t threads = 1, capacity = 1;
  bool tunes_threads = false, tunes_capacity = false;
  uint64_t memory = UINT64_MAX;
};

// What a run has come to.
struct RunState {
  uint32_t threads, capacity;               // at work, and elements that may be ready
  uint64_t element_bytes;                   // of the largest
  uint64_t given, starved;                  // elements handed out; of these, had to be waited for
  uint64_t starved_ns, blocked_ns, run_ns;  // the consumer waited; threads waited for room; since the first was asked
};

class Run {
 public:
  // From element `first` on. Threads compute at most `capacity` elements ahead; 0: next computes them itself. With
  // workers there is a thread for each of them. Threads leave by themselves: nobody has to wait for them. A stage that
  // is fed needs threads, and `feeds`, whose requests the caller of next answers.
  Run(StageRef stage, int64_t first, Pace pace, std::shared_ptr<Workers> workers,
      std::shared_ptr<Feeds> feeds = nullptr);
  ~Run();  // cancels
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Throws what computing the element threw; the run has ended then. `waiting`: nothing came for a while, ask again;
  // `asked`: the same, but threads wait for the feeds. One thread at a time.
  Step next(Element& out);
  // No further element is begun. Waits until the threads have left; false: they have not for a while, ask again.
  bool close();
  RunState state() const;

 private:
  struct Shared;
  static void work(Shared& shared, size_t thread);
  Step next_here(Element& out);
  friend bool end_runs();
  std::shared_ptr<Shared> shared_;
};

uint32_t run_threads();  // threads of all runs that there are now
bool end_runs();         // cancels all of them and waits a moment; whether their threads have left

}  // namespace perigee
