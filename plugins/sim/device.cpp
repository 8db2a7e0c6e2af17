// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <unistd.h>

#include <cstring>
#include <thread>

#include "meeting.hpp"
#include "perigee/kernels/reference/copy.hpp"

namespace sim {
namespace {

using pg::reference::check_dtype;
using pg::reference::Operand;

[[noreturn]] void fail_lost(uint32_t device) {
  throw pg::Error(PG_E_INTERNAL, pg::format("sim:%u is lost", device), 0, PG_ERROR_DEVICE_LOST);
}

void raise(const Failure& failure) {
  throw pg::Error(failure.code, failure.where.empty() ? failure.message : failure.where + ": " + failure.message,
                  failure.sequence, failure.flags);
}

}  // namespace

uint64_t extent_bytes(const pg_tensor& tensor) {
  int64_t last = 0;
  for (uint32_t i = 0; i < tensor.rank; i++) {
    if (tensor.shape[i] == 0) return 0;
    last += (tensor.shape[i] - 1) * tensor.stride[i];
  }
  return static_cast<uint64_t>((last + 1) * pg::dtype_bytes(pg::dtype_of(tensor)));
}

Device::Device(Settings settings)
    : settings_(std::move(settings)),
      order_(settings_.races),
      clock_(settings_.delays, settings_.links),
      process_(getpid()) {
  for (uint32_t i = 0; i < settings_.devices; i++)
    devices_.push_back(std::make_unique<One>(i, settings_.memory, order_));
}

Device::One& Device::one(uint32_t device) {
  if (device >= devices_.size()) {
    pg::fail_argument(pg::format("device %u; there are %zu", device, devices_.size()));
  }
  if (getpid() != process_) {
    throw pg::Error(PG_E_FAILED_PRECONDITION,
                    "used after fork: the simulated accelerator's threads stayed in the parent");
  }
  return *devices_[device];
}

Device::One& Device::alive(uint32_t device) {
  One& found = one(device);
  if (found.lost) fail_lost(device);
  return found;
}

uint32_t Device::count(std::string&) { return static_cast<uint32_t>(devices_.size()); }

void Device::properties(uint32_t device, pg_device_properties& out) {
  One& found = one(device);
  out.flags = settings_.gpu ? PG_DEVICE_ACCELERATOR : 0;
  std::snprintf(out.name, sizeof out.name, "simulated accelerator %u", device);
  out.memory_total = found.memory.limit();
  out.memory_free = found.memory.limit() == 0 ? 0 : found.memory.limit() - found.memory.used();
  out.stream_count = 2;
  out.alignment = 64;
  out.compute_units = 1;
}

uint64_t Device::alloc(uint32_t device, uint32_t kind, uint64_t bytes) {
  One& found = alive(device);
  if (bytes == 0) pg::fail_argument("0 bytes");
  if (kind == PG_MEMORY_PINNED) return found.memory.alloc_pinned(bytes);
  if (kind != PG_MEMORY_DEVICE) pg::fail_support(pg::format("memory kind %u", kind));
  std::unique_lock faults(faults_);
  const int64_t n = ++allocs_;
  const bool fails = settings_.fail_alloc.hits(n);
  faults.unlock();
  if (fails) {
    throw pg::Error(PG_E_OUT_OF_MEMORY,
                    pg::format("allocation %lld fails because PERIGEE_SIM_FAIL says so", static_cast<long long>(n)));
  }
  return found.memory.alloc(bytes);
}

// Works on a lost device too, so that a program can put it away.
void Device::free(uint32_t device, uint32_t kind, uint64_t buffer) {
  One& found = one(device);
  if (kind == PG_MEMORY_PINNED) return found.memory.free_pinned(buffer, found.lost);
  found.memory.free(buffer, found.lost);
}

uint64_t Device::stream_create(uint32_t device) {
  alive(device);
  std::lock_guard lock(mutex_);
  uint64_t handle = ++serial_;
  order_.add_stream(handle, device);
  streams_[handle] = {device, std::make_shared<Stream>(settings_.jitter, settings_.seed, handle)};
  return handle;
}

void Device::stream_destroy(uint32_t device, uint64_t handle) {
  std::shared_ptr<Stream> drained = stream(device, handle);  // joins its thread outside the lock
  order_.wait_on_host(order_.record(handle));
  clock_.wait_on_host(clock_.record(handle));
  clock_.forget(handle);
  std::lock_guard lock(mutex_);
  streams_.erase(handle);
  captures_.erase(handle);
}

std::shared_ptr<Stream> Device::stream(uint32_t device, uint64_t handle) {
  one(device);
  std::lock_guard lock(mutex_);
  auto found = streams_.find(handle);
  if (found == streams_.end()) pg::fail_argument(pg::format("no stream %llu", static_cast<unsigned long long>(handle)));
  if (found->second.first != device) {
    pg::fail_argument(pg::format("the stream belongs to sim:%u, the call is for sim:%u", found->second.first, device));
  }
  return found->second.second;
}

std::shared_ptr<Event> Device::event(uint64_t handle) {
  std::lock_guard lock(mutex_);
  auto found = events_.find(handle);
  if (found == events_.end()) pg::fail_argument(pg::format("no event %llu", static_cast<unsigned long long>(handle)));
  return found->second;
}

void Device::stream_sync(uint32_t device, uint64_t handle) {
  std::shared_ptr<Stream> waited = stream(device, handle);
  refuse_capture(handle, "stream_sync");
  Snapshot until = order_.record(handle);
  std::optional<Failure> failure = waited->sync();
  order_.wait_on_host(until);
  clock_.wait_on_host(clock_.record(handle));
  if (failure) raise(*failure);
  alive(device);
}

uint64_t Device::event_create(uint32_t device) {
  alive(device);
  std::lock_guard lock(mutex_);
  uint64_t handle = ++serial_;
  events_[handle] = std::make_shared<Event>();
  return handle;
}

void Device::event_destroy(uint32_t device, uint64_t handle) {
  one(device);
  event(handle);
  std::lock_guard lock(mutex_);
  events_.erase(handle);
}

void Device::event_record(uint32_t device, uint64_t handle, uint64_t on) {
  std::shared_ptr<Event> recorded = event(handle);
  refuse_capture(on, "event_record");
  auto mark = std::make_shared<Mark>(order_.record(on), clock_.record(on));
  stream(device, on)->record(mark);
  recorded->set(mark);
}

// Events of other devices may be waited for, so `device` names the stream's.
void Device::event_wait(uint32_t device, uint64_t handle, uint64_t on) {
  std::shared_ptr<Mark> mark = event(handle)->mark();
  std::shared_ptr<Stream> waiter = stream(device, on);
  refuse_capture(on, "event_wait");
  if (!mark) return;
  order_.wait(on, mark->order);
  clock_.wait(on, mark->at);
  waiter->wait(mark);
}

bool Device::event_query(uint32_t device, uint64_t handle) {
  one(device);
  std::shared_ptr<Mark> mark = event(handle)->mark();
  if (!mark) return true;
  if (clock_.on()) {
    if (!clock_.has_passed(mark->at)) return false;
    mark->wait();
    order_.wait_on_host(mark->order);
    return true;
  }
  // Where races are looked for, chance must not decide what the host knows: at first it has to wait.
  constexpr uint32_t kPatience = 64;
  if (!order_.known_on_host(mark->order) && ++mark->asked < kPatience) return false;
  if (!mark->finished()) return false;
  order_.wait_on_host(mark->order);
  return true;
}

void Device::event_sync(uint32_t device, uint64_t handle) {
  one(device);
  std::shared_ptr<Mark> mark = event(handle)->mark();
  if (!mark) return;
  std::optional<Failure> failure = mark->wait();
  order_.wait_on_host(mark->order);
  clock_.wait_on_host(mark->at);
  if (failure) raise(*failure);
}

double Device::event_elapsed(uint32_t device, uint64_t start, uint64_t stop) {
  one(device);
  std::shared_ptr<Mark> from = event(start)->mark(), to = event(stop)->mark();
  if (!from || !to || !from->finished() || !to->finished()) {
    throw pg::Error(PG_E_FAILED_PRECONDITION, "both events must have been recorded and have passed");
  }
  if (clock_.on()) return static_cast<double>(to->at - from->at) * 1e-9;
  return std::chrono::duration<double>(to->time() - from->time()).count();
}

void Device::queue(uint32_t device, pg::Ticket ticket, const char* what, const std::vector<Touch>& touches,
                   Activity activity, std::function<void()> body, const Period* period) {
  One& found = alive(device);
  std::shared_ptr<Stream> target = stream(device, ticket.stream);
  order_.submit(ticket.stream, what, ticket.sequence, touches);
  if (clock_.on()) {
    const Period taken = period != nullptr ? *period
                         : activity.kind == PG_ACTIVITY_KERNEL
                             ? clock_.launch(ticket.stream, what)
                             : clock_.transfer(ticket.stream, {activity.from, activity.to, activity.bytes});
    if (activities.on()) {
      const Period told = clock_.told(taken);
      activities.add(pg::activity(activity.kind, device, ticket, told.begin, told.end, activity.bytes));
    }
  }
  target->push(ticket.sequence, what, [=, this, &found, body = std::move(body)] {
    if (found.lost) fail_lost(device);
    if (clock_.on() || !activities.on()) return body();
    const int64_t begin = pg::activity_now();
    body();
    activities.add(pg::activity(activity.kind, device, ticket, begin, pg::activity_now(), activity.bytes));
  });
}

void Device::launch(uint32_t device, pg::Ticket ticket, const char* op, const std::vector<Touch>& touches,
                    std::function<void()> body) {
  if (capture(ticket.stream, {true, ticket.sequence, op, touches, {}, body})) return;
  std::unique_lock faults(faults_);
  const int64_t n = ++launches_;
  const bool fails = settings_.fail_launch.hits(n), lost = settings_.lose_device.hits(n);
  faults.unlock();
  if (fails) {
    body = [n] {
      pg::fail(PG_E_INTERNAL,
               pg::format("launch %lld fails because PERIGEE_SIM_FAIL says so", static_cast<long long>(n)));
    };
  } else if (lost) {
    body = [lost = &one(device).lost, device] {
      *lost = true;
      fail_lost(device);
    };
  }
  queue(device, ticket, op, touches, {PG_ACTIVITY_KERNEL, 0}, std::move(body));
}

Use Device::use_bytes(uint32_t device, pg_address address, uint64_t bytes, const char* what) {
  return alive(device).memory.use(address.buffer, address.offset, bytes, what);
}

// Whose work is behind whose, once the call is over: all members' behind all, or the root's and the others'.
static bool is_behind(uint32_t kind, size_t root, size_t member, size_t other) {
  if (kind == PG_COLLECTIVE_BROADCAST) return other == root;
  if (kind == PG_COLLECTIVE_REDUCE) return member == root;
  return true;
}

void Device::queue_collective(const std::vector<Member>& members, uint32_t kind, size_t root,
                              const std::shared_ptr<Meeting>& meeting) {
  std::unique_lock faults(faults_);
  const int64_t n = ++collectives_;
  const bool fails = settings_.fail_collective.hits(n), cuts = settings_.cut_link.hits(n);
  if (settings_.stick.hits(n)) meeting->hold_last();
  faults.unlock();
  if (cuts) settings_.links.cut(static_cast<int32_t>(members[0].device), static_cast<int32_t>(members[1].device), true);
  if (fails)
    meeting->fail_at_once(
        pg::format("collective %lld fails because PERIGEE_SIM_FAIL says so", static_cast<long long>(n)));
  // Seats first: should one member's queue refuse, the others that have it already are told.
  std::vector<std::shared_ptr<Seat>> seats(members.size());
  std::vector<Snapshot> before(members.size());
  for (const Member& each : members) refuse_capture(each.ticket.stream, "a collective");
  for (size_t k = 0; k < members.size(); k++)
    if (members[k].ticket.stream != 0) seats[k] = std::make_shared<Seat>(meeting, k);
  std::vector<uint64_t> streams;
  std::vector<std::vector<Hop>> hops;
  for (size_t k = 0; k < members.size(); k++) {
    if (!seats[k]) continue;
    streams.push_back(members[k].ticket.stream);
    hops.push_back(meeting->hops_of(k));
  }
  const Period period = clock_.meet(streams, hops);
  for (size_t k = 0; k < members.size(); k++) {
    const Member& each = members[k];
    if (!seats[k]) continue;
    queue(
        each.device, each.ticket, "collective", each.touches, {PG_ACTIVITY_PEER, each.bytes},
        [seat = std::move(seats[k])] { seat->take(); }, &period);
    before[k] = order_.record(each.ticket.stream);
  }
  const bool pairs = kind == PG_COLLECTIVE_SEND || kind == PG_COLLECTIVE_RECEIVE;
  for (size_t k = 0; k < members.size(); k++)
    for (size_t j = 0; j < members.size(); j++)
      if (j != k && before[j] && members[k].ticket.stream != 0 && (pairs || is_behind(kind, root, k, j)))
        order_.wait(members[k].ticket.stream, before[j]);
}

void Device::queue_copy(uint32_t device, pg::Ticket ticket, const char* what, const std::vector<Touch>& touches,
                        Activity activity, std::function<void()> body) {
  if (capture(ticket.stream, {false, ticket.sequence, what, touches, activity, body})) return;
  std::unique_lock faults(faults_);
  const int64_t n = ++copies_;
  const bool fails = settings_.fail_copy.hits(n);
  faults.unlock();
  if (fails) {
    body = [n] {
      pg::fail(PG_E_INTERNAL,
               pg::format("copy %lld fails because PERIGEE_SIM_FAIL says so", static_cast<long long>(n)));
    };
  }
  queue(device, ticket, what, touches, activity, std::move(body));
}

uint64_t Device::native(uint32_t device, const char* what, uint64_t handle) {
  alive(device);
  std::string word = what;
  Fault fault;
  fault.on = word.ends_with('+');
  if (fault.on) word.pop_back();
  std::lock_guard lock(faults_);
  auto set = [&](Fault& which, int64_t count) {
    fault.nth = handle == 0 ? 0 : count + static_cast<int64_t>(handle);
    which = fault;
    return uint64_t{0};
  };
  if (word == "fail.alloc") return set(settings_.fail_alloc, allocs_);
  if (word == "fail.launch") return set(settings_.fail_launch, launches_);
  if (word == "fail.copy") return set(settings_.fail_copy, copies_);
  if (word == "fail.collective") return set(settings_.fail_collective, collectives_);
  if (word == "cut" || word == "mend") {
    one(static_cast<uint32_t>(handle));
    settings_.links.cut(static_cast<int32_t>(device), static_cast<int32_t>(handle), word == "cut");
    return 0;
  }
  if (word == "lose") return set(settings_.lose_device, launches_);
  pg::fail_support(pg::format("sim has no '%s'", what));
}

void Device::check_coverage(const char* op, const pg_tensor& tensor) const {
  const uint32_t dtype = pg::dtype_of(tensor);
  for (const char* named : {op, "*"}) {
    auto found = settings_.missing_dtypes.find(named);
    if (found == settings_.missing_dtypes.end() || !found->second.contains(dtype)) continue;
    pg::fail_support(pg::format("PERIGEE_SIM_MISSING says no %s of %s", op, pg::dtype_name(dtype)));
  }
}

void Device::upload(uint32_t device, pg_address target, const void* source, uint64_t bytes, pg::Ticket ticket) {
  refuse_capture(ticket.stream, "upload");
  Use to = alive(device).memory.use(target.buffer, target.offset, bytes, "upload");
  Touch from = alive(device).memory.pinned(source, bytes, false);
  queue_copy(device, ticket, "upload", {to.touch(true), from},
             {PG_ACTIVITY_UPLOAD, bytes, kHost, static_cast<int32_t>(device)}, [this, device, to, source, bytes] {
               settings_.links.transfer(kHost, static_cast<int32_t>(device), bytes);
               std::memcpy(to.data(), source, bytes);
             });
  order_.watch(ticket.stream, ticket.sequence, from);
}

void Device::download(uint32_t device, void* target, pg_address source, uint64_t bytes, pg::Ticket ticket) {
  refuse_capture(ticket.stream, "download");
  Use from = alive(device).memory.use(source.buffer, source.offset, bytes, "download");
  Touch to = alive(device).memory.pinned(target, bytes, true);
  queue_copy(device, ticket, "download", {from.touch(false), to},
             {PG_ACTIVITY_DOWNLOAD, bytes, static_cast<int32_t>(device), kHost}, [this, device, from, target, bytes] {
               settings_.links.transfer(static_cast<int32_t>(device), kHost, bytes);
               std::memcpy(target, from.data(), bytes);
             });
}

void Device::peer(uint32_t target_device, pg_address target, uint32_t source_device, pg_address source, uint64_t bytes,
                  pg::Ticket ticket) {
  refuse_capture(ticket.stream, "peer");
  Use to = alive(target_device).memory.use(target.buffer, target.offset, bytes, "peer copy, target");
  Use from = alive(source_device).memory.use(source.buffer, source.offset, bytes, "peer copy, source");
  queue_copy(target_device, ticket, "peer", {from.touch(false), to.touch(true)},
             {PG_ACTIVITY_PEER, bytes, static_cast<int32_t>(source_device), static_cast<int32_t>(target_device)},
             [this, source_device, target_device, to, from, bytes] {
               settings_.links.transfer(static_cast<int32_t>(source_device), static_cast<int32_t>(target_device),
                                        bytes);
               std::memmove(to.data(), from.data(), bytes);
             });
}

Use Device::use(uint32_t device, const pg_tensor& tensor, pg_address address, const char* what) {
  uint64_t bytes = extent_bytes(tensor);
  if (bytes == 0) return {};
  return alive(device).memory.use(address.buffer, address.offset, bytes, what);
}

void Device::copy(uint32_t device, const pg_tensor& target, const pg_tensor& source, pg::Ticket ticket) {
  Use to = use(device, target, {target.buffer, target.offset}, "copy, target");
  Use from = use(device, source, {source.buffer, source.offset}, "copy, source");
  Operand out(target, to.data()), in(source, from.data());
  if (out.shape != in.shape) {
    pg::fail_argument(
        pg::format("copy: target %s, source %s", pg::shape_text(target).c_str(), pg::shape_text(source).c_str()));
  }
  check_dtype(out.dtype);
  check_dtype(in.dtype);
  if (out.count() > 0) {
    queue_copy(device, ticket, "copy", {from.touch(false), to.touch(true)}, {PG_ACTIVITY_KERNEL, 0},
               [to, from, out, in] { copy_elements(out, in); });
  }
}

void Device::fill(uint32_t device, const pg_tensor& target, const pg_number& value, pg::Ticket ticket) {
  Use to = use(device, target, {target.buffer, target.offset}, "fill");
  Operand out(target, to.data());
  check_dtype(out.dtype);
  if (out.count() > 0) {
    queue_copy(device, ticket, "fill", {to.touch(true)}, {PG_ACTIVITY_KERNEL, 0},
               [to, out, value] { fill_elements(out, value); });
  }
}

void Device::begin_telling() { clock_.start_telling(pg::activity_now()); }

bool Device::busy() {
  if (collectives.busy()) return true;
  std::lock_guard lock(mutex_);
  if (!streams_.empty() || !events_.empty() || !plans_.empty()) return true;
  for (const auto& device : devices_) {
    if (!device->memory.empty()) return true;
  }
  return false;
}

}  // namespace sim
