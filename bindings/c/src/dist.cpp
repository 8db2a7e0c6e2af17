// SPDX-License-Identifier: Apache-2.0
// Processes that were launched together.
#include "api.hpp"
#include "call/collective.hpp"

using namespace perigee;
using namespace perigee::api;

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
