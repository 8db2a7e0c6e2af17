// SPDX-License-Identifier: Apache-2.0
#include "group.hpp"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

namespace nccl {
namespace {

constexpr auto kNextLook = std::chrono::milliseconds(200);
constexpr double kAlone = 120;    // seconds in which the devices of one process find each other
constexpr double kFarewell = 10;  // for which a group waits for the others when it goes

uint64_t native(uint32_t device, const char* what, uint64_t handle) {
  return pg::device_native(kType, device, what, handle);
}

char* address(uint32_t device, pg_address at) {
  return at.buffer == 0 ? nullptr : reinterpret_cast<char*>(native(device, "buffer", at.buffer)) + at.offset;
}

bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

std::string what_of(const pg_collective& call) { return call.what != nullptr ? call.what : "a collective"; }

// What processes tell each other before there is a communicator.
struct Hello {
  ncclUniqueId id;      // of the first process
  cudaUUID_t gpus[16];  // of its members: NCCL takes each once
  uint32_t count;
  char refusal[120];  // why it cannot take part; empty: it can
};

}  // namespace

Group::Group(const pg_device_group& info, Report report) : report_(std::move(report)) {
  const bool several = PG_HAS(&info, pg_device_group, look) && info.processes > 1;
  total_ = several ? info.total : info.count;
  first_ = several ? info.first : 0;
  alone_ = !several;
  if (info.count < 1) pg::fail_argument("a group of no devices");
  if (several && (first_ + info.count > total_ || info.exchange == nullptr))
    pg::fail_argument(pg::format("members %zu to %zu of %zu", first_, first_ + info.count - 1, total_));
  for (uint32_t k = 0; k < info.count; k++) {
    for (const Member& other : members_)
      if (other.device == info.devices[k]) pg::fail_argument(pg::format("device %u is named twice", info.devices[k]));
    members_.emplace_back();
    members_.back().device = info.devices[k];
    members_.back().ordinal = static_cast<int>(native(info.devices[k], "device", 0));
  }
  ncclUniqueId id{};
  if (several) {
    context_ = info.context;
    look_ = info.look;
    agree(info, id);
  } else {
    check(library().ncclGetUniqueId(&id), "ncclGetUniqueId");
  }
  try {
    connect(id);
    const double allowed = several ? info.deadline : kAlone;
    settle("making a group", late_after(allowed), allowed);
  } catch (const pg::Error& error) {
    break_up(error.code, error.what());
    throw;
  }
}

// Gives all the first one's number of the group, or fails in all of them.
void Group::agree(const pg_device_group& info, ncclUniqueId& id) {
  Hello mine{};
  mine.count = static_cast<uint32_t>(std::min(members_.size(), std::size(mine.gpus)));
  try {
    if (members_.size() > std::size(mine.gpus)) pg::fail_support(pg::format("%zu devices", members_.size()));
    if (info.process == 0) check(library().ncclGetUniqueId(&mine.id), "ncclGetUniqueId");
    for (uint32_t k = 0; k < mine.count; k++) {
      cudaDeviceProp properties;
      check(library().cudaGetDeviceProperties(&properties, members_[k].ordinal), "cudaGetDeviceProperties");
      mine.gpus[k] = properties.uuid;
    }
  } catch (const pg::Error& error) {
    std::snprintf(mine.refusal, sizeof mine.refusal, "%s", error.what());
  }
  std::vector<Hello> all(info.processes);
  pg_error error = pg::make_error();
  if (const int32_t code = info.exchange(info.context, sizeof mine, &mine, all.data(), &error); code != PG_OK)
    pg::fail(code, error.message);
  for (uint32_t p = 0; p < info.processes; p++)
    if (all[p].refusal[0] != '\0') pg::fail_support(pg::format("process %u: %.*s", p, 119, all[p].refusal));
  std::vector<std::pair<std::string, uint32_t>> seen;
  for (uint32_t p = 0; p < info.processes; p++) {
    for (uint32_t k = 0; k < std::min<size_t>(all[p].count, std::size(all[p].gpus)); k++) {
      std::string gpu(all[p].gpus[k].bytes, sizeof all[p].gpus[k].bytes);
      for (const auto& [other, owner] : seen)
        if (other == gpu) pg::fail_support(pg::format("processes %u and %u have the same GPU", owner, p));
      seen.emplace_back(std::move(gpu), p);
    }
  }
  id = all[0].id;
}

// Communicators that do not block: whoever waits for them can stop waiting.
void Group::connect(const ncclUniqueId& id) {
  DeviceScope scope;
  check(library().ncclGroupStart(), "ncclGroupStart");
  ncclResult_t failed = ncclSuccess;
  for (size_t k = 0; k < members_.size() && failed == ncclSuccess; k++) {
    scope.use(members_[k].ordinal);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t status = library().ncclCommInitRankConfig(&members_[k].comm, static_cast<int>(total_), id,
                                                                 static_cast<int>(first_ + k), &config);
    if (status != ncclInProgress) failed = status;
  }
  const ncclResult_t ended = library().ncclGroupEnd();
  check(failed, "ncclCommInitRankConfig");
  check(ended, "ncclCommInitRankConfig");
}

// Returns when the communicators have taken what they were given.
void Group::settle(const std::string& what, Clock::time_point late, double allowed) {
  for (uint64_t turn = 0;; turn++) {
    bool busy = false;
    for (const Member& member : members_) {
      ncclResult_t status = ncclSuccess;
      check(library().ncclCommGetAsyncError(member.comm, &status), "ncclCommGetAsyncError");
      if (status == ncclInProgress)
        busy = true;
      else if (status != ncclSuccess)
        fail_nccl(status, what);
    }
    if (!busy) return;
    if (Clock::now() > late)
      pg::fail(PG_E_DEADLINE_EXCEEDED,
               pg::format("%s took more than %g seconds: others have not come to it", what.c_str(), allowed));
    look();
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 100 ? 10 : 500));
  }
}

