// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce called directly, for all_reduce.lua: a line a size, bytes and the least microseconds a call of some
// rounds, with a tab between. Run by mpirun -n 2. With the word "threads" MPI is told that a process has several of
// them, as an engine that any thread may call has to, which makes it lock what it shares.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  int provided = 0;
  const bool threads = argc > 1 && std::strcmp(argv[1], "threads") == 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int power = 10; power <= 26; power += 2) {
    const int bytes = 1 << power, n = bytes / 4, calls = std::max(1, std::min(20, (1 << 22) / bytes));
    const int rounds = std::max(22, std::min(400, (1 << 24) / bytes));
    const std::vector<float> from(static_cast<size_t>(n), 1);
    std::vector<float> to(static_cast<size_t>(n));
    double least = 1e9;
    for (int round = 0; round < rounds; round++) {
      MPI_Barrier(MPI_COMM_WORLD);
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; i++) MPI_Allreduce(from.data(), to.data(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
      if (round > 0) least = std::min(least, taken.count() / calls);
    }
    if (rank == 0) std::printf("%d\t%.3f\n", bytes, least);
  }
  MPI_Finalize();
  return 0;
}
