// SPDX-License-Identifier: Apache-2.0
#include "data/run.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "base/ambient.hpp"
#include "base/fork.hpp"
#include "base/parallel.hpp"
#include "base/profile.hpp"
#include "data/at_once.hpp"
#include "data/timed.hpp"

namespace perigee {

namespace {

constexpr auto kLook = std::chrono::milliseconds(20);       // how often who waits looks at signals
constexpr auto kLastWait = std::chrono::milliseconds(100);  // for threads at the end of the process

}  // namespace

// Chooses how many threads work and how many elements may be ready, from what the consumer sees: one that waits wants
// more of both, one that never does leaves the processor to itself.
struct RunTuner {
  static constexpr int kPatience = 64;  // elements that were ready in time, before a thread rests
  Pace pace;
  int64_t capacity = 1;
  uint32_t active = 1;
  uint64_t element_bytes = 0;
  uint64_t given = 0, starved = 0;
  int64_t starved_ns = 0, blocked_ns = 0, begin_ns = 0;
  uint32_t idle = 0;      // threads that wait for room
  bool was_full = false;  // since the capacity last grew
  int in_time = 0;

  void begin(const Pace& asked) {
    pace = asked;
    capacity = asked.tunes_capacity ? std::min<int64_t>(2, asked.capacity) : asked.capacity;
    active = asked.tunes_threads ? 1 : asked.threads;
    if (asked.tunes_threads) raise(active);
  }
  int64_t most() const {
    const uint64_t fit = element_bytes == 0 ? UINT64_MAX : pace.memory / element_bytes;
    return static_cast<int64_t>(std::min<uint64_t>(pace.capacity, std::max<uint64_t>(fit, 1)));
  }
  void raise(uint32_t threads) {
    active = threads;
    if (pace.tunes_capacity) capacity = std::min(most(), std::max<int64_t>(capacity, 2 * int64_t{active}));
  }
  void saw(const Element& element) {
    uint64_t bytes = 0;
    for (const Leaf& leaf : element.leaves)
      bytes += leaf.tensor ? static_cast<uint64_t>(leaf.tensor->meta->bytes) : leaf.text.size();
    element_bytes = std::max(element_bytes, bytes);
    if (pace.tunes_capacity) capacity = std::min(capacity, most());
  }
  // The consumer has got an element, for which it waited or not.
  void gave(int64_t wait_ns) {
    given++;
    if (wait_ns == 0) {
      if (++in_time < kPatience) return;
      in_time = 0;
      if (pace.tunes_threads && idle > 0 && active > 1) active--;
      return;
    }
    in_time = 0;
    starved++, starved_ns += wait_ns;
    if (given == 1) return;  // the first is never ready
    if (pace.tunes_threads && idle == 0 && active < pace.threads) raise(active + 1);
    if (pace.tunes_capacity && was_full) capacity = std::min(most(), 2 * capacity), was_full = false;
  }
};

struct Run::Shared {
  struct Slot {
    std::optional<Element> element;
    std::exception_ptr error;
    bool passed = false;  // one that nobody wants, before the first
  };

  StageRef stage;
  std::shared_ptr<Workers> workers;
  std::shared_ptr<Feeds> feeds;
  std::mutex mutex;
  std::condition_variable ready, room;  // an element; a free slot, or the end
  std::vector<Slot> slots;              // of element i: i % their number
  int64_t given = 0, begun = 0;         // next element to hand out, to compute
  int64_t first = 0, end = 0;           // of the elements that are wanted; the end may come nearer
  int64_t waiting_since = 0;            // the consumer, in ns; 0: it does not wait
  int64_t wanted = 0;                   // what the stage has been told of
  uint32_t threads = 0;                 // that have not left
  RunTuner tuner;
  std::atomic<bool> cancelled = false;  // set under the lock, and looked at without it
  std::exception_ptr failure;           // what the run ended with