// Throws where another process has ended.
void Group::look() {
  if (look_ == nullptr || Clock::now() < next_look_) return;
  next_look_ = Clock::now() + kNextLook;
  pg_error error = pg::make_error();
  if (const int32_t code = look_(context_, &error); code != PG_OK) pg::fail(code, error.message);
}

Group::Parts Group::read_parts(uint32_t rows, const pg_collective* const* calls) {
  const size_t own = members_.size();
  for (uint32_t i = 0; i < rows; i++) pg::check_row(calls + i * own, own, first_, total_);
  for (size_t i = 0; i < rows * own; i++)
    if (calls[i] != nullptr) refuse_unknown(*calls[i], total_);
  Parts parts(rows * own);
  for (size_t i = 0; i < rows * own; i++) {
    if (calls[i] == nullptr) continue;
    const pg_collective& call = *calls[i];
    const size_t k = i % own;
    const uint32_t device = members_[k].device;
    const auto size = static_cast<size_t>(pg::dtype_bytes(call.dtype));
    Part& part = parts[i];
    part = {&call,
            reinterpret_cast<cudaStream_t>(native(device, "stream", call.stream)),
            address(device, call.input),
            address(device, call.output),
            pg::input_count(call, first_ + k, total_) * size,
            pg::output_count(call, first_ + k, total_) * size};
    if ((part.read > 0 && part.input == nullptr) || (part.written > 0 && part.output == nullptr))
      pg::fail_argument(pg::format("%s: %s has no address", what_of(call).c_str(), name(k).c_str()));
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    check(library().cudaStreamIsCapturing(part.stream, &capturing), "cudaStreamIsCapturing");
    if (capturing != cudaStreamCaptureStatusNone)
      pg::fail(PG_E_FAILED_PRECONDITION, what_of(call) + ": collectives are not captured");
  }
  return parts;
}

