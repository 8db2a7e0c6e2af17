// SPDX-License-Identifier: Apache-2.0
// How kernels are started: launch(stream, grid, kernel<float>, arguments...). There is no <<<>>> in this plugin: this
// is checked, and tests can run the same kernels on a processor (PERIGEE_CUDA_EMULATED).
#pragma once

#include <tuple>
#include <utility>

#include "grid.hpp"
#include "runtime.hpp"
#include "runtime_block.hpp"

#if defined(PERIGEE_CUDA_EMULATED)
#include <emulator.hpp>  // on the path where this is defined: tests/cuda/standin
#elif defined(__CUDACC__)
#define PG_KERNEL_SHARED __shared__
#endif

namespace cuda {

template <class... P, class... A>
void launch(cudaStream_t stream, const Grid& grid, void (*kernel)(P...), A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has parameters");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (is_dry(reinterpret_cast<const void*>(kernel), grid.x, grid.y, grid.z, grid.threads, grid.shared)) {
#if !defined(PERIGEE_CUDA_EMULATED)
    // Nobody has launched it yet, and loading it is nothing to do in the middle of a capture.
    if (cudaFuncAttributes loaded; runtime_block->image == nullptr)
      PG_CUDA(cudaFuncGetAttributes(&loaded, reinterpret_cast<const void*>(kernel)));
#endif
    return;
  }
  std::tuple<P...> values(std::forward<A>(arguments)...);
#if defined(PERIGEE_CUDA_EMULATED)
  PG_CUDA(emulator::launch(stream, grid, [kernel, values] { std::apply(kernel, values); }));
#else
  std::apply(
      [&](P&... value) {
        void* pointers[] = {&value..., nullptr};
        PG_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.x, grid.y, grid.z),
                                 dim3(grid.threads), pointers, grid.shared, stream));
      },
      values);
#endif
}

#if defined(__CUDACC__)
// Dynamic shared memory, Grid::shared bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char bytes[];
  return reinterpret_cast<T*>(bytes);
}
#endif

}  // namespace cuda
