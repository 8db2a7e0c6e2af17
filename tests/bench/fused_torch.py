# SPDX-License-Identifier: Apache-2.0
# The rows of fused.lua by torch.compile: "NAME<tab>milliseconds" a line. Arguments: elements, threads.
import sys
import time

import torch

count, threads = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)


def ten(x):
    x = ((x * 1.5 + 0.25).relu() - 0.125) * 0.75
    return -(x.abs().clamp_max(4).clamp_min(0.01) + 1) * 0.5


def two(x, y):
    return (x + y).relu(), (x - y).abs() * 0.5


def costly(x):
    return (x * 0.5).tanh() * (x.sigmoid() + 1)


rows = [
    ("ten cheap operators, float32", ten, torch.float32, 1),
    ("ten cheap operators, bfloat16", ten, torch.bfloat16, 1),
    ("two inputs, two results, float32", two, torch.float32, 2),
    ("tanh and sigmoid, float32", costly, torch.float32, 1),
]
for name, fn, dtype, inputs in rows:
    args = [torch.randn(count).to(dtype) for _ in range(inputs)]
    compiled = torch.compile(fn)
    for _ in range(3):
        compiled(*args)
    times = []
    for _ in range(11):
        begin = time.process_time()
        compiled(*args)
        times.append((time.process_time() - begin) * 1e3)
    print(f"{name}\t{sorted(times)[5]:.3f}", flush=True)
