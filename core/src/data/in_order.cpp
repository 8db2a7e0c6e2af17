// SPDX-License-Identifier: Apache-2.0
// Stages whose element i depends on all elements before it: threads that wait for one compute the parent's meanwhile,
// and what is done to these in their order is done under a lock.
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>

#include "data/at_once.hpp"
#include "data/stage.hpp"
#include "data/timed.hpp"
#include "data/worker.hpp"

namespace perigee {

namespace {

constexpr int64_t kMostAhead = 16;  // elements of the parent that are begun and not yet taken in
constexpr int64_t kMostAtOnce = 4;  // of them, by one thread: the others are to have their share

class InOrder : public Stage {
 public:
  InOrder(StageRef parent, int64_t elements)
      : Stage({elements, true, parent->fed}), parent_(std::move(parent)), source_(parent_) {}

  Element get(int64_t i) const override {
    std::unique_lock lock(mutex_);
    while (i >= first_ + static_cast<int64_t>(made_.size()) && !ended_) {
      if (begun_ - taken_ == kMostAhead) {
        const WaitClock wait;
        changed_.wait(lock);
      } else {
        check_wanted();
        compute(lock);
      }
    }
    if (i < first_) pg::fail(PG_E_INTERNAL, "an element that comes in order was asked for again");
    const auto at = static_cast<size_t>(i - first_);
    if (at >= made_.size()) return {};
    Made made = std::move(made_[at].made);
    made_[at].given = true;
    while (!made_.empty() && made_.front().given) made_.pop_front(), first_++;
    if (made.error) std::rethrow_exception(made.error);
    return std::move(made.element);
  }

 protected:
  // What is known of one of the parent's elements before its turn.
  struct Read {
    Made made;
    bool done = false, left_out = false;
  };
  // Looks at some of them, on any thread: they are taken in as they are then, unless they are left out.
  virtual void look(Read*, const int64_t*, size_t) const {}
  // Of one of the parent's elements that cannot be made: whether it is left out.
  virtual bool leaves_out(const pg::Error&, int64_t) const { return false; }
  // The rest under the lock, in order. `take` may give elements out, and so may `finish`, which is called behind the
  // last and answers what goes on, or null.
  virtual void take(Element&& element) const { give(std::move(element)); }
  virtual StageRef finish() const { return nullptr; }
  void give(Element&& element) const { made_.push_back({{std::move(element), nullptr}, false}); }

  const StageRef parent_;

 private:
  struct Given {
    Made made;
    bool given;
  };

  // Reads on. Of quick elements several, where a function of the front end is called: that is cheaper for all of them.
  void compute(std::unique_lock<std::mutex>& lock) const {
    const StageRef source = source_;
    const uint64_t round = round_;
    const int64_t i = begun_, left = source->count - i;
    const int64_t most = this_worker == nullptr || source->fed ? 1 : std::min(kMostAtOnce, kMostAhead - (i - taken_));
    const int64_t many = at_once_.count(std::max<int64_t>(std::min(most, left), 1));
    begun_ += many;
    const int64_t wanted = std::exchange(wanted_, std::min(i + kMostAhead, source->count));
    read_.resize(read_.size() + static_cast<size_t>(many));
    lock.unlock();
    const int64_t begin = now_ns();
    Read reads[kMostAtOnce];
    try {
      for (int64_t k = wanted; source->fed && k < std::min(i + kMostAhead, source->count); k++) source->want(k);
      if (left > 0) read(*source, i, many, reads);
    } catch (...) {
      reads[0] = {{{}, std::current_exception()}};
    }
    for (Read& read : reads) read.done = true;
    lock.lock();
    at_once_.took(many, now_ns() - begin);
    if (round == round_ && !ended_) {  // not from behind the end of a source that has ended
      for (int64_t k = 0; k < many; k++) read_[static_cast<size_t>(i + k - taken_)] = std::move(reads[k]);
      while (!ended_ && !read_.empty() && read_.front().done) take_in();
    }
    changed_.notify_all();
  }

