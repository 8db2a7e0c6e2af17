// SPDX-License-Identifier: Apache-2.0
// What a thread of a run carries for functions of the front end: an interpreter of its own, behind a function pointer.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "data/element.hpp"

namespace perigee {

// What passes between a stage and the front end's function on a worker: elements, one after the other.
class Exchange {
 public:
  // Those of `elements` that are there, in whose places the answers go. Random draws of each come from the key and its
  // position alone.
  void begin(Made* elements, const int64_t* positions, size_t count, uint64_t key);
  void end(const char* why);  // what has no answer fails

  // The front end's side. The next element, whose draws begin; null: there is none, or nobody waits for it any longer.
  Element* take();
  // In the order in which they were taken: what is made of one, or why nothing is.
  void answer(Element made);
  void fail(const std::string& error);
  LayoutRef last;  // of the answers: most are alike

 private:
  Made& next_answer();
  Made* elements_ = nullptr;
  const int64_t* positions_ = nullptr;
  uint64_t key_ = 0;
  size_t count_ = 0, next_ = 0;
  std::vector<size_t> taken_;  // which
  size_t answered_ = 0;        // of them
};

constexpr uint32_t kWorkerEnds = UINT32_MAX;  // in place of a function's number: let go of all tensors

struct Worker {
  // Answers all elements of the exchange; not 0: it cannot. Called on one thread at a time.
  int32_t (*call)(uint32_t function, void* exchange) = nullptr;
  void (*close)(void* state) = nullptr;  // after the last call, on any thread
  void* state = nullptr;
  Exchange exchange;
  std::mutex turn;     // held by the thread that has it
  uint64_t taken = 0;  // bytes of memory, on those threads
};

// The workers of a pipeline, which one run has at a time: a new one stops the one before.
struct Workers {
  std::function<void()> stop;  // the run that has them
  std::vector<std::unique_ptr<Worker>> list;
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    for (auto& worker : list) {
      worker->call(kWorkerEnds, &worker->exchange);
      worker->close(worker->state);
    }
  }
};

// The worker whose thread this is; NULL on others.
extern thread_local Worker* this_worker;

// Of a thread that makes elements for a run: whether nobody waits for them any longer. NULL on others.
extern thread_local const std::atomic<bool>* run_cancelled;
bool still_wanted();
// Between the elements that one is made of: throws on a thread whose run has been cancelled.
void check_wanted();

// What a function of the front end makes of elements, on this thread's worker: those that are there are replaced, by
// answers or errors. Random draws come from the key, which is made of the pass's (seed, epoch), and the element's
// position alone.
void call_worker(uint32_t function, Made* elements, const int64_t* positions, size_t count, uint64_t key);
Element call_worker(uint32_t function, Element in, int64_t position, uint64_t key);  // of one; throws its error
uint64_t worker_key(uint64_t seed, uint64_t epoch);
uint64_t worker_seed(uint64_t key, int64_t i);

}  // namespace perigee
