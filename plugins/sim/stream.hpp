// SPDX-License-Identifier: Apache-2.0
// Streams and events of the simulated accelerator: a stream is a queue and a thread that works it off in order.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "order.hpp"
#include "perigee/plugin.hpp"

namespace sim {

struct Failure {
  int32_t code = PG_OK;
  int64_t sequence = 0;  // of the call that failed first
  uint32_t flags = 0;
  std::string where, message;
};

// One recording of an event. Waiters hold on to the recording they saw, whatever happens to the event afterwards.
class Mark {
 public:
  Mark(Snapshot order, int64_t at) : order(std::move(order)), at(at) {}
  const Snapshot order;            // what is over when it has passed
  const int64_t at;                // on the virtual clock
  std::atomic<uint32_t> asked{0};  // how often the host has
  void finish(const std::optional<Failure>& failure);
  std::optional<Failure> wait();  // until finished; the failure that poisoned it
  bool finished();
  std::chrono::steady_clock::time_point time();  // when it finished

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
  std::optional<Failure> failure_;
  std::chrono::steady_clock::time_point time_;
};

class Event {
 public:
  // NULL: never recorded, which counts as passed.
  std::shared_ptr<Mark> mark();
  void set(std::shared_ptr<Mark> mark);

 private:
  std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

class Stream {
 public:
  Stream(int64_t jitter, uint64_t seed, uint64_t number);
  ~Stream();  // works the queue off first

  // Queues work. A body that throws poisons the stream: what follows is skipped until sync has reported it.
  void push(uint64_t sequence, std::string where, std::function<void()> body);
  void record(std::shared_ptr<Mark> mark);
  void wait(std::shared_ptr<Mark> mark);

  // Waits for all that was queued before; takes the failure off the stream.
  std::optional<Failure> sync();

 private:
  struct Task {
    uint64_t sequence = 0;
    std::string where;
    std::function<void()> body;
    std::shared_ptr<Mark> record, wait;
  };
  void queue(Task task);
  void work();
  void run(Task& task);
  void pause();  // the jitter
  void poison(Failure failure);

  const int64_t jitter_;
  const uint64_t seed_, number_;
  uint64_t pauses_ = 0;  // worker only
  std::mutex mutex_;
  std::condition_variable filled_, drained_;
  std::deque<Task> tasks_;
  uint64_t pushed_ = 0, done_ = 0;
  std::optional<Failure> failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace sim