  void cancel() {
    std::lock_guard lock(mutex);
    stop();
  }
  void stop() {  // locked
    cancelled = true;
    room.notify_all();
    if (feeds) feeds->cancel();
  }
  bool has_room() const { return begun < given + tuner.capacity; }
  // Who has found no room waits for a quarter of all, so that not every element costs a switch of threads.
  bool has_much_room() const { return begun <= given + tuner.capacity - std::max<int64_t>(tuner.capacity / 4, 1); }
  bool more() const { return !cancelled && begun < end; }
  // How many elements a thread that has room begins: what comes from the front end one at a time, as it may ask for the
  // first while it is to make the others.
  int64_t claim(const AtOnce& at_once) {
    const int64_t share = (given + tuner.capacity - begun + tuner.active - 1) / tuner.active;
    const int64_t most = stage->fed || begun < first ? 1 : std::min(share, end - begun);
    const int64_t many = at_once.count(most);
    begun += many;
    return many;
  }
  // Elements from number i on have been made, or have not because of an error or the end.
  void settle(int64_t i, Made* made, int64_t many) {
    bool ended = false;
    for (int64_t k = 0; k < many && !ended; k++, i++) {
      Slot& slot = slots[static_cast<size_t>(i) % slots.size()];
      slot.passed = i < first;
      slot.error = made[k].error;
      ended = !slot.error && !slot.passed && !made[k].element.layout;
      if (ended) end = std::min(end, i);
      if (made[k].element.layout) {
        tuner.saw(made[k].element);
        slot.element = std::move(made[k].element);
      }
      if (i == given || ended) ready.notify_one();
    }
    if (ended) room.notify_all();
  }
};

namespace {

// Of the process, and never destroyed: threads may outlive what is.
struct AllRuns {
  std::mutex mutex;
  std::condition_variable left;
  std::set<void*> runs;
  uint32_t threads = 0;
};
AllRuns& all_runs() {
  static auto* all = new AllRuns();
  return *all;
}

// An element whose memory is the script's business from now on.
Element handed(Element element) {
  for (const Leaf& leaf : element.leaves) {
    const Storage* storage = leaf.tensor ? leaf.tensor->storage.get() : nullptr;
    if (storage != nullptr && storage->block != nullptr) storage->device->allocator.hand_over(storage->block);
  }
  return element;
}

void leave() {
  AllRuns& all = all_runs();
  std::lock_guard lock(all.mutex);
  all.threads--;
  all.left.notify_all();
}

}  // namespace

Run::Run(StageRef stage, int64_t first, Pace pace, std::shared_ptr<Workers> workers, std::shared_ptr<Feeds> feeds)
    : shared_(std::make_shared<Shared>()) {
  check_forked();
  Shared& s = *shared_;
  if (first < 0 || first > stage->count) pg::fail_argument("begins behind the end");
  s.stage = std::move(stage);
  s.workers = std::move(workers);
  s.feeds = std::move(feeds);
  s.first = first, s.end = s.stage->count;
  s.given = s.begun = s.wanted = s.stage->in_order ? 0 : first;
  if (s.workers) pace.threads = static_cast<uint32_t>(s.workers->list.size());
  const uint32_t threads = pace.threads;
  pace.capacity = std::max(pace.capacity, 1u);
  if (s.stage->fed && (threads == 0 || !s.feeds)) pg::fail_argument("what is fed needs threads and feeds");
  if (threads == 0) return;
  if (s.feeds) {
    s.feeds->asked = [one = std::weak_ptr<Shared>(shared_)] {
      if (auto shared = one.lock()) {
        std::lock_guard lock(shared->mutex);
        shared->ready.notify_all();
      }
    };
  }
  s.tuner.begin(pace);
  s.slots.resize(pace.capacity);
  if (s.workers) {
    if (s.workers->stop) s.workers->stop();
    s.workers->stop = [one = std::weak_ptr<Shared>(shared_)] {
      if (auto shared = one.lock()) shared->cancel();
    };
  }
  AllRuns& all = all_runs();
  std::lock_guard lock(all.mutex);
  all.runs.insert(&s);
  for (uint32_t i = 0; i < threads; i++) {
    s.threads++, all.threads++;
    try {
      std::thread([shared = shared_, i]() mutable {
        work(*shared, i);
        shared.reset();  // what only this thread still held goes before the thread counts as gone
        leave();
      }).detach();
    } catch (...) {
      s.threads--, all.threads--;
      s.cancel();
      all.runs.erase(&s);
      throw;
    }
  }
}

Run::~Run() {
  if (is_forked()) {
    new std::shared_ptr<Shared>(std::move(shared_));  // its threads stayed in the parent, and may have held its lock
    return;
  }
  Shared& s = *shared_;
  if (!s.slots.empty()) {
    AllRuns& all = all_runs();
    std::lock_guard lock(all.mutex);
    all.runs.erase(&s);
  }
  s.cancel();
}

void Run::work(Shared& s, size_t thread) {
  this_worker = s.workers ? s.workers->list[thread].get() : nullptr;
  std::unique_lock<std::mutex> turn;
  if (this_worker != nullptr) turn = std::unique_lock(this_worker->turn);
  run_cancelled = &s.cancelled;
  compute_alone();
  uint64_t own = 0;
  const Scoped counted(ambient().taken, this_worker != nullptr ? &this_worker->taken : &own);
  ProfileHelper profile("worker");
  std::unique_lock lock(s.mutex);
  AtOnce at_once;
  Made made[AtOnce::kMost];
  int64_t positions[AtOnce::kMost], many = 0;
  const auto may_begin = [&] { return !s.more() || (s.has_room() && thread < s.tuner.active); };
  const auto may_go_on = [&] { return may_begin() && (!s.more() || s.has_much_room()); };
  while (true) {
    if (!may_begin()) {
      const int64_t begin = now_ns();
      const bool active = thread < s.tuner.active;
      s.tuner.idle += active;
      s.tuner.was_full = s.tuner.was_full || !s.has_room();
      s.room.wait(lock, may_go_on);
      s.tuner.idle -= active;
      s.tuner.blocked_ns += active ? now_ns() - begin : 0;
    }
    if (!s.more()) break;
    const int64_t i = s.begun;
    many = s.claim(at_once);
    const int64_t told = std::exchange(s.wanted, std::max(s.wanted, std::min(s.given + s.tuner.capacity, s.end)));
    const int64_t tell = s.stage->fed ? s.wanted : told;
    lock.unlock();
    profile.look();
    const int64_t begin = now_ns();
    std::fill_n(made, many, Made{});
    try {
      for (int64_t k = told; k < tell; k++) s.stage->want(k);
      if (i < s.first) {
        if (!s.stage->pass(i)) pg::fail_argument("from is behind the end of the pipeline");
      } else {
        std::iota(positions, positions + many, i);
        s.stage->get_each(positions, many, made);
      }
    } catch (...) {
      made[0].error = std::current_exception();
    }
    at_once.took(many, now_ns() - begin);
    lock.lock();
    s.settle(i, made, many);
  }
  s.threads--;
  s.ready.notify_all();
  lock.unlock();
  this_worker = nullptr;
  run_cancelled = nullptr;
}

Step Run::next(Element& out) {
  check_forked();
  Shared& s = *shared_;
  if (s.slots.empty()) return next_here(out);
  if (s.feeds) s.feeds->flush();
  std::unique_lock lock(s.mutex);
  if (s.failure) std::rethrow_exception(s.failure);
  if (s.tuner.begin_ns == 0) s.tuner.begin_ns = now_ns();
  while (!s.cancelled && s.given < s.end) {
    Shared::Slot& slot = s.slots[static_cast<size_t>(s.given) % s.slots.size()];
    bool asked = false;
    const auto settled = [&] { return slot.element || slot.error || slot.passed || s.cancelled || s.given >= s.end; };
    const bool ready = settled();
    if (!ready && s.waiting_since == 0) s.waiting_since = now_ns();
    const bool here = s.ready.wait_for(lock, kLook, [&] {
      asked = !settled() && s.feeds && s.feeds->waiting();
      return asked || settled();
    });
    if (asked) return Step::asked;
    if (!here) return Step::waiting;
    if (s.cancelled || s.given >= s.end) break;
    if (slot.error) {
      s.stop();
      s.failure = slot.error;
      std::rethrow_exception(s.failure);
    }
    const bool passed = slot.passed;
    const int64_t waited = s.waiting_since != 0 ? now_ns() - s.waiting_since : 0;
    s.waiting_since = 0;
    if (!passed) out = handed(std::move(*slot.element));
    slot = {};
    s.given++;
    const uint32_t active = s.tuner.active;
    if (!passed) s.tuner.gave(waited);
    if (s.has_much_room() || s.tuner.active != active) s.room.notify_all();
    if (!passed) return Step::element;
  }
  return Step::end;
}

// What next is without threads.
Step Run::next_here(Element& out) {
  Shared& s = *shared_;
  while (s.given < s.first && s.given < s.end) {
    if (!s.stage->pass(s.given)) pg::fail_argument("from is behind the end of the pipeline");
    s.given++;
  }
  if (s.cancelled || s.given >= s.end) return Step::end;
  Element made = s.stage->get(s.given);
  if (!made.layout) {
    s.end = s.given;
    return Step::end;
  }
  out = std::move(made);
  s.given++;
  return Step::element;
}

bool Run::close() {
  if (is_forked()) return true;
  Shared& s = *shared_;
  std::unique_lock lock(s.mutex);
  s.stop();
  if (!s.ready.wait_for(lock, kLook, [&] { return s.threads == 0; })) return false;
  for (Shared::Slot& slot : s.slots) slot = {};
  return true;
}

RunState Run::state() const {
  Shared& s = *shared_;
  std::lock_guard lock(s.mutex);
  const RunTuner& t = s.tuner;
  return {t.active,
          static_cast<uint32_t>(t.capacity),
          t.element_bytes,
          t.given,
          t.starved,
          static_cast<uint64_t>(t.starved_ns),
          static_cast<uint64_t>(t.blocked_ns),
          static_cast<uint64_t>(t.begin_ns == 0 ? 0 : now_ns() - t.begin_ns)};
}

uint32_t run_threads() {
  if (is_forked()) return 0;
  AllRuns& all = all_runs();
  std::lock_guard lock(all.mutex);
  return all.threads;
}

bool end_runs() {
  AllRuns& all = all_runs();
  std::unique_lock lock(all.mutex);
  for (void* each : all.runs) static_cast<Run::Shared*>(each)->cancel();
  return all.left.wait_for(lock, kLastWait, [&] { return all.threads == 0; });
}

}  // namespace perigee
