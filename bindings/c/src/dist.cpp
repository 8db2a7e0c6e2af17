// SPDX-License-Identifier: Apache-2.0
// Processes that were launched together.
#include <map>
#include <mutex>

#include "api.hpp"
#include "call/collective.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {

// A sum that has been begun: its tensor lives until it is over.
struct Sum {
  Group* group;
  uint64_t request;
  TensorRef tensor;
};
struct Sums {
  std::mutex mutex;
  std::map<uint64_t, Sum> list;
  uint64_t last = 0;
};
Sums& sums() {
  static auto& sums = *new Sums;
  return sums;
}

// Where it is over, `done` takes it out; so does a failure.
template <class Done>
void with_sum(uint64_t number, Done&& done) {
  std::unique_lock guard(sums().mutex);
  auto found = sums().list.find(number);
  if (found == sums().list.end()) pg::fail_argument("this sum is over");
  const Sum sum = found->second;
  guard.unlock();
  auto forget = [&] {
    std::lock_guard again(sums().mutex);
    sums().list.erase(number);
  };
  try {
    if (done(sum)) forget();
  } catch (...) {
    forget();
    throw;
  }
}

}  // namespace

int32_t pgc_dist_world(pgc_dist_about* about, const char** engine) {
  return run("dist", [&] {
    const World& w = world();
    *about = {static_cast<int32_t>(w.rank), static_cast<int32_t>(w.size), static_cast<int32_t>(w.local_rank),
              static_cast<int32_t>(w.local_size)};
    if (engine != nullptr) *engine = keep_text(w.engine);
  });
}

int32_t pgc_dist_group(const int32_t* ranks, uint32_t count, int64_t* group) {
  return run("dist.group", [&] { *group = create_group({ranks, ranks + count}); });
}

int32_t pgc_dist_barrier(int64_t group) {
  return run("dist.barrier", [&] {
    settle();
    barrier(find_group(group));
  });
}

int32_t pgc_dist_send(int64_t group, pgc_tensor* tensor, int32_t peer, int32_t tag) {
  return run("dist.send", [&] {
    settle(tensor);
    send_tensor(find_group(group), eager(tensor, "t"), peer, tag);
  });
}

int32_t pgc_dist_receive(int64_t group, pgc_tensor* like, int32_t peer, int32_t tag, pgc_tensor** output) {
  return run("dist.receive", [&] {
    settle(like);
    *output = give(receive_tensor(find_group(group), eager(like, "like"), peer, tag));
  });
}

int32_t pgc_dist_begin_sum(int64_t group, pgc_tensor* tensor, uint64_t* number) {
  return run("all_reduce", [&] {
    settle(tensor);
    Group& among = find_group(group);
    Tensor& x = eager(tensor, "t");
    const uint64_t request = begin_sum(among, x);
    *number = 0;
    if (request == 0) return;
    std::lock_guard guard(sums().mutex);
    *number = ++sums().last;
    sums().list[*number] = {&among, request, TensorRef::share(&x)};
  });
}

int32_t pgc_dist_look(uint64_t number, int32_t* over) {
  return run("all_reduce", [&] {
    *over = 0;
    with_sum(number,
             [&](const Sum& sum) { return (*over = look_at_collective(*sum.group, sum.request) ? 1 : 0) != 0; });
  });
}

int32_t pgc_dist_finish(uint64_t number) {
  return run("all_reduce", [&] {
    with_sum(number, [&](const Sum& sum) {
      finish_collective(*sum.group, sum.request);
      sum.tensor->storage->version.fetch_add(1, std::memory_order_relaxed);
      return true;
    });
  });
}

int32_t pgc_dist_set_deadline(double seconds, double* old) {
  return run("dist.deadline", [&] {
    const double before = set_deadline(seconds);
    if (old != nullptr) *old = before;
  });
}

void pgc_dist_set_agreement(int32_t on) { set_agreement(on != 0); }

int32_t pgc_dist_peers(int64_t group, uint32_t* states, uint32_t room) {
  return run("dist.peers", [&] {
    const std::vector<uint32_t> found = peer_states(find_group(group));
    if (found.size() > room) pg::fail_argument(pg::format("room for %u of %zu ranks", room, found.size()));
    std::copy(found.begin(), found.end(), states);
  });
}

void pgc_dist_abandon(const char* reason) { abandon_groups(reason != nullptr ? reason : "it failed"); }
