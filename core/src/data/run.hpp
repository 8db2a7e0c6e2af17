// SPDX-License-Identifier: Apache-2.0
// One pass over a pipeline: its elements in order, computed ahead by threads of its own.
#pragma once

#include <memory>

#include "data/feed.hpp"
#include "data/stage.hpp"
#include "data/worker.hpp"

namespace perigee {

enum class Step { element, end, waiting, asked };

class Run {
 public:
  // From element `first` on. `threads` compute at most `capacity` elements ahead; 0: next computes them itself. With
  // workers there is a thread for each of them. Threads leave by themselves: nobody has to wait for them. A stage that
  // is fed needs threads, and `feeds`, whose requests the caller of next answers.
  Run(StageRef stage, int64_t first, uint32_t threads, uint32_t capacity, std::shared_ptr<Workers> workers,
      std::shared_ptr<Feeds> feeds = nullptr);
  ~Run();  // cancels
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Throws what computing the element threw; the run has ended then. `waiting`: nothing came for a while, ask again;
  // `asked`: the same, but threads wait for the feeds. One thread at a time.
  Step next(Element& out);
  // No further element is begun. Waits until the threads have left; false: they have not for a while, ask again.
  bool close();

 private:
  struct Shared;
  static void work(Shared& shared, size_t thread);
  Step next_here(Element& out);
  friend void end_runs();
  std::shared_ptr<Shared> shared_;
};

uint32_t run_threads();  // threads of all runs that there are now
void end_runs();         // cancels all of them and waits a moment

}  // namespace perigee
