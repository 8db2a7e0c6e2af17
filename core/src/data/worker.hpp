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

// What passes between a stage and the front end's function on a worker.
struct Exchange {
  Element in, out;
  std::string error;  // the function failed, if not empty
  LayoutRef last;     // of the answers: most are alike
};

constexpr uint32_t kWorkerEnds = UINT32_MAX;  // in place of a function's number: let go of all tensors

struct Worker {
  // Answers 0 with exchange.out, else with exchange.error. Called on one thread at a time.
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
// Between the elements that one is made of: throws on a thread whose run has been cancelled.
void check_wanted();

// What a function of the front end makes of an element, on this thread's worker; throws its error. Its random draws
// come from the seed alone, which is made of the pass's (seed, epoch) and the element's position.
Element call_worker(uint32_t function, Element in, uint64_t seed);
uint64_t worker_key(uint64_t seed, uint64_t epoch);
uint64_t worker_seed(uint64_t key, int64_t i);

}  // namespace perigee
