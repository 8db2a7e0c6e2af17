// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

namespace standin {

void Mark::finish() {
  std::lock_guard lock(mutex_);
  finished_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Mark::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_; });
}

std::chrono::steady_clock::time_point Mark::time() {
  std::lock_guard lock(mutex_);
  return time_;
}

bool Mark::finished() {
  std::lock_guard lock(mutex_);
  return finished_;
}

}  // namespace standin

CUstream_st::CUstream_st(int device, unsigned flags, uint64_t number)
    : device(device), flags(flags), random_(number * 2654435761u + 1), thread_([this] { work(); }) {}

CUstream_st::~CUstream_st() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  filled_.notify_one();
  thread_.join();
}

void CUstream_st::push(standin::Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    pushed_++;
  }
  filled_.notify_one();
}

void CUstream_st::drain() {
  std::unique_lock lock(mutex_);
  uint64_t target = pushed_;
  drained_.wait(lock, [&] { return done_ >= target; });
}

bool CUstream_st::idle() {
  std::lock_guard lock(mutex_);
  return done_ == pushed_;
}

void CUstream_st::work() {
  for (;;) {
    standin::Task task;
    {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    pause();
    run(task);
    task = standin::Task();  // lets go of what it holds before anyone is told that it is done
    {
      std::lock_guard lock(mutex_);
      done_++;
    }
    drained_.notify_all();
  }
}

// On a lost device nothing happens any more, but for events, which must not hang their waiters.
void CUstream_st::run(standin::Task& task) {
  bool event = std::string_view(task.kind) == "event" || std::string_view(task.kind) == "wait";
  if (!event) {
    cudaError_t code = standin::injected(task.kind);
    if (code == cudaSuccess && task.name != task.kind) code = standin::injected((task.name + " runs").c_str());
    if (code != cudaSuccess) standin::lose(device, code);
    if (standin::lost(device) != cudaSuccess) return;
  }
  task.body();
}

void CUstream_st::pause() {
  int most = standin::state().jitter;
  if (most == 0) return;
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  std::this_thread::sleep_for(std::chrono::microseconds((random_ >> 33) % static_cast<uint64_t>(most + 1)));
}

namespace standin {

CUstream_st* find_stream(cudaStream_t handle) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    CUstream_st*& own = s.device[thread_state().device].default_stream;
    if (own == nullptr) own = new CUstream_st(thread_state().device, 0, 0);  // as long as the process
    return own;
  }
  return s.streams.count(handle) > 0 ? handle : nullptr;
}

CUevent_st* find_event(cudaEvent_t handle) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.events.count(handle) > 0 ? handle : nullptr;
}

cudaError_t submit(cudaStream_t handle, Task task, bool any_device) {
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->device != thread_state().device && !any_device) return cudaErrorInvalidResourceHandle;
  if (stream->capture_invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream->capture != nullptr) {
    stream->capture->tasks.push_back(std::move(task));
  } else {
    stream->push(std::move(task));
  }
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t stream, const char* name, std::function<void()> body) {
  return submit(stream, {"kernel", name, std::move(body)});
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> body) {
  return enqueue(stream, "kernel", std::move(body));
}

void drain_device(int device) {
  State& s = state();
  std::vector<CUstream_st*> streams;
  {
    std::lock_guard lock(s.mutex);
    for (CUstream_st* stream : s.streams) {
      if (stream->device == device) streams.push_back(stream);
    }
    if (s.device[device].default_stream != nullptr) streams.push_back(s.device[device].default_stream);
  }
  for (CUstream_st* stream : streams) stream->drain();
}

// Global captures forbid such calls to every thread; nothing here captures in another mode than global or relaxed.
cudaError_t refuse_while_capturing() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  for (CUstream_st* stream : s.streams) {
    if (stream->capture == nullptr || stream->capture_mode == cudaStreamCaptureModeRelaxed) continue;
    stream->capture_invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

}  // namespace standin
