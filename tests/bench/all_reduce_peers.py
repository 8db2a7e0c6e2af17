# SPDX-License-Identifier: Apache-2.0
# all_reduce of other frameworks, for all_reduce.lua: PyTorch's over gloo ("gloo") and mpi4py's of NumPy arrays
# ("mpi4py"), both in place or into memory that is there. Run by mpirun -n 2; prints what all_reduce_direct.cpp does.
import os
import sys
import time


def gloo():
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(os.environ["OMPI_COMM_WORLD_RANK"]), world_size=2)

    def make(n):
        x = torch.ones(n)
        return lambda: dist.all_reduce(x)
    return dist.get_rank(), dist.barrier, make


def mpi4py():
    import numpy as np
    from mpi4py import MPI
    world = MPI.COMM_WORLD

    def make(n):
        x, y = np.ones(n, np.float32), np.empty(n, np.float32)
        return lambda: world.Allreduce(x, y)
    return world.rank, world.Barrier, make


rank, barrier, make = {"gloo": gloo, "mpi4py": mpi4py}[sys.argv[1]]()
for power in range(10, 27, 2):
    size = 1 << power
    run = make(size // 4)
    calls = max(1, min(20, (1 << 22) // size))
    rounds = max(22, min(400, (1 << 24) // size))
    least = float("inf")
    for turn in range(rounds):
        barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        taken = (time.perf_counter() - begin) / calls
        if turn > 0:
            least = min(least, taken)
    if rank == 0:
        print(f"{size}\t{least * 1e6:.3f}", flush=True)
