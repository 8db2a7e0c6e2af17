// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <algorithm>

#include "device.hpp"
#include "meeting.hpp"
#include "perigee/device_collectives.hpp"

namespace sim {
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
  for (uint32_t i = 0; i < rows; i++) pg::check_row(calls + i * members, members, 0, members);
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
                use(pg::input_count(call, k, members), call.input, "a collective, input"),
                use(pg::output_count(call, k, members), call.output, "a collective, output")};
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
