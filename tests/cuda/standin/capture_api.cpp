// SPDX-License-Identifier: Apache-2.0
// Capture: what is queued on a captured stream is kept in a graph, in the order of the calls, and replayed in it.
#include "stream.hpp"

using namespace standin;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  CUstream_st* stream = handle == nullptr ? nullptr : find_stream(handle);
  if (stream == nullptr)
    return finish(handle == nullptr ? cudaErrorStreamCaptureUnsupported : cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return finish(cudaErrorIllegalState);
  stream->capture = new CUgraph_st();
  stream->capture->device = stream->device;
  stream->capture_invalid = false;
  stream->capture_origin = true;
  stream->capture_mode = mode;
  s.graphs.insert(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (stream->capture == nullptr || !stream->capture_origin) return finish(cudaErrorStreamCaptureUnmatched);
  CUgraph_st* graph = stream->capture;
  bool invalid = false;
  for (CUstream_st* other : s.streams) {
    if (other->capture != graph) continue;
    invalid |= other->capture_invalid;
    other->capture = nullptr;
    other->capture_invalid = other->capture_origin = false;
  }
  for (CUevent_st* event : s.events) {
    std::lock_guard guard(event->mutex);
    if (event->captured_in == graph) event->captured_in = nullptr;
  }
  *out = nullptr;
  if (invalid) {
    s.graphs.erase(graph);
    delete graph;
    return finish(cudaErrorStreamCaptureInvalidated);
  }
  *out = graph;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  STANDIN_ENTER();
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture_invalid  ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

// A thread's mode, exchanged for another; captures here only know their own.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  STANDIN_ENTER();
  thread_local cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal;
  std::swap(own, *mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.graphs.count(graph) == 0) return finish(cudaErrorInvalidValue);
  *out = new CUgraphExec_st{std::make_shared<std::vector<Task>>(graph->tasks), graph->device};
  s.graphs.insert(*out);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  STANDIN_ENTER();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  STANDIN_ENTER();
  {
    State& s = state();
    std::lock_guard lock(s.mutex);
    if (s.graphs.count(graph) == 0) return finish(cudaErrorInvalidValue);
  }
  for (const Task& task : *graph->tasks) {
    if (cudaError_t status = submit(stream, task); status != cudaSuccess) return finish(status);
  }
  return cudaSuccess;
}

// The new graph must be as long and of the same kinds of work.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t graph, cudaGraph_t from, cudaGraphExecUpdateResultInfo* result) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.graphs.count(graph) == 0 || s.graphs.count(from) == 0) return finish(cudaErrorInvalidValue);
  *result = cudaGraphExecUpdateResultInfo{};
  bool same = graph->tasks->size() == from->tasks.size();
  for (size_t i = 0; same && i < from->tasks.size(); i++) same = (*graph->tasks)[i].name == from->tasks[i].name;
  result->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  if (!same) return finish(cudaErrorGraphExecUpdateFailure);
  graph->tasks = std::make_shared<std::vector<Task>>(from->tasks);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  STANDIN_ENTER();
  if (nodes != nullptr) return finish(cudaErrorNotSupported);
  *count = graph->tasks.size();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  cudaError_t refused = enter(__func__);
  if (refused != cudaSuccess && !is_sticky(refused)) return finish(refused);
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.graphs.erase(graph) == 0) return finish(cudaErrorInvalidValue);
  delete graph;
  return finish(refused);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  cudaError_t refused = enter(__func__);
  if (refused != cudaSuccess && !is_sticky(refused)) return finish(refused);
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.graphs.erase(graph) == 0) return finish(cudaErrorInvalidValue);
  delete graph;
  return finish(refused);
}
