// SPDX-License-Identifier: Apache-2.0
// A CUDA device's language for a host compiler: the plugin's .cu files are compiled with this header before them, and
// their kernels run on the processor.
//
// One kernel runs at a time in the process, one block of it after the other; the threads of a block are fibers that
// switch only where they wait for each other, in an order that can be chosen (scheduler.hpp). What would hang or be
// undefined on a device ends the process with a message: threads that wait at different barriers, or leave while others
// wait.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>

// Behind the standard library, which uses the word itself.
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
// One block runs at a time, so its shared arrays can be static; AddressSanitizer then watches their bounds.
#undef __shared__
#define __shared__ static
#define PG_KERNEL_SHARED static

namespace emulator {

struct Geometry {
  uint32_t x = 1, y = 1, z = 1;  // blocks
  uint32_t threads = 1;
  uint32_t shared = 0;  // bytes of dynamic shared memory
};

// Queues a kernel, which `body` calls once a thread, on a stream of the stand-in.
cudaError_t launch_kernel(cudaStream_t stream, const Geometry& geometry, std::function<void()> body);
// Runs it here and now; for tests of the emulator.
void run_kernel(const Geometry& geometry, const std::function<void()>& body);

template <class Grid>
cudaError_t launch(cudaStream_t stream, const Grid& grid, std::function<void()> body) {
  return launch_kernel(stream, {grid.x, grid.y, grid.z, grid.threads, grid.shared}, std::move(body));
}

// Ends the process: what a device would make of it is not defined.
[[noreturn]] void violation(const std::string& message);

}  // namespace emulator

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

#include "atomics.hpp"
#include "intrinsics.hpp"
#include "scheduler.hpp"
#include "warp.hpp"

namespace cuda {

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulator::dynamic_shared_memory());
}

}  // namespace cuda
