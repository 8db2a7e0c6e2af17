// SPDX-License-Identifier: Apache-2.0
#include "collective/group.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "collective/ranks.hpp"
#include "collective/versions.hpp"

namespace perigee {
namespace {

constexpr double kSlice = 0.25;  // seconds that the engine waits at a time
constexpr int kLastSlices = 20;  // of waiting for what is under way when the process ends

// Never destroyed. Engines are called by one thread at a time.
struct Groups {
  std::mutex mutex;
  bool joined = false, closed = false;
  World world;
  LoadedPlugin* plugin = nullptr;                  // whose engine is at work
  std::deque<Group> list;                          // by number, from kWorldGroup
  std::vector<std::pair<Group*, uint64_t>> begun;  // requests that are not known to be over
  double deadline = 1800;
  std::atomic<bool> agreement{false};
};

Groups& groups() {
  static auto& groups = *new Groups;
  return groups;
}

const pg_collectives& engine() { return *groups().plugin->collectives; }

void check(int32_t code, const pg_error& error) {
  if (code != PG_OK) pg::fail_as(code, error);
}

// Mutex held. The first engine that knows of other processes; an engine for one type of device only is none for all.
void join() {
  Groups& g = groups();
  if (g.joined) return;
  load_kind("collectives");
  for (LoadedPlugin* plugin : find_plugins()) {
    if (!plugin->opened || plugin->collectives == nullptr || plugin->collectives->device_type[0] != '\0') continue;
    pg_world found{};
    found.size = PG_SIZE(pg_world, reserved);
    pg_error error = pg::make_error();
    check(plugin->collectives->world(plugin->self, &found, &error), error);
    if (found.count <= 1) continue;
    g.plugin = plugin;
    g.world = {found.rank, found.count, found.local_rank, found.local_count, plugin->collectives->name};
    break;
  }
  g.joined = true;
}

[[noreturn]] void fail_alone() {
  const std::string reasons = unavailable_text();
  pg::fail(PG_E_FAILED_PRECONDITION, "this process was not launched together with others, so there is no group" +
                                         (reasons.empty() ? "" : "; " + reasons));
}

// Not cleared: half a kilobyte that only a failure fills.
struct Failure {
  pg_error error;
  Failure() {
    error.size = PG_SIZE(pg_error, message);
    error.native = 0;
    error.flags = 0;
    error.message[0] = '\0';
  }
};

// Host memory that a tensor of a device travels through.
struct Staging {
  std::unique_ptr<char[]> bytes;
  pg_address address() const { return {reinterpret_cast<uint64_t>(bytes.get()), 0}; }
  explicit Staging(uint64_t size) : bytes(size > 0 ? new char[size] : nullptr) {}
};

// Mutex held.
uint64_t submit(Group& group, const Collective& call, pg_address input, pg_address output) {
  if (groups().closed) [[unlikely]]
    pg::fail(PG_E_FAILED_PRECONDITION, "Perigee has been shut down");
  pg_collective asked{};
  asked.size = PG_SIZE(pg_collective, what);
  asked.kind = call.kind;
  asked.reduction = call.reduction;
  asked.dtype = call.dtype;
  asked.peer = call.peer;
  asked.tag = call.tag;
  asked.count = call.count;
  asked.input = input;
  asked.output = output;
  asked.deadline = groups().deadline;
  asked.what = call.what;
  const pg_collective* const list[] = {&asked};
  uint64_t request = 0;
  Failure failure;
  check(engine().submit(groups().plugin->self, group.handle, 1, list, &request, &failure.error), failure.error);
  return request;
}

// Mutex held. False: not yet.
bool wait_for(Group& group, uint64_t request, double seconds) {
  Failure failure;
  const int32_t code = engine().wait(groups().plugin->self, group.handle, request, seconds, &failure.error);
  if (code != PG_E_BUSY) check(code, failure.error);
  return code != PG_E_BUSY;
}

// Mutex held.
void forget_begun(Group& group, uint64_t request) {
  auto& begun = groups().begun;
  begun.erase(std::remove(begun.begin(), begun.end(), std::pair(&group, request)), begun.end());
}

// Mutex held. One that fails is over too.
bool look_at_begun(Group& group, uint64_t request, double seconds) {
  try {
    if (!wait_for(group, request, seconds)) return false;
  } catch (...) {
    forget_begun(group, request);
    throw;
  }
  forget_begun(group, request);
  return true;
}

// Mutex held. Memory of calls that have begun is about to go: where they do not end soon, since the others do not make
// them, this process leaves the others.
void end_begun() noexcept {
  Groups& g = groups();
  try {
    for (int slice = 0; slice < kLastSlices && !g.begun.empty(); slice++)
      look_at_begun(*g.begun.front().first, g.begun.front().second, kSlice);
  } catch (const std::exception& error) {
    write_log(PG_LOG_DEBUG, error.what());
  }
  if (g.begun.empty()) return;
  pg_error error = pg::make_error();
  engine().abort(g.plugin->self, 0, "it ended before what it had begun", &error);
}

// Mutex held.
void submit_and_wait(Group& group, const Collective& call, pg_address input, pg_address output) {
  const uint64_t request = submit(group, call, input, output);
  while (!wait_for(group, request, kSlice)) {
  }
}

// Mutex held. `bytes` of every rank.
void gather(Group& group, const void* mine, uint64_t bytes, void* all, const char* what) {
  Collective exchange{PG_COLLECTIVE_ALL_GATHER};
  exchange.count = bytes;
  exchange.what = what;
  submit_and_wait(group, exchange, {reinterpret_cast<uint64_t>(mine), 0}, {reinterpret_cast<uint64_t>(all), 0});
}

// Mutex held. Fails on all ranks of a new group where they run different versions: what one sends would be read by the
// rules of another.
void compare_versions(Group& group) {
  const size_t size = group.ranks.size();
  std::string mine = own_versions();
  mine.resize(kVersionsLength);
  std::vector<char> all(kVersionsLength * size);
  gather(group, mine.data(), kVersionsLength, all.data(), "comparing versions");
  std::vector<std::string> said;
  for (size_t rank = 0; rank < size; rank++) said.emplace_back(all.data() + rank * kVersionsLength);
  const std::string differ = versions_that_differ(said, group.ranks);
  if (!differ.empty()) pg::fail(PG_E_FAILED_PRECONDITION, "ranks have different plugins: " + differ);
}

// Mutex held.
Group& add_group(const std::vector<int32_t>& ranks) {
  Groups& g = groups();
  Group made{static_cast<int64_t>(g.list.size()) + kWorldGroup, ranks, -1, 0};
  for (size_t i = 0; i < ranks.size(); i++) {
    if (ranks[i] < 0 || static_cast<uint32_t>(ranks[i]) >= g.world.size)
      pg::fail_argument(
          pg::format("rank %d of the group is not in the world; expected 0..%u", ranks[i], g.world.size - 1));
    if (i > 0 && ranks[i] <= ranks[i - 1])
      pg::fail_argument(
          pg::format("rank %d stands behind rank %d; ranks rise, and none is named twice", ranks[i], ranks[i - 1]));
    if (static_cast<uint32_t>(ranks[i]) == g.world.rank) made.rank = static_cast<int32_t>(i);
  }
  if (made.rank < 0)
    pg::fail_argument(pg::format("this is rank %u, which is not in the group; only its members make it", g.world.rank));
  pg_group_info info{};
  info.size = PG_SIZE(pg_group_info, reserved);
  info.count = static_cast<uint32_t>(ranks.size());
  info.ranks = ranks.data();
  pg_error error = pg::make_error();
  check(engine().group_create(groups().plugin->self, &info, g.deadline, &made.handle, &error), error);
  compare_versions(made);
  g.list.push_back(std::move(made));
  return g.list.back();
}

// Mutex held. The group of all is the first.
void need_world_group() {
  Groups& g = groups();
  join();
  if (g.plugin == nullptr) fail_alone();
  if (g.closed) pg::fail(PG_E_FAILED_PRECONDITION, "Perigee has been shut down");
  if (!g.list.empty()) return;
  std::vector<int32_t> all(g.world.size);
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<int32_t>(i);
  add_group(all);
}

}  // namespace

const World& world() {
  std::lock_guard guard(groups().mutex);
  join();
  return groups().world;
}

Group& find_group(int64_t number) {
  Groups& g = groups();
  std::lock_guard guard(g.mutex);
  need_world_group();
  if (number < kWorldGroup || number >= kWorldGroup + static_cast<int64_t>(g.list.size()))
    pg::fail_argument(pg::format("there is no group number %lld", static_cast<long long>(number)));
  return g.list[static_cast<size_t>(number - kWorldGroup)];
}

int64_t create_group(const std::vector<int32_t>& ranks) {
  std::lock_guard guard(groups().mutex);
  need_world_group();
  return add_group(ranks).number;
}

double set_deadline(double seconds) {
  if (!(seconds >= 0)) pg::fail_argument(pg::format("a deadline of %g seconds; expected 0 (none) or more", seconds));
  std::lock_guard guard(groups().mutex);
  return std::exchange(groups().deadline, seconds);
}

double deadline() {
  std::lock_guard guard(groups().mutex);
  return groups().deadline;
}

void run_collective(Group& group, Device& device, uint32_t stream, const Collective& call) {
  if (device.host_visible && device.synchronous) return run_on_host(group, call);
  if (queue_between_processes(group, device, stream, call)) return;
  Staging input(call.input_bytes), output(call.output_bytes);
  device.download(input.bytes.get(), call.input, call.input_bytes, stream);
  {
    std::lock_guard guard(groups().mutex);
    submit_and_wait(group, call, input.address(), output.address());
  }
  const bool written = call.kind != PG_COLLECTIVE_REDUCE || call.peer == group.rank;
  if (written) device.upload(call.output, output.bytes.get(), call.output_bytes, stream);
}

void run_on_host(Group& group, const Collective& call) {
  std::lock_guard guard(groups().mutex);
  submit_and_wait(group, call, call.input, call.output);
}

uint64_t begin_collective(Group& group, const Collective& call) {
  std::lock_guard guard(groups().mutex);
  const uint64_t request = submit(group, call, call.input, call.output);
  groups().begun.emplace_back(&group, request);
  return request;
}

bool look_at_collective(Group& group, uint64_t request) {
  std::lock_guard guard(groups().mutex);
  return look_at_begun(group, request, 0);
}

void finish_collective(Group& group, uint64_t request) {
  std::lock_guard guard(groups().mutex);
  while (!look_at_begun(group, request, kSlice)) {
  }
}

void barrier(Group& group) {
  if (wants_agreement()) agree(group, "barrier");
  Collective call{PG_COLLECTIVE_BARRIER};
  call.what = "barrier";
  std::lock_guard guard(groups().mutex);
  submit_and_wait(group, call, {0, 0}, {0, 0});
}

void set_agreement(bool on) { groups().agreement = on; }
bool wants_agreement() { return groups().agreement.load(std::memory_order_relaxed); }

void gather_bytes(Group& group, const void* mine, uint64_t bytes, void* all, const char* what) {
  std::lock_guard guard(groups().mutex);
  gather(group, mine, bytes, all, what);
}

std::string find_ended(Group& group) {
  Groups& g = groups();
  std::unique_lock guard(g.mutex, std::try_to_lock);  // who waits for the engine finds out there
  if (!guard || g.closed) return "";
  std::vector<uint32_t> states(group.ranks.size(), PG_PEER_ALIVE);
  pg_error error = pg::make_error();
  if (engine().peers(g.plugin->self, group.handle, static_cast<uint32_t>(states.size()), states.data(), &error) !=
      PG_OK)
    return "";
  std::string text;
  for (size_t i = 0; i < states.size(); i++)
    if (states[i] == PG_PEER_LOST) text += (text.empty() ? "rank " : ", rank ") + std::to_string(group.ranks[i]);
  return text;
}

void agree(Group& group, const std::string& call) {
  constexpr size_t kLength = 256;
  const size_t size = group.ranks.size();
  std::vector<char> mine(kLength, '\0'), all(kLength * size, '\0');
  std::memcpy(mine.data(), call.data(), std::min(call.size(), kLength - 1));
  gather_bytes(group, mine.data(), kLength, all.data(), "the debug mode's exchange");
  auto said = [&](size_t rank) { return std::string(all.data() + rank * kLength); };
  auto what = [&](size_t rank) {
    const std::string text = said(rank);
    return text.substr(0, text.rfind(" at "));
  };
  for (size_t rank = 1; rank < size; rank++) {
    if (what(rank) == what(0)) continue;
    pg::fail(PG_E_FAILED_PRECONDITION, pg::format("ranks do not make the same call: rank %d: ", group.ranks[0]) +
                                           said(0) + pg::format("; rank %d: ", group.ranks[rank]) + said(rank));
  }
}

std::vector<uint32_t> peer_states(Group& group) {
  std::vector<uint32_t> states(group.ranks.size(), PG_PEER_ALIVE);
  std::lock_guard guard(groups().mutex);
  pg_error error = pg::make_error();
  check(
      engine().peers(groups().plugin->self, group.handle, static_cast<uint32_t>(states.size()), states.data(), &error),
      error);
  return states;
}

void abandon_groups(const char* reason) noexcept {
  abandon_ranks(reason);
  Groups& g = groups();
  std::unique_lock guard(g.mutex, std::try_to_lock);
  if (!guard || g.plugin == nullptr || g.closed) return;
  pg_error error = pg::make_error();
  engine().abort(g.plugin->self, 0, reason, &error);  // what cannot be told is seen by the deadline
}

void close_groups() noexcept {
  Groups& g = groups();
  std::lock_guard guard(g.mutex);
  if (g.plugin == nullptr || g.closed) return;
  end_begun();
  g.closed = true;
  for (auto group = g.list.rbegin(); group != g.list.rend(); ++group) {
    pg_error error = pg::make_error();
    if (engine().group_destroy(g.plugin->self, group->handle, &error) != PG_OK)
      write_log(PG_LOG_DEBUG, std::string("group_destroy: ") + error.message);
  }
}

}  // namespace perigee
