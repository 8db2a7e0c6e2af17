// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <algorithm>

#include "device.hpp"
#include "meeting.hpp"

namespace sim {
namespace {

bool is_pair(uint32_t kind) { return kind == PG_COLLECTIVE_SEND || kind == PG_COLLECTIVE_RECEIVE; }
bool reduces(uint32_t kind) {
  return kind == PG_COLLECTIVE_ALL_REDUCE || kind == PG_COLLECTIVE_REDUCE || kind == PG_COLLECTIVE_REDUCE_SCATTER;
}

// Elements of its input and output, as the kind says; 0: there is none, or it is not looked at.
uint64_t input_count(const pg_collective& call, size_t member, size_t members) {
  switch (call.kind) {
    case PG_COLLECTIVE_BROADCAST: return static_cast<size_t>(call.peer) == member ? call.count : 0;
    case PG_COLLECTIVE_REDUCE_SCATTER:
    case PG_COLLECTIVE_ALL_TO_ALL: return call.count * members;
    case PG_COLLECTIVE_BARRIER:
    case PG_COLLECTIVE_RECEIVE: return 0;
    default: return call.count;
  }
}
uint64_t output_count(const pg_collective& call, size_t member, size_t members) {
  switch (call.kind) {
    case PG_COLLECTIVE_REDUCE: return static_cast<size_t>(call.peer) == member ? call.count : 0;
    case PG_COLLECTIVE_BROADCAST: return static_cast<size_t>(call.peer) == member ? 0 : call.count;
    case PG_COLLECTIVE_ALL_GATHER:
    case PG_COLLECTIVE_ALL_TO_ALL: return call.count * members;
    case PG_COLLECTIVE_BARRIER:
    case PG_COLLECTIVE_SEND: return 0;
    default: return call.count;
  }
}

void check_call(const pg_collective& call, size_t member, size_t members) {
  const bool named = call.kind == PG_COLLECTIVE_REDUCE || call.kind == PG_COLLECTIVE_BROADCAST || is_pair(call.kind);
  if (call.kind < PG_COLLECTIVE_BARRIER || call.kind > PG_COLLECTIVE_RECEIVE)
    pg::fail_support(pg::format("a collective of kind %u", call.kind));
  if (named && (call.peer < 0 || static_cast<size_t>(call.peer) >= members))
    pg::fail_argument(pg::format("member %d; expected 0..%zu", call.peer, members - 1));
  if (is_pair(call.kind) && static_cast<size_t>(call.peer) == member)
    pg::fail_argument(pg::format("member %d is that itself", call.peer));
  if (!reduces(call.kind)) return;
  const uint32_t of = pg::dtype_class(call.dtype);
  if (call.reduction > PG_REDUCE_MIN) pg::fail_support(pg::format("reduction %u", call.reduction));
  if (!(of & (PG_M_FLOAT | PG_M_INT)) || (call.reduction == PG_REDUCE_MEAN && !(of & PG_M_FLOAT)))
    pg::fail_support(pg::format("a reduction of %s", pg::dtype_name(call.dtype)));
}

// All members make the same call, or some send what others receive.
void check_row(const pg_collective* const* row, size_t members) {
  const pg_collective* first = nullptr;
  for (size_t k = 0; k < members; k++) {
    if (row[k] == nullptr) continue;
    const pg_collective& call = *row[k];
    check_call(call, k, members);
    if (first == nullptr) first = &call;
    if (is_pair(call.kind)) {
      const pg_collective* other = row[call.peer];
      const uint32_t wanted = call.kind == PG_COLLECTIVE_SEND ? PG_COLLECTIVE_RECEIVE : PG_COLLECTIVE_SEND;
      if (other == nullptr || other->kind != wanted || static_cast<size_t>(other->peer) != k ||
          other->tag != call.tag || other->count != call.count || other->dtype != call.dtype)
        pg::fail_argument(pg::format("%s of member %zu has no counterpart at member %d",
                                     call.kind == PG_COLLECTIVE_SEND ? "send" : "receive", k, call.peer));
    } else if (call.kind != first->kind || call.reduction != first->reduction || call.dtype != first->dtype ||
               call.count != first->count || call.peer != first->peer) {
      pg::fail_argument(pg::format("member %zu makes another call than the others", k));
    }
  }
  if (first == nullptr || is_pair(first->kind)) return;
  for (size_t k = 0; k < members; k++)
    if (row[k] == nullptr) pg::fail_argument(pg::format("member %zu makes no call", k));
}

}  // namespace

uint64_t Collectives::create(const pg_device_group& info) {
  if (device_.settings().missing.contains(kSwitch)) pg::fail_support("PERIGEE_SIM_MISSING says no collectives");
  auto team = std::make_shared<Team>();
  for (uint32_t k = 0; k < info.count; k++) {
    device_.check_number(info.devices[k]);
    if (std::find(team->devices.begin(), team->devices.end(), info.devices[k]) != team->devices.end())
      pg::fail_argument(pg::format("device %u is named twice", info.devices[k]));
    team->devices.push_back(info.devices[k]);
  }
  if (info.count < 2) pg::fail_argument(pg::format("a group of %u", info.count));
  std::lock_guard lock(mutex_);
  teams_[++last_] = std::move(team);
  return last_;
}

std::shared_ptr<Team> Collectives::find(uint64_t group) {
  std::lock_guard lock(mutex_);
  auto found = teams_.find(group);
  if (found == teams_.end()) pg::fail_argument(pg::format("no group %llu", static_cast<unsigned long long>(group)));
  return found->second;
}

void Collectives::destroy(uint64_t group) {
  find(group);
  std::lock_guard lock(mutex_);
  teams_.erase(group);
}

void Collectives::abort(uint64_t group, const char* reason) { find(group)->fail(PG_E_FAILED_PRECONDITION, reason); }

bool Collectives::busy() {
  std::lock_guard lock(mutex_);
  return !teams_.empty();
}

void Collectives::submit(uint64_t group, uint32_t rows, const pg_collective* const* calls) {
  const std::shared_ptr<Team> team = find(group);
  team->check();
  const size_t members = team->devices.size();
  for (uint32_t i = 0; i < rows; i++) check_row(calls + i * members, members);
  for (uint32_t i = 0; i < rows; i++) queue_row(team, calls + i * members);
}

void Collectives::queue_row(const std::shared_ptr<Team>& team, const pg_collective* const* row) {
  const size_t members = team->devices.size();
  std::vector<Part> parts(members);
  std::vector<Member> list(members);
  const pg_collective* first = nullptr;
  for (size_t k = 0; k < members; k++) {
    if (row[k] == nullptr) {
      parts[k].takes_part = false;
      continue;
    }
    const pg_collective& call = *row[k];
    if (first == nullptr) first = &call;
    const auto size = static_cast<uint64_t>(pg::dtype_bytes(call.dtype));
    const auto use = [&](uint64_t count, pg_address at, const char* what) {
      return count == 0 ? Use() : device_.use_bytes(team->devices[k], at, count * size, what);
    };
    parts[k] = {true,
                call.kind,
                call.reduction,
                call.dtype,
                call.peer,
                call.tag,
                call.count,
                use(input_count(call, k, members), call.input, "a collective, input"),
                use(output_count(call, k, members), call.output, "a collective, output")};
    list[k] = {team->devices[k], {call.stream, call.sequence}, {}};
    if (parts[k].input.data() != nullptr) list[k].touches.push_back(parts[k].input.touch(false));
    if (parts[k].output.data() != nullptr) list[k].touches.push_back(parts[k].output.touch(true));
    list[k].bytes = call.count * size;
  }
  if (first == nullptr) return;
  const std::string what = first->what == nullptr ? "a collective" : first->what;
  auto meeting = std::make_shared<Meeting>(team, std::move(parts), device_.settings().links, what, first->deadline);
  device_.queue_collective(list, first->kind, static_cast<size_t>(first->peer), meeting);
}

}  // namespace sim
