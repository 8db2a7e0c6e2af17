# SPDX-License-Identifier: Apache-2.0
# PyTorch's side of ddp.lua: a step under DistributedDataParallel over gloo, and the same step of the same model alone.
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

MODELS = (("784-512-256-10", (784, 512, 256, 10)), ("4 x 1024", (1024,) * 5), ("20 x 64", (64,) * 21))
BATCHES, REPEATS = (32, 256), 20


def build(sizes):
    layers = []
    for i in range(1, len(sizes)):
        layers.append(nn.Linear(sizes[i - 1], sizes[i]))
        if i < len(sizes) - 1:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def timed(fn):
    for _ in range(5):
        fn()
    least = float("inf")
    for _ in range(REPEATS):
        dist.barrier()
        begin = time.perf_counter()
        fn()
        least = min(least, time.perf_counter() - begin)
    return least * 1e3


def stepper(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = nn.MSELoss()

    def step():
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def run(rank, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    for name, sizes in MODELS:
        for batch in BATCHES:
            x, y = torch.randn(batch, sizes[0]), torch.randn(batch, sizes[-1])
            alone = timed(stepper(build(sizes), x, y))
            together = timed(stepper(nn.parallel.DistributedDataParallel(build(sizes)), x, y))
            if rank == 0:
                print(f"{name}, {batch} rows\t{together:.4f}\t{alone:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run, args=(os.path.join(folder, "meeting"),), nprocs=2)
