// SPDX-License-Identifier: Apache-2.0
#include "emulator.hpp"
#include "stream.hpp"

using namespace standin;

namespace {

cudaError_t create_stream(cudaStream_t* out, unsigned flags) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) return finish(cudaErrorInvalidValue);
  static uint64_t number = 0;
  *out = new CUstream_st(thread_state().device, flags, ++number);
  s.streams.insert(*out);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  STANDIN_ENTER();
  return create_stream(out, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  STANDIN_ENTER();
  return create_stream(out, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int) {
  STANDIN_ENTER();
  return create_stream(out, flags);
}

// Work that is queued still runs, as in CUDA. Other streams may still be asked about a destroyed one: its address is
// not used again while they can (find_stream).
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  cudaError_t refused = enter(__func__);
  if (refused != cudaSuccess && !is_sticky(refused)) return finish(refused);
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    if (s.streams.erase(handle) == 0) return finish(cudaErrorInvalidResourceHandle);
    if (handle->capture != nullptr) {
      s.graphs.erase(handle->capture);
      delete handle->capture;
    }
  }
  delete handle;
  return finish(refused);
}

// Nobody may wait for or ask after a stream that is being captured, in whatever mode.
static bool spoils_capture(CUstream_st* stream) {
  std::lock_guard lock(state().mutex);
  if (stream->capture == nullptr) return false;
  stream->capture_invalid = true;
  return true;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  STANDIN_ENTER();
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (spoils_capture(stream)) return finish(cudaErrorStreamCaptureUnsupported);
  if (cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return finish(refused);
  stream->drain();
  return finish(lost(stream->device));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  STANDIN_ENTER();
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (spoils_capture(stream)) return finish(cudaErrorStreamCaptureUnsupported);
  if (!stream->idle()) return cudaErrorNotReady;
  return finish(lost(stream->device));
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  STANDIN_ENTER();
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *flags = stream->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  STANDIN_ENTER();
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *device = stream->device;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  STANDIN_ENTER();
  return finish(submit(stream, {"host", "host", [=] {
                                  thread_state().in_host_function = true;
                                  function(argument);
                                  thread_state().in_host_function = false;
                                }}));
}

cudaError_t cudaDeviceSynchronize() {
  STANDIN_ENTER();
  if (cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return finish(refused);
  drain_device(thread_state().device);
  return finish(lost(thread_state().device));
}

// The limits of compute capability 9.0.
cudaError_t emulator::launch_kernel(cudaStream_t stream, const Geometry& geometry, std::function<void()> body) {
  if (cudaError_t refused = enter("cudaLaunchKernel"); refused != cudaSuccess) return finish(refused);
  constexpr uint32_t kMostX = 0x7fffffff, kMostYz = 65535, kMostThreads = 1024, kMostShared = 48 << 10;
  if (geometry.x == 0 || geometry.y == 0 || geometry.z == 0 || geometry.x > kMostX || geometry.y > kMostYz ||
      geometry.z > kMostYz || geometry.threads == 0 || geometry.threads > kMostThreads) {
    return finish(cudaErrorInvalidConfiguration);
  }
  if (geometry.shared > kMostShared) return finish(cudaErrorInvalidValue);
  return finish(submit(stream, {"kernel", "kernel", [=, body = std::move(body)] { run_kernel(geometry, body); }}));
}
