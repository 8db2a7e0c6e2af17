# SPDX-License-Identifier: Apache-2.0
# PyTorch's side of transposed.lua: a line an item, its name and milliseconds of processor time, the best of some.
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(1)
N, M = 2000, 1500


def pair(dtype):
    return [(torch.rand(N, M) * 9).to(dtype).t() for _ in range(2)]


(x, y), (hx, hy), (wx, wy) = pair(torch.float32), pair(torch.bfloat16), pair(torch.int32)
image = torch.rand(8, 64, 56, 56).contiguous(memory_format=torch.channels_last)
bias = torch.rand(64, 1, 1)
items = {
    "x + y": lambda: x + y,
    "x + y, bfloat16": lambda: hx + hy,
    "x + y, int32": lambda: wx + wy,
    "relu": lambda: x.relu(),
    "exp": lambda: x.exp(),
    "x * 2 + 1": lambda: x * 2 + 1,
    "where": lambda: torch.where(x > y, x, y),
    "lerp": lambda: x.lerp(y, 0.5),
    "cast to bfloat16": lambda: x.to(torch.bfloat16),
    "add_": lambda: x.add_(y),
    "image + bias": lambda: image + bias,
    "relu of an image": lambda: image.relu(),
    "x.sum()": lambda: x.sum(),
    "x.sum(1)": lambda: x.sum(0),
    "x.sum(2)": lambda: x.sum(1),
    "image.sum({1, 3, 4})": lambda: image.sum((0, 2, 3)),
}
for name, run in items.items():
    run()
    best, begin = float("inf"), time.process_time()
    while time.process_time() - begin < 0.1:
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    print(f"{name}\t{best * 1e3:.5f}", flush=True)
