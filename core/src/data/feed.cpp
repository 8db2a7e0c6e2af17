// SPDX-License-Identifier: Apache-2.0
#include "data/feed.hpp"

#include "data/timed.hpp"

namespace perigee {

bool Feeds::next(Request& out) {
  std::lock_guard lock(mutex_);
  while (!requests_.empty()) {
    out = requests_.front();
    requests_.pop_front();
    const auto found = answers_.find(out);  // none: taken already
    if (found != answers_.end() && !found->second.element && !found->second.failed) return true;
  }
  return false;
}

bool Feeds::waiting() {
  std::lock_guard lock(mutex_);
  return !requests_.empty();
}

// Threads that are woken for each of many quick answers do nothing else.
void Feeds::tell() {
  constexpr int kMost = 16;
  constexpr int64_t kPause = 200000;  // nanoseconds
  const int64_t now = now_ns();
  if (++untold_ < kMost && now - told_ns_ < kPause) return;
  untold_ = 0, told_ns_ = now;
  answered_.notify_all();
}

void Feeds::flush() {
  std::lock_guard lock(mutex_);
  if (untold_ > 0) answered_.notify_all();
  untold_ = 0;
}

void Feeds::answer(const Request& request, Element element) {
  std::lock_guard lock(mutex_);
  answers_[request].element = std::move(element);
  tell();
}

void Feeds::fail(const Request& request, std::string message) {
  std::lock_guard lock(mutex_);
  Answer& answer = answers_[request];
  answer.failed = true;
  answer.failure = std::move(message);
  answered_.notify_all();
}

// Whether the front end is to be told: it looks again for itself while there is something.
bool Feeds::ask(const Request& request) {
  if (!answers_.try_emplace(request).second) return false;
  requests_.push_back(request);
  return requests_.size() == 1;
}

Element Feeds::get(const Request& request) {
  std::unique_lock lock(mutex_);
  if (ask(request)) {
    lock.unlock();
    if (asked) asked();
    lock.lock();
  }
  Answer& answer = answers_.at(request);
  answer.users++;
  {
    const WaitClock wait;
    answered_.wait(lock, [&] { return cancelled_ || answer.element || answer.failed; });
  }
  const bool last = --answer.users == 0;
  if (!answer.element && !answer.failed) pg::fail(PG_E_FAILED_PRECONDITION, "the pass has ended");
  if (!last && !answer.failed) return *answer.element;
  Answer taken = last ? std::move(answer) : answer;
  if (last) answers_.erase(request);
  if (taken.failed) pg::fail_argument(taken.failure);
  return std::move(*taken.element);
}

void Feeds::want(const Request& request) {
  std::unique_lock lock(mutex_);
  if (!ask(request)) return;
  lock.unlock();
  if (asked) asked();
}

uint32_t Feeds::begin_again(uint32_t source) {
  std::lock_guard lock(mutex_);
  return ++times_[source];
}

void Feeds::cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  requests_.clear();
  answered_.notify_all();
}

namespace {

class Feed : public Stage {
 public:
  Feed(std::shared_ptr<Feeds> feeds, uint32_t source, uint32_t time, int64_t elements, bool one_by_one)
      : Stage({elements, one_by_one, true}), feeds_(std::move(feeds)), source_(source), time_(time) {}
  Element get(int64_t i) const override { return feeds_->get({source_, time_, i}); }
  void want(int64_t i) const override { feeds_->want({source_, time_, i}); }

 protected:
  StageRef remade() const override {
    return std::make_shared<Feed>(feeds_, source_, feeds_->begin_again(source_), count, in_order);
  }

 private:
  const std::shared_ptr<Feeds> feeds_;
  const uint32_t source_, time_;
};

}  // namespace

StageRef feed_stage(std::shared_ptr<Feeds> feeds, uint32_t source, int64_t count, bool in_order) {
  return std::make_shared<Feed>(std::move(feeds), source, 0, count, in_order || count == kUnknown);
}

}  // namespace perigee
