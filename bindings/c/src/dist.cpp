// SPDX-License-Identifier: Apache-2.0
// Processes that were launched together.
#include <algorithm>
#include <map>
#include <mutex>

#include "api.hpp"
#include "call/collective.hpp"
#include "call/device_collective.hpp"
#include "tensor/dropped.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {

// A call that has been begun: its tensors live until it is over.
struct Begun {
  Group* group;
  uint64_t request;
  TensorRef tensor, other;
  const char* what;
  bool writes;  // the tensor, which gets a new version
};
struct Calls {
  std::mutex mutex;
  std::map<uint64_t, Begun> list;
  uint64_t last = 0;
};
Calls& calls() {
  static auto& calls = *new Calls;
  return calls;
}

// 0 where nothing has begun.
uint64_t note(Begun begun) {
  if (begun.request == 0) return 0;
  std::lock_guard guard(calls().mutex);
  calls().list[++calls().last] = std::move(begun);
  return calls().last;
}

// Where it is over, `done` takes it out; so does a failure.
template <class Done>
int32_t with_call(uint64_t number, Done&& done) {
  std::unique_lock guard(calls().mutex);
  auto found = calls().list.find(number);
  if (found == calls().list.end()) return run("dist", [] { pg::fail_argument("this call is over"); });
  const Begun begun = found->second;
  guard.unlock();
  bool over = true;
  const int32_t code = run(begun.what, [&] { over = done(begun); });
  if (code == PG_OK && !over) return code;
  std::lock_guard again(calls().mutex);
  calls().list.erase(number);
  return code;
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
    *number = note({&among, begin_sum(among, x), TensorRef::share(&x), nullptr, "all_reduce", true});
  });
}

int32_t pgc_dist_gather(int64_t group, pgc_tensor* tensor, pgc_tensor* output, uint32_t flags, uint64_t* number) {
  return run("all_gather", [&] {
    settle(tensor);
    settle(output);
    Group& among = find_group(group);
    Tensor &x = eager(tensor, "t"), &y = eager(output, "output");
    const bool begin = (flags & 1) != 0, writes = (flags & 2) == 0;
    *number = note(
        {&among, gather_into(among, x, y, begin), TensorRef::share(&y), TensorRef::share(&x), "all_gather", writes});
    if (*number == 0 && writes) y.storage->version.fetch_add(1, std::memory_order_relaxed);
  });
}

int32_t pgc_dist_begin_send(int64_t group, pgc_tensor* tensor, int32_t peer, int32_t tag, uint64_t* number) {
  return run("dist.send", [&] {
    settle(tensor);
    Group& among = find_group(group);
    Tensor& x = eager(tensor, "t");
    *number = note({&among, begin_send(among, x, peer, tag), TensorRef::share(&x), nullptr, "dist.send", false});
  });
}

int32_t pgc_dist_device_group(const int32_t* devices, uint32_t count, int64_t* group) {
  return run("dist.mirrored", [&] {
    std::vector<Device*> list;
    for (uint32_t i = 0; i < count; i++) list.push_back(&device(devices[i]));
    *group = find_device_group(list);
  });
}

int32_t pgc_dist_on_devices(int64_t group, uint32_t kind, uint32_t reduction, int32_t root, uint32_t rows,
                            uint32_t count, pgc_tensor* const* inputs, pgc_tensor* const* outputs) {
  return run("dist.mirrored", [&] {
    std::vector<std::vector<Tensor*>> in(rows), out(rows);
    for (uint32_t i = 0; i < rows * count; i++) {
      settle(inputs[i]);
      settle(outputs[i]);
      in[i / count].push_back(&eager(inputs[i], "t"));
      out[i / count].push_back(&eager(outputs[i], "output"));
    }
    if (count != devices_of_group(group).size()) pg::fail_argument("a row has one tensor of each device of the group");
    run_on_devices(group, kind, reduction, root, in, out);
  });
}

int32_t pgc_dist_look(uint64_t number, int32_t* over) {
  *over = 0;
  return with_call(number, [&](const Begun& begun) {
    return (*over = look_at_collective(*begun.group, begun.request) ? 1 : 0) != 0;
  });
}

int32_t pgc_dist_finish(uint64_t number) {
  return with_call(number, [&](const Begun& begun) {
    finish_collective(*begun.group, begun.request);
    if (begun.writes) begun.tensor->storage->version.fetch_add(1, std::memory_order_relaxed);
    return true;
  });
}

int32_t pgc_drop_memory(pgc_tensor* tensor) {
  return run("drop_memory", [&] {
    settle(tensor);
    drop_memory(*eager(tensor, "t").storage);
  });
}

int32_t pgc_renew_memory(pgc_tensor* tensor) {
  return run("renew_memory", [&] {
    settle(tensor);
    renew_memory(*eager(tensor, "t").storage);
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
