// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <utility>

#include "perigee/kernels/philox.hpp"

namespace sim {

void Mark::finish(const std::optional<Failure>& failure) {
  std::lock_guard lock(mutex_);
  finished_ = true;
  failure_ = failure;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

std::optional<Failure> Mark::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_; });
  return failure_;
}

bool Mark::finished() {
  std::lock_guard lock(mutex_);
  return finished_;
}

std::chrono::steady_clock::time_point Mark::time() {
  std::lock_guard lock(mutex_);
  return time_;
}

std::shared_ptr<Mark> Event::mark() {
  std::lock_guard lock(mutex_);
  return mark_;
}

void Event::set(std::shared_ptr<Mark> mark) {
  std::lock_guard lock(mutex_);
  mark_ = std::move(mark);
}

Stream::Stream(int64_t jitter, uint64_t seed, uint64_t number)
    : jitter_(jitter), seed_(seed), number_(number), thread_([this] { work(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  filled_.notify_one();
  thread_.join();
}

void Stream::push(uint64_t sequence, std::string where, std::function<void()> body) {
  queue({sequence, std::move(where), std::move(body), nullptr, nullptr});
}

void Stream::record(std::shared_ptr<Mark> mark) { queue({0, "event_record", nullptr, std::move(mark), nullptr}); }

void Stream::wait(std::shared_ptr<Mark> mark) { queue({0, "event_wait", nullptr, nullptr, std::move(mark)}); }

void Stream::queue(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    pushed_++;
  }
  filled_.notify_one();
}

std::optional<Failure> Stream::sync() {
  std::unique_lock lock(mutex_);
  uint64_t target = pushed_;
  drained_.wait(lock, [&] { return done_ >= target; });
  return std::exchange(failure_, std::nullopt);
}

void Stream::work() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    pause();
    run(task);
    task = Task();  // lets go of its buffers before anyone is told that it is done
    {
      std::lock_guard lock(mutex_);
      done_++;
    }
    drained_.notify_all();
  }
}

void Stream::run(Task& task) {
  std::optional<Failure> before;
  {
    std::lock_guard lock(mutex_);
    before = failure_;
  }
  if (task.record) return task.record->finish(before);
  if (task.wait) {
    std::optional<Failure> failure = task.wait->wait();
    if (failure && !before) poison(std::move(*failure));
    return;
  }
  if (before) return;
  pg_error error = pg::make_error();
  if (int32_t code = pg::guard(&error, task.where.c_str(), task.body); code != PG_OK) {
    poison({code, static_cast<int64_t>(task.sequence), error.flags, task.where, error.message});
  }
}

void Stream::poison(Failure failure) {
  std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
}

void Stream::pause() {
  if (jitter_ == 0) return;
  int64_t wait = pg::philox::integer(seed_, number_ << 32, pauses_++, 0, jitter_ + 1);
  std::this_thread::sleep_for(std::chrono::microseconds(wait));
}

}  // namespace sim
