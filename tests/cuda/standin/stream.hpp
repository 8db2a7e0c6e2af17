// SPDX-License-Identifier: Apache-2.0
// Streams and events: a stream is a queue and a thread that works it off in order, as late as the machine lets it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "state.hpp"

namespace standin {

struct Task {
  const char* kind = "";  // "kernel", "copy", "event", "wait", "host"
  std::string name;       // for injection too
  std::function<void()> body;
};

// One recording of an event. Waiters hold on to the one that they saw.
class Mark {
 public:
  void finish();
  void wait();
  bool finished();
  std::chrono::steady_clock::time_point time();  // when it finished

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
  std::chrono::steady_clock::time_point time_;
};

}  // namespace standin

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  std::mutex mutex;
  std::shared_ptr<standin::Mark> mark;  // NULL: never recorded
  CUgraph_st* captured_in = nullptr;    // recorded while its stream was being captured
};

struct CUgraph_st {
  std::vector<standin::Task> tasks;  // in the order of their capture
  int device = 0;
};
struct CUgraphExec_st {
  std::shared_ptr<std::vector<standin::Task>> tasks;
  int device = 0;
};

struct CUstream_st {
  CUstream_st(int device, unsigned flags, uint64_t number);
  ~CUstream_st();

  void push(standin::Task task);
  // Until all that was queued before is done.
  void drain();
  bool idle();

  const int device;
  const unsigned flags;

  // Capture: work goes there instead of into the queue.
  CUgraph_st* capture = nullptr;
  bool capture_invalid = false;
  bool capture_origin = false;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

 private:
  void work();
  void run(standin::Task& task);
  void pause();

  uint64_t random_;
  std::mutex mutex_;
  std::condition_variable filled_, drained_;
  std::deque<standin::Task> tasks_;
  uint64_t pushed_ = 0, done_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

namespace standin {

// The stream behind a handle, NULL where it is none (any more). NULL stands for the current device's default stream.
CUstream_st* find_stream(cudaStream_t handle);
CUevent_st* find_event(cudaEvent_t handle);
// Queues work, or captures it. Checks that the stream is alive and of the current device.
cudaError_t submit(cudaStream_t stream, Task task, bool any_device = false);
// Waits for all streams of a device.
void drain_device(int device);
// What a call that may not happen during capture answers: it also spoils the captures that forbid it.
cudaError_t refuse_while_capturing();

}  // namespace standin
