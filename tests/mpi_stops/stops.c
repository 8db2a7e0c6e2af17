/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of MPI at which a process stops, as if somebody had sent it SIGSTOP: the one that MPI_STOPS_AT names, in rank
 * 1, once the file MPI_STOPS_WHEN is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void pass(const char* name) {
  const char *at = getenv("MPI_STOPS_AT"), *when = getenv("MPI_STOPS_WHEN"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (at == NULL || when == NULL || rank == NULL || strcmp(at, name) != 0 || strcmp(rank, "1") != 0) return;
  if (access(when, F_OK) == 0) raise(SIGSTOP);
}

#define STOPS(name, parameters, arguments)                      \
  int MPI_##name parameters {                                   \
    int(*next) parameters = dlsym(RTLD_DEFAULT, "PMPI_" #name); \
    pass("MPI_" #name);                                         \
    return next == NULL ? MPI_ERR_INTERN : next arguments;      \
  }

STOPS(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made), (comm, group, tag, made))
STOPS(Comm_idup, (MPI_Comm comm, MPI_Comm* made, MPI_Request* request), (comm, made, request))
STOPS(Ibcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request),
      (data, count, type, root, comm, request))
STOPS(Iallreduce,
      (const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request),
      (from, to, count, type, op, comm, request))