// An event of each stream, before and behind.
void Group::mark(Pending& pending, const Parts& parts) {
  DeviceScope scope;
  const bool first = pending.marks.empty();
  for (size_t i = 0; first && i < parts.size(); i++) {
    if (parts[i].call == nullptr) continue;
    const size_t k = i % members_.size();
    const bool known = std::any_of(pending.marks.begin(), pending.marks.end(),
                                   [&](const Mark& m) { return m.member == k && m.stream == parts[i].stream; });
    if (known) continue;
    scope.use(members_[k].ordinal);
    EventPool& events = members_[k].events;
    pending.marks.push_back({k, parts[i].stream, events.take(), nullptr});
    pending.marks.back().done = events.take();
  }
  for (const Mark& m : pending.marks) {
    scope.use(members_[m.member].ordinal);
    check(library().cudaEventRecord(first ? m.come : m.done, m.stream), "cudaEventRecord");
  }
}

// Calls of one group of NCCL's run at the same time. Rows that write what others of it touch are for the next one; and
// with several processes each row is one, since all must form the same groups. Sends and receives go together: one
// that has a group for itself waits for its counterpart, which may come later.
size_t Group::batch_end(const Parts& parts, size_t row) const {
  const size_t own = members_.size(), rows = parts.size() / own;
  const auto pairs = [&](size_t r) {
    for (size_t k = 0; k < own; k++)
      if (parts[r * own + k].call != nullptr) return pg::is_pair(parts[r * own + k].call->kind);
    return true;
  };
  size_t end = row + 1;
  for (; end < rows; end++) {
    if (pairs(end) != pairs(row) || (!alone_ && !pairs(row))) return end;
    for (size_t r = row; !pairs(row) && r < end; r++) {
      for (size_t k = 0; k < own; k++) {
        const Part &a = parts[r * own + k], &b = parts[end * own + k];
        if (overlap(a.output, a.written, b.output, b.written) || overlap(a.output, a.written, b.input, b.read) ||
            overlap(a.input, a.read, b.output, b.written))
          return end;
      }
    }
  }
  return end;
}

void Group::queue(const Parts& parts, size_t row, size_t end) {
  const size_t own = members_.size();
  DeviceScope scope;
  for (size_t i = row * own; i < end * own; i++) {
    Member& member = members_[i % own];
    if (parts[i].call == nullptr || parts[i].call->kind != PG_COLLECTIVE_BARRIER || member.spare != nullptr) continue;
    scope.use(member.ordinal);
    check(library().cudaMalloc(&member.spare, sizeof(int32_t)), "cudaMalloc");
  }
  check(library().ncclGroupStart(), "ncclGroupStart");
  try {
    for (size_t i = row * own; i < end * own; i++) {
      const Part& p = parts[i];
      if (p.call == nullptr || (p.call->count == 0 && p.call->kind != PG_COLLECTIVE_BARRIER)) continue;
      Member& member = members_[i % own];
      begin_call(*p.call, member.comm, p.stream, first_ + i % own, total_, p.input, p.output, member.spare);
    }
  } catch (...) {
    (void)library().ncclGroupEnd();
    throw;
  }
  check(library().ncclGroupEnd(), "ncclGroupEnd");
}

void Group::submit(uint32_t rows, const pg_collective* const* calls) {
  std::lock_guard lock(mutex_);
  if (!broken_.empty()) pg::fail(code_, "the group is broken: " + broken_);
  const Parts parts = read_parts(rows, calls);
  Pending pending;
  double allowed = 0;
  for (const Part& part : parts) {
    if (part.call == nullptr) continue;
    if (pending.what.empty()) pending.what = what_of(*part.call);
    if (part.call->deadline > 0 && (allowed == 0 || part.call->deadline < allowed)) allowed = part.call->deadline;
  }
  pending.allowed = allowed;
  pending.late = late_after(allowed);
  try {
    mark(pending, parts);
    for (size_t row = 0, end = 0; row < rows; row = end) {
      end = batch_end(parts, row);
      queue(parts, row, end);
      settle(pending.what, pending.late, allowed);
    }
    mark(pending, parts);
  } catch (const pg::Error& error) {
    recycle(pending);
    break_up(error.code, error.what());
    throw;
  }
  pending_.push_back(std::move(pending));
}

