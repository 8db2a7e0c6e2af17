// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "stream.hpp"

using namespace standin;

int64_t standin::timed_events() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return std::count_if(s.events.begin(), s.events.end(),
                       [](CUevent_st* event) { return (event->flags & cudaEventDisableTiming) == 0; });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  *out = new CUevent_st();
  (*out)->device = thread_state().device;
  (*out)->flags = flags;
  s.events.insert(*out);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* out) { return cudaEventCreateWithFlags(out, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  cudaError_t refused = enter(__func__);
  if (refused != cudaSuccess && !is_sticky(refused)) return finish(refused);
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.events.erase(handle) == 0) return finish(cudaErrorInvalidResourceHandle);
  delete handle;
  return finish(refused);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
  STANDIN_ENTER();
  CUevent_st* event = find_event(handle);
  CUstream_st* stream = find_stream(on);
  if (event == nullptr || stream == nullptr || event->device != stream->device) {
    return finish(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture_invalid) return finish(cudaErrorStreamCaptureInvalidated);
  std::lock_guard lock(event->mutex);
  event->captured_in = stream->capture;
  if (stream->capture != nullptr) return cudaSuccess;  // order within the graph is the order of capture
  auto mark = event->mark = std::make_shared<Mark>();
  stream->push({"event", "event", [mark] { mark->finish(); }});
  return cudaSuccess;
}

// A stream that waits for an event of a captured one becomes part of that capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t handle, unsigned) {
  STANDIN_ENTER();
  CUevent_st* event = find_event(handle);
  CUstream_st* stream = find_stream(on);
  if (event == nullptr || stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(event->mutex);
  if (event->captured_in != nullptr) {
    if (stream->capture != nullptr && stream->capture != event->captured_in) {
      return finish(cudaErrorStreamCaptureIsolation);
    }
    stream->capture = event->captured_in;
    return cudaSuccess;
  }
  if (stream->capture != nullptr) {  // an event from outside
    stream->capture_invalid = true;
    return finish(cudaErrorStreamCaptureIsolation);
  }
  if (auto mark = event->mark) stream->push({"wait", "wait", [mark] { mark->wait(); }});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  STANDIN_ENTER();
  CUevent_st* event = find_event(handle);
  if (event == nullptr) return finish(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(event->mutex);
  if (event->captured_in != nullptr) return finish(cudaErrorCapturedEvent);
  if (event->mark != nullptr && !event->mark->finished()) return finish(cudaErrorNotReady);
  return finish(lost(event->device));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  STANDIN_ENTER();
  CUevent_st *from = find_event(start), *to = find_event(stop);
  if (from == nullptr || to == nullptr || ((from->flags | to->flags) & cudaEventDisableTiming) != 0) {
    return finish(cudaErrorInvalidResourceHandle);
  }
  auto mark_of = [](CUevent_st* event) {
    std::lock_guard lock(event->mutex);
    return event->mark;
  };
  std::shared_ptr<Mark> first = mark_of(from), last = mark_of(to);
  if (first == nullptr || last == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (!first->finished() || !last->finished()) return finish(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(last->time() - first->time()).count();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  STANDIN_ENTER();
  CUevent_st* event = find_event(handle);
  if (event == nullptr) return finish(cudaErrorInvalidResourceHandle);
  std::shared_ptr<Mark> mark;
  {
    std::lock_guard lock(event->mutex);
    if (event->captured_in != nullptr) return finish(cudaErrorCapturedEvent);
    mark = event->mark;
  }
  if (mark != nullptr) mark->wait();
  return finish(lost(event->device));
}
