// SPDX-License-Identifier: Apache-2.0
#include "data/worker.hpp"

#include "base/rng.hpp"

namespace perigee {

thread_local Worker* this_worker = nullptr;
thread_local const std::atomic<bool>* run_cancelled = nullptr;

void check_wanted() {
  if (run_cancelled != nullptr && run_cancelled->load(std::memory_order_relaxed))
    pg::fail(PG_E_FAILED_PRECONDITION, "the run has been cancelled");
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

Element call_worker(uint32_t function, Element in, uint64_t seed) {
  Worker* worker = this_worker;
  if (worker == nullptr) pg::fail(PG_E_FAILED_PRECONDITION, "a function was to run outside of a worker");
  Exchange& exchange = worker->exchange;
  exchange.in = std::move(in);
  exchange.error.clear();
  const ThreadRandom own({seed, 0});
  const int32_t code = worker->call(function, &exchange);
  exchange.in = {};
  if (code != PG_OK) pg::fail_argument(exchange.error.empty() ? "a worker could not begin" : exchange.error);
  return std::move(exchange.out);
}

}  // namespace perigee