std::string Group::name(size_t member) const {
  std::string text = pg::format("%s:%u", kType, members_[member].device);
  return alone_ ? text : pg::format("rank %zu (", first_ + member) + text + ")";
}

// Throws where the device says that something has happened to it.
bool Group::is_over(Pending& pending) {
  for (const Mark& m : pending.marks)
    if (!is_passed(m.done)) return false;
  return true;
}

std::string Group::late_text(const Pending& pending) {
  std::string absent;
  for (const Mark& m : pending.marks)
    if (!is_passed(m.come)) absent += (absent.empty() ? "" : ", ") + name(m.member);
  std::string text = pg::format("%s: took more than %g seconds: ", pending.what.c_str(), pending.allowed);
  if (!absent.empty()) return text + absent + " has not come to it";
  return text + (alone_ ? "all have come to it, but it did not end" : "others have not come to it, or it did not end");
}

bool Group::watch() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !broken_.empty()) return !lock;
  try {
    if (pending_.empty()) return false;
    for (const Member& member : members_) {
      ncclResult_t status = ncclSuccess;
      check(library().ncclCommGetAsyncError(member.comm, &status), "ncclCommGetAsyncError");
      if (status != ncclSuccess && status != ncclInProgress) fail_nccl(status, pending_.front().what);
    }
    while (!pending_.empty() && is_over(pending_.front())) {
      recycle(pending_.front());
      pending_.pop_front();
    }
    const Clock::time_point now = Clock::now();
    for (const Pending& pending : pending_)
      if (now > pending.late) pg::fail(PG_E_DEADLINE_EXCEEDED, late_text(pending));
    if (!pending_.empty()) look();
  } catch (const pg::Error& error) {
    const std::string what = pending_.empty() ? "" : pending_.front().what + ": ";
    const bool named = what.empty() || std::string(error.what()).rfind(what, 0) == 0;
    break_up(error.code, named ? error.what() : what + error.what());
  }
  return !pending_.empty();
}

void Group::abort(const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (broken_.empty()) break_up(PG_E_FAILED_PRECONDITION, reason);
}

bool Group::has(uint32_t device) const {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return m.device == device; });
}

void Group::recycle(Pending& pending) {
  for (const Mark& m : pending.marks) {
    members_[m.member].events.put(m.come);
    members_[m.member].events.put(m.done);
  }
  pending.marks.clear();
}

// First it is told, then the kernels are let go: who waits for a stream must find the failure there.
void Group::break_up(int32_t code, const std::string& why) noexcept {
  broken_ = why;
  code_ = code;
  for (Pending& pending : pending_) {
    for (const Mark& m : pending.marks) report_(members_[m.member].device, pg::Error(code, why));
    recycle(pending);
  }
  pending_.clear();
  for (Member& member : members_)
    if (member.comm != nullptr && !is_exiting()) (void)library().ncclCommAbort(std::exchange(member.comm, nullptr));
}

// A communicator ends together with those of the others, or is aborted where they do not come.
void Group::close() noexcept {
  pg::guard(nullptr, nullptr, [&] {
    for (const Member& member : members_)
      if (member.comm != nullptr) check(library().ncclCommFinalize(member.comm), "ncclCommFinalize");
    if (broken_.empty()) settle("the end of a group", late_after(kFarewell), kFarewell);
    for (Member& member : members_)
      if (member.comm != nullptr) (void)library().ncclCommDestroy(std::exchange(member.comm, nullptr));
  });
  for (Member& member : members_)
    if (member.comm != nullptr) (void)library().ncclCommAbort(std::exchange(member.comm, nullptr));
  for (Pending& pending : pending_) recycle(pending);
  pg::guard(nullptr, nullptr, [&] {
    DeviceScope scope;
    for (Member& member : members_) {
      scope.use(member.ordinal);
      member.events.destroy();
      if (member.spare != nullptr) (void)library().cudaFree(std::exchange(member.spare, nullptr));
    }
  });
}

Group::~Group() {
  if (!is_exiting()) close();
}

}  // namespace nccl
