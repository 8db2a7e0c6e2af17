// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/hd.hpp: lets g++, clang++ and nvcc compile one source for processors and accelerators.
#pragma once

#if defined(__CUDACC__)
#define PG_HD __host__ __device__
#else
#define PG_HD
#endif

// What shared scalar functions are declared with. Internal linkage on purpose: a plugin compiles the same header with
// several instruction sets, and the linker must not replace one copy by another.
#define PG_HD_INLINE PG_HD static inline
