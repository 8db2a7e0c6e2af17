// SPDX-License-Identifier: Apache-2.0
// dtypes and reductions in MPI's terms.
#pragma once

#include <mpi.h>

#include "perigee/plugin.hpp"

namespace mpi {

// What elements travel as where nothing is computed. PG_E_NOT_SUPPORTED for sizes that no MPI type has.
MPI_Datatype carrier(uint32_t dtype);
// What they travel as where something is, and the operation: MPI's own, or one of ours.
using Combine = void (*)(const void* lower, const void* upper, void* out, uint64_t count);
struct Reduction {
  MPI_Datatype type;
  MPI_Op op;
  Combine combine;  // the same without MPI; `out` may be one of the two
};
Reduction reduction(uint32_t dtype, uint32_t kind);
// The mean of two ranks, halves of which are added, as they are by one operation: nothing is left to divide.
Reduction mean_of_two(uint32_t dtype);
void free_reductions();
// What makes a mean of a sum.
void divide(uint32_t dtype, void* data, uint64_t count, double by);

}  // namespace mpi
