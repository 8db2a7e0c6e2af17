# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of recurrent.lua: a line an item, its name and the milliseconds of processor time of a training step or a
call on one thread, the best of some."""
import contextlib
import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
STEPS, WIDTH = 100, 256


def items(kind, batch):
    layer = getattr(nn, kind)(WIDTH, WIDTH, 2, batch_first=True)
    x, target = torch.randn(batch, STEPS, WIDTH), torch.randn(batch, STEPS, WIDTH)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        nn.functional.mse_loss(layer(x)[0].float(), target).backward()
        optimizer.step()

    def call():
        with torch.no_grad():
            layer(x)

    return {"step": step, "call": call}


pattern = sys.argv[1] if len(sys.argv) > 1 else ""
for kind in ["LSTM", "GRU", "RNN"]:
    for batch in [32, 1]:
        for what, run in items(kind, batch).items():
            for dtype in ["float32", "bfloat16"]:
                name = "%s 2x256, %s, batch %d, %s" % (kind, what, batch, dtype)
                if pattern not in name:
                    continue
                cast = torch.autocast("cpu", torch.bfloat16) if dtype == "bfloat16" else contextlib.nullcontext()
                try:
                    with cast:
                        run()
                except RuntimeError:  # processors without its arithmetic
                    continue
                best, begin = float("inf"), time.process_time()
                while time.process_time() - begin < 1:
                    start = time.process_time()
                    with cast:
                        run()
                    best = min(best, time.process_time() - start)
                print("%s\t%.4f" % (name, best * 1e3), flush=True)