  void read(const Stage& source, int64_t i, int64_t many, Read* reads) const {
    int64_t positions[kMostAtOnce];
    Made made[kMostAtOnce];
    std::iota(positions, positions + many, i);
    source.get_each(positions, static_cast<size_t>(many), made);
    for (int64_t k = 0; k < many; k++) {
      reads[k].made = std::move(made[k]);
      reads[k].left_out = reads[k].made.error && leaves_out(reads[k].made.error, positions[k]);
    }
    look(reads, positions, static_cast<size_t>(many));
  }

  bool leaves_out(const std::exception_ptr& error, int64_t i) const {
    try {
      std::rethrow_exception(error);
    } catch (const pg::Error& e) {
      return leaves_out(e, i);
    } catch (...) {
      return false;
    }
  }

  void take_in() const {
    Read read = std::move(read_.front());
    read_.pop_front();
    taken_++;
    if (read.left_out) return;
    if (!read.made.error && read.made.element.layout) return take(std::move(read.made.element));
    if (read.made.error) {
      made_.push_back({{{}, read.made.error}, false});
      source_ = nullptr;
    } else {
      source_ = finish();
    }
    ended_ = source_ == nullptr;
    read_.clear();
    begun_ = taken_ = wanted_ = 0;
    round_++;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable StageRef source_;
  mutable uint64_t round_ = 0;                          // how many sources have ended
  mutable int64_t begun_ = 0, taken_ = 0, wanted_ = 0;  // of the source
  mutable std::deque<Read> read_;                       // from number taken_ on
  mutable int64_t first_ = 0;
  mutable std::deque<Given> made_;  // from number first_ on
  mutable bool ended_ = false;
  mutable AtOnce at_once_;
};

constexpr const char* kNoBoolean = "filter: the function must return true or false";

class Filter : public InOrder {
 public:
  Filter(StageRef parent, uint32_t function, uint64_t key)
      : InOrder(std::move(parent), kUnknown), function_(function), key_(key) {}

 protected:
  void look(Read* reads, const int64_t* positions, size_t many) const override {
    Made answers[kMostAtOnce];
    for (size_t k = 0; k < many; k++) answers[k].element = reads[k].made.element;
    call_worker(function_, answers, positions, many, key_);
    for (size_t k = 0; k < many; k++) {
      if (!reads[k].made.element.layout) continue;
      const Element& answer = answers[k].element;
      if (answers[k].error) {
        reads[k].made = {{}, answers[k].error};
      } else if (answer.layout->kind != 'B') {
        reads[k].made = {{}, std::make_exception_ptr(pg::Error(PG_E_INVALID_ARGUMENT, kNoBoolean))};
      } else {
        reads[k].left_out = answer.leaves[0].number == 0;
      }
    }
  }
  StageRef remade() const override { return std::make_shared<Filter>(parent_->again(), function_, key_); }

 private:
  const uint32_t function_;
  const uint64_t key_;
};

class MapOrSkip : public InOrder {
 public:
  MapOrSkip(StageRef parent, uint32_t function, uint64_t key, SkipsRef skips)
      : InOrder(std::move(parent), kUnknown), function_(function), key_(key), skips_(std::move(skips)) {}

 protected:
  void look(Read* reads, const int64_t* positions, size_t many) const override {
    Made answers[kMostAtOnce];
    for (size_t k = 0; k < many; k++) answers[k] = std::move(reads[k].made);
    bool came[kMostAtOnce];
    for (size_t k = 0; k < many; k++) came[k] = answers[k].element.layout != nullptr;
    call_worker(function_, answers, positions, many, key_);
    for (size_t k = 0; k < many; k++) {
      reads[k].left_out = came[k] && answers[k].error && skipped(answers[k].error, positions[k]);
      reads[k].made = std::move(answers[k]);
    }
  }
  StageRef remade() const override { return std::make_shared<MapOrSkip>(parent_->again(), function_, key_, skips_); }

