// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/hd.hpp: lets g++, clang++ and nvcc compile one source for processors and accelerators.
#pragma once

#if defined(__CUDACC__)
#define PG_HD __host__ __device__ __forceinline__
#else
// always_inline: these headers are compiled for several instruction sets into one library, so no out-of-line copy of a
// function may exist for the linker to pick.
#define PG_HD inline __attribute__((always_inline))
#endif

// For free functions: no symbol leaves the source file.
#define PG_HD_INLINE static PG_HD
