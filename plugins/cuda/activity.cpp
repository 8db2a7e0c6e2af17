// SPDX-License-Identifier: Apache-2.0
#include "activity.hpp"

#include <deque>
#include <mutex>
#include <vector>

#include "perigee/kernel.hpp"

namespace cuda {
namespace {

struct Piece {
  uint32_t device, kind;
  pg::Ticket ticket;
  uint64_t bytes;
  cudaEvent_t start, stop;
};

// What the device's clock showed at one moment of the host's.
struct Zero {
  cudaEvent_t event = nullptr;
  int64_t ns = 0;
};

struct Activities {
  pg::ActivityLog log;
  std::mutex mutex;
  uint64_t capacity = 0;
  std::deque<Piece> pieces;
  std::vector<cudaEvent_t> free[kMaxDevices];
  Zero zeros[kMaxDevices];
};
Activities& activities() {
  static auto& activities = *new Activities;  // threads may outlive what is destroyed
  return activities;
}

// Mutex held; the device is current.
cudaEvent_t take_event(uint32_t device) {
  auto& free = activities().free[device];
  if (!free.empty()) {
    cudaEvent_t event = free.back();
    free.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  PG_CUDA(cudaEventCreate(&event));
  return event;
}

void give_back(const Piece& piece) {
  activities().free[piece.device].push_back(piece.start);
  activities().free[piece.device].push_back(piece.stop);
}

// Mutex held. Waits for the stream once a profile: then both clocks are known to be at the event.
void find_zero(Stream& stream) {
  Zero& zero = activities().zeros[stream.device];
  if (zero.event != nullptr) return;
  cudaEvent_t event = take_event(stream.device);
  PG_CUDA(cudaEventRecord(event, stream.native));
  PG_CUDA(cudaEventSynchronize(event));
  zero = {event, pg::activity_now()};
}

int64_t time_of(const Zero& zero, cudaEvent_t event) {
  float milliseconds = 0;
  PG_CUDA(cudaEventElapsedTime(&milliseconds, zero.event, event));
  return zero.ns + static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
}

const pg_kernels* plain = nullptr;

int32_t launch(void* self, uint32_t index, void* kernel, const pg_launch* call, pg_error* error) noexcept {
  if (!activity_log().on()) [[likely]]
    return plain->launch(self, index, kernel, call, error);
  return pg::guard(error, "launch", [&]() -> int32_t {
    TimedWork timed(stream_of(call->stream), PG_ACTIVITY_KERNEL, {call->stream, call->sequence});
    return plain->launch(self, index, kernel, call, error);
  });
}

}  // namespace

pg::ActivityLog& activity_log() { return activities().log; }

void begin_activities(uint64_t capacity) {
  Activities& a = activities();
  std::lock_guard lock(a.mutex);
  a.capacity = capacity;
}

void TimedWork::begin(Stream& stream, uint32_t kind, pg::Ticket ticket, uint64_t bytes) {
  if (stream.is_capturing()) return;
  use_device(stream.device);
  Activities& a = activities();
  std::lock_guard lock(a.mutex);
  find_zero(stream);
  cudaEvent_t event = take_event(stream.device);
  PG_CUDA(cudaEventRecord(event, stream.native));
  start_ = event;
  stream_ = &stream;
  kind_ = kind;
  ticket_ = ticket;
  bytes_ = bytes;
}

void TimedWork::end() noexcept {
  Activities& a = activities();
  std::lock_guard lock(a.mutex);
  try {
    cudaEvent_t event = take_event(stream_->device);
    PG_CUDA_WARN(cudaEventRecord(event, stream_->native));
    a.pieces.push_back({stream_->device, kind_, ticket_, bytes_, start_, event});
    if (a.pieces.size() > a.capacity) {
      give_back(a.pieces.front());
      a.pieces.pop_front();
      a.log.miss();
    }
  } catch (const std::exception& e) {
    pg::log(PG_LOG_WARNING, std::string("a profile misses a piece of work: ") + e.what());
  }
}

void collect_activities() {
  Activities& a = activities();
  std::lock_guard lock(a.mutex);
  for (const Piece& piece : a.pieces) {
    if (is_lost(piece.device)) continue;
    use_device(piece.device);
    const Zero& zero = a.zeros[piece.device];
    const int64_t begin = time_of(zero, piece.start), end = time_of(zero, piece.stop);
    a.log.add(pg::activity(piece.kind, piece.device, piece.ticket, begin, end < begin ? begin : end, piece.bytes));
  }
  for (const Piece& piece : a.pieces) give_back(piece);
  a.pieces.clear();
  for (uint32_t device = 0; device < kMaxDevices; device++) {
    if (a.zeros[device].event != nullptr) a.free[device].push_back(a.zeros[device].event);
    a.zeros[device] = {};
    if (a.free[device].empty()) continue;
    if (!is_lost(device)) {
      use_device(device);
      for (cudaEvent_t event : a.free[device]) PG_CUDA_WARN(cudaEventDestroy(event));
    }
    a.free[device].clear();
  }
}

const pg_kernels* timed_kernels(const pg_kernels& table) {
  static pg_kernels timed{};
  plain = &table;
  timed = table;
  timed.launch = launch;
  return &timed;
}

}  // namespace cuda
