# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of the benchmark of whole models: the items of model_step.lua, measured and printed in the same way.

model_step_torch.py ITEM THREADS [DTYPE [MODE]]; MODE is eager, or compiled (torch.compile; of calls with frozen weights)"""
import gc
import sys
import time

import torch
from torch._inductor import config as inductor
from torch.nn import functional as F

import models_torch
import vision_torch

SECONDS = 1.5  # a measurement's length, unless one step takes longer
COMPILED = len(sys.argv) > 4 and sys.argv[4] == "compiled"


def precision():
    dtype = sys.argv[3] if len(sys.argv) > 3 else "float32"
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bfloat16")


def in_mode(fn):
    return torch.compile(fn) if COMPILED else fn


def train(model, x, y, optimizer):
    def loss_of():
        with precision():
            logits = model(x)
            return F.cross_entropy(logits.reshape(-1, logits.size(-1)), y)

    run = in_mode(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        run().backward()
        optimizer.step()

    return step


def infer(model, x):
    model.eval()
    run = in_mode(lambda: model(x))

    def step():
        with torch.no_grad() if COMPILED else torch.inference_mode(), precision():
            run()

    return step


def timed(step, least, long):
    gc.collect()
    wall, cpu, count = time.perf_counter(), time.process_time(), 0
    while count < least or time.perf_counter() - wall < long:
        step()
        count += 1
    gc.collect()
    return (time.perf_counter() - wall) / count, (time.process_time() - cpu) / count


def main():
    torch.set_num_threads(int(sys.argv[2]))
    if COMPILED:
        inductor.freezing = sys.argv[1].endswith("_infer")
    items = {**models_torch.items(train, infer), **vision_torch.items(train, infer)}
    step = items[sys.argv[1]]()
    if COMPILED:
        step()
    wall, cpu = timed(step, 1, 0)
    if wall < 10 * SECONDS:  # slower than that, the first step is what there is
        timed(step, 2, SECONDS / 2)
        wall, cpu = timed(step, 2, SECONDS)
    print("%.1f %.1f" % (wall * 1e9, cpu * 1e9))


main()
