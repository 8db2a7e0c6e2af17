// SPDX-License-Identifier: Apache-2.0
#include "data/worker.hpp"

#include "base/rng.hpp"

namespace perigee {

thread_local Worker* this_worker = nullptr;
thread_local const std::atomic<bool>* run_cancelled = nullptr;

constexpr const char* kCancelled = "the run has been cancelled";

bool still_wanted() { return run_cancelled == nullptr || !run_cancelled->load(std::memory_order_relaxed); }
void check_wanted() {
  if (!still_wanted()) pg::fail(PG_E_FAILED_PRECONDITION, kCancelled);
}

void Exchange::begin(Made* elements, const int64_t* positions, size_t count, uint64_t key) {
  elements_ = elements, positions_ = positions, count_ = count, key_ = key;
  next_ = answered_ = 0;
  taken_.clear();
}

void Exchange::end(const char* why) {
  while (take() != nullptr) {
  }
  while (answered_ < taken_.size()) fail(why);
  for (; next_ < count_; next_++) {
    if (elements_[next_].element.layout)
      elements_[next_] = {{}, std::make_exception_ptr(pg::Error(PG_E_FAILED_PRECONDITION, kCancelled))};
  }
}

Element* Exchange::take() {
  if (!still_wanted()) return nullptr;
  while (next_ < count_ && !elements_[next_].element.layout) next_++;
  if (next_ == count_) return nullptr;
  set_rng_state({worker_seed(key_, positions_[next_]), 0});
  taken_.push_back(next_);
  return &elements_[next_++].element;
}

Made& Exchange::next_answer() {
  if (answered_ == taken_.size()) pg::fail(PG_E_FAILED_PRECONDITION, "an answer to nothing");
  return elements_[taken_[answered_++]];
}

void Exchange::answer(Element made) { next_answer().element = std::move(made); }
void Exchange::fail(const std::string& error) {
  next_answer() = {{}, std::make_exception_ptr(pg::Error(PG_E_INVALID_ARGUMENT, error))};
}

namespace {

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t worker_key(uint64_t seed, uint64_t epoch) { return mixed(mixed(seed) ^ epoch); }
uint64_t worker_seed(uint64_t key, int64_t i) { return mixed(key ^ static_cast<uint64_t>(i)); }

void call_worker(uint32_t function, Made* elements, const int64_t* positions, size_t count, uint64_t key) {
  Worker* worker = this_worker;
  if (worker == nullptr) pg::fail(PG_E_FAILED_PRECONDITION, "a function was to run outside of a worker");
  Exchange& exchange = worker->exchange;
  exchange.begin(elements, positions, count, key);
  const ThreadRandom own({0, 0});
  const int32_t code = worker->call(function, &exchange);
  exchange.end(code == PG_OK ? "the function has not answered" : "a worker could not begin");
}

Element call_worker(uint32_t function, Element in, int64_t position, uint64_t key) {
  Made made{std::move(in), nullptr};
  call_worker(function, &made, &position, 1, key);
  if (made.error) std::rethrow_exception(made.error);
  return std::move(made.element);
}

}  // namespace perigee