 private:
  bool skipped(const std::exception_ptr& error, int64_t i) const {
    try {
      std::rethrow_exception(error);
    } catch (const pg::Error& e) {
      if (!still_wanted()) return false;
      skips_->add(i, e.what());
      return true;
    } catch (...) {
      return false;
    }
  }
  const uint32_t function_;
  const uint64_t key_;
  const SkipsRef skips_;
};

class OrSkip : public InOrder {
 public:
  OrSkip(StageRef parent, SkipsRef skips) : InOrder(std::move(parent), kUnknown), skips_(std::move(skips)) {}

 protected:
  bool leaves_out(const pg::Error& error, int64_t i) const override {
    if (!still_wanted()) return false;
    skips_->add(i, error.what());
    return true;
  }
  StageRef remade() const override { return std::make_shared<OrSkip>(parent_->again(), skips_); }

 private:
  const SkipsRef skips_;
};

class Mix : public InOrder {
 public:
  Mix(StageRef parent, uint32_t seed, uint32_t epoch, int64_t buffer)
      : InOrder(parent, parent->count), seed_(seed), epoch_(epoch), buffer_(buffer) {}

 protected:
  void take(Element&& element) const override {
    if (came_ < buffer_) {
      held_.push_back(std::move(element));
    } else {
      held_[static_cast<size_t>(came_ % buffer_)] = std::move(element);
    }
    came_++;
    if (came_ >= buffer_) give_one();
  }
  StageRef finish() const override {
    while (gone_ < came_) give_one();
    return nullptr;
  }
  StageRef remade() const override { return std::make_shared<Mix>(parent_->again(), seed_, epoch_, buffer_); }

 private:
  // As draw_order swaps: one of the next `reach` goes, and the next takes its place.
  void give_one() const {
    const int64_t drawn = draw_step(seed_, epoch_, gone_, std::min(came_ - gone_, buffer_));
    Element& next = held_[static_cast<size_t>(gone_ % buffer_)];
    Element& chosen = held_[static_cast<size_t>((gone_ + drawn) % buffer_)];
    std::swap(next, chosen);
    give(std::move(next));
    gone_++;
  }
  const uint32_t seed_, epoch_;
  const int64_t buffer_;
  mutable std::vector<Element> held_;  // element i at i % buffer
  mutable int64_t came_ = 0, gone_ = 0;
};

class Repeat : public InOrder {
 public:
  Repeat(StageRef parent, int64_t times) : InOrder(parent, all(parent->count, times)), times_(times) {}

 protected:
  void take(Element&& element) const override {
    some_ = true;
    give(std::move(element));
  }
  StageRef finish() const override {
    if (!some_ || ++done_ >= times_) return nullptr;
    return parent_->again();
  }
  StageRef remade() const override { return std::make_shared<Repeat>(parent_->again(), times_); }

 private:
  static int64_t all(int64_t elements, int64_t times) {
    return elements == kUnknown || (elements > 0 && times > kUnknown / elements) ? kUnknown : elements * times;
  }
  const int64_t times_;
  mutable int64_t done_ = 0;
  mutable bool some_ = false;
};

}  // namespace

StageRef filter_stage(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch) {
  return std::make_shared<Filter>(std::move(parent), function, worker_key(seed, epoch));
}
StageRef map_or_skip_stage(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch, SkipsRef skips) {
  return std::make_shared<MapOrSkip>(std::move(parent), function, worker_key(seed, epoch), std::move(skips));
}
StageRef or_skip_stage(StageRef parent, SkipsRef skips) {
  if (parent->in_order) pg::fail_argument("elements that come in order end with the first that fails");
  return std::make_shared<OrSkip>(std::move(parent), std::move(skips));
}
StageRef mix_stage(StageRef parent, uint32_t seed, uint32_t epoch, int64_t buffer) {
  if (buffer < 1) pg::fail_argument("buffer must be at least 1");
  return std::make_shared<Mix>(std::move(parent), seed, epoch, buffer);
}
StageRef repeat_stage(StageRef parent, int64_t times) {
  if (times < 1) pg::fail_argument("needs a count of 1 or more");
  return std::make_shared<Repeat>(std::move(parent), times);
}

}  // namespace perigee
