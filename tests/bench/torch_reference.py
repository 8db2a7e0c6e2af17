# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of the benchmark: the items of hot_path.lua, measured and printed in the same way.

torch_reference.py ITEM THREADS"""
import gc
import os
import sys
import time

import torch
from torch import nn

BLAS = ("openblas", "blis", "mkl", "libblas")


def report(count, run):
    run(min(count, 2000))
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    run(count)
    gc.collect()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print("%.1f %.1f" % (wall / count * 1e9, cpu / count * 1e9))


def small(requires_grad):
    return torch.rand(4, requires_grad=requires_grad), torch.rand(4), torch.rand(4)


def add(requires_grad):
    a, b, _ = small(requires_grad)

    def run(count):
        for _ in range(count):
            a + b

    report(300000, run)


def chain(requires_grad):
    a, b, c = small(requires_grad)

    def run(count):
        for _ in range(count):
            ((a + b) * c).relu()

    report(100000, run)


def train(model, x, y, count, backward, update):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def run(steps):
        for _ in range(steps):
            if backward:
                optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x), y)
            if backward:
                loss.backward()
            if update:
                optimizer.step()

    report(count, run)


def tiny(backward, update):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    train(model, torch.rand(2, 4), torch.tensor([0, 1]), 4000, backward, update)


def digits():
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(256, 10))
    train(model, torch.rand(32, 1, 8, 8), torch.randint(0, 10, (32,)), 100, True, True)


def add_large():
    a, b = torch.rand(16777216), torch.rand(16777216)

    def run(count):
        for _ in range(count):
            a + b

    report(20, run)


def info():
    """Version and BLAS in use, on one line."""
    torch.rand(64, 64) @ torch.rand(64, 64)
    with open("/proc/self/maps") as maps:
        paths = {os.path.realpath(line.split()[-1]) for line in maps if any(name in line for name in BLAS)}
    print("PyTorch %s with %s" % (torch.__version__, ", ".join(sorted(paths)) or "its own BLAS"))


ITEMS = {
    "add": lambda: add(False), "add_recorded": lambda: add(True),
    "chain": lambda: chain(False), "chain_recorded": lambda: chain(True),
    "tiny_forward": lambda: tiny(False, False), "tiny_backward": lambda: tiny(True, False),
    "tiny_step": lambda: tiny(True, True),
    "digits_step": digits, "add_large": add_large, "info": info, "start": lambda: torch.rand(4) + torch.rand(4),
}

if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    ITEMS[sys.argv[1]]()
