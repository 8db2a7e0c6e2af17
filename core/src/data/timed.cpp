// SPDX-License-Identifier: Apache-2.0
#include "data/timed.hpp"

#include <algorithm>
#include <chrono>

#include "base/profile.hpp"

namespace perigee {

namespace {

// Of this thread, since the stage that is at work began: time of stages before it, and of waits in it.
thread_local int64_t inner_ns = 0, waited_ns = 0;

class Timed : public Stage {
 public:
  Timed(StageRef stage, std::shared_ptr<StageTimes> times)
      : Stage(stage->traits()), stage_(std::move(stage)), times_(std::move(times)) {}
  Element get(int64_t i) const override {
    return measured(1, [&] { return stage_->get(i); });
  }
  Element get_into(int64_t i, const Landing& landing) const override {
    return measured(1, [&] { return stage_->get_into(i, landing); });
  }
  void get_each(const int64_t* positions, size_t many, Made* out) const override {
    measured([&] {
      stage_->get_each(positions, many, out);
      return std::count_if(out, out + many, [](const Made& made) { return made.element.layout != nullptr; });
    });
  }
  Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const override {
    return measured(static_cast<int64_t>(positions.size()),
                    [&] { return stage_->gather(positions, number_dtype, first); });
  }
  bool pass(int64_t i) const override { return stage_->pass(i); }
  bool batches() const override { return stage_->batches(); }
  void want(int64_t i) const override { stage_->want(i); }

 protected:
  StageRef remade() const override { return std::make_shared<Timed>(stage_->again(), times_); }

 private:
  template <class Body>
  Element measured(int64_t elements, Body&& body) const {
    Element made;
    measured([&] {
      made = body();
      return made.layout ? elements : 0;
    });
    return made;
  }
  // `body` answers how many elements it has made.
  template <class Body>
  void measured(Body&& body) const {
    const int64_t outer_inner = std::exchange(inner_ns, 0), outer_waited = std::exchange(waited_ns, 0);
    const int64_t begin = now_ns();
    times_->elements += body();
    const int64_t all = now_ns() - begin;
    times_->own_ns += all - inner_ns - waited_ns;
    times_->waited_ns += waited_ns;
    inner_ns = outer_inner + all;
    waited_ns = outer_waited;
  }
  const StageRef stage_;
  const std::shared_ptr<StageTimes> times_;
};

class Noted : public Stage {
 public:
  Noted(StageRef stage, const char* name, const char* origin)
      : Stage(stage->traits()), stage_(std::move(stage)), name_(name), origin_(origin) {}
  Element get(int64_t i) const override {
    return noted(1, [&] { return stage_->get(i); });
  }
  Element get_into(int64_t i, const Landing& landing) const override {
    return noted(1, [&] { return stage_->get_into(i, landing); });
  }
  void get_each(const int64_t* positions, size_t many, Made* out) const override {
    ProfileSpan span;
    stage_->get_each(positions, many, out);
    note(span, many);
  }
  Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const override {
    return noted(positions.size(), [&] { return stage_->gather(positions, number_dtype, first); });
  }
  bool pass(int64_t i) const override { return stage_->pass(i); }
  bool batches() const override { return stage_->batches(); }
  void want(int64_t i) const override { stage_->want(i); }

 protected:
  StageRef remade() const override { return std::make_shared<Noted>(stage_->again(), name_, origin_); }

 private:
  template <class Body>
  Element noted(uint64_t elements, Body&& body) const {
    ProfileSpan span;
    Element made = body();
    note(span, elements);
    return made;
  }
  void note(ProfileSpan& span, uint64_t elements) const {
    if (!span.on()) return;
    Scoped<const char*> line(ambient().origin, origin_);
    span.done(ProfileKind::stage, name_, -1, elements);
  }
  const StageRef stage_;
  const char *const name_, *const origin_;
};

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

WaitClock::WaitClock() : begin_(now_ns()) {}
WaitClock::~WaitClock() { waited_ns += now_ns() - begin_; }

StageRef timed_stage(StageRef stage, std::shared_ptr<StageTimes> times) {
  return std::make_shared<Timed>(std::move(stage), std::move(times));
}

StageRef noted_stage(StageRef stage, const char* name, const char* origin) {
  return std::make_shared<Noted>(std::move(stage), name, origin);
}

}  // namespace perigee
