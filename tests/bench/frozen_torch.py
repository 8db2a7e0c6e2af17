# SPDX-License-Identifier: Apache-2.0
# The rows of frozen.lua in PyTorch: "ROW<tab>microseconds eager<tab>microseconds compiled" a line.
import time

import torch
from torch import nn

torch.set_num_threads(1)

ROWS = [
    ((2, 4), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))),
    ((1, 256), nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))),
    ((1, 64), nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 64))),
    ((1, 16, 64), nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True)),
    (
        (1, 1, 16, 16),
        nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10)
        ),
    ),
]


def microseconds(call, x, count=200):
    begin = time.perf_counter()
    for _ in range(count):
        call(x)
    return (time.perf_counter() - begin) / count * 1e6


with torch.inference_mode():
    for row, (shape, model) in enumerate(ROWS, 1):
        model.eval()
        x, compiled = torch.randn(shape), torch.compile(model)
        for call in (model, compiled):
            for _ in range(5):
                call(x)
        times = [min(microseconds(call, x) for _ in range(5)) for call in (model, compiled)]
        print(f"{row}\t{times[0]:.2f}\t{times[1]:.2f}", flush=True)
