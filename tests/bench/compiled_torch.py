# SPDX-License-Identifier: Apache-2.0
# The rows of compiled.lua in PyTorch, eager and by torch.compile: "NAME<tab>microseconds<tab>microseconds" a line.
import time

import torch
from torch import nn

torch.set_num_threads(1)


def training(model, optimizer, loss_of):
    def step():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp(batch, width, wrap):
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    x, y = torch.randn(batch, width), torch.randint(0, 10, (batch,))
    run = wrap(lambda: nn.functional.cross_entropy(model(x), y))
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-3, fused=True), lambda _: run())


def transformer(batch, length, width, depth, wrap):
    layers = [nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True) for _ in range(depth)]
    model = nn.Sequential(nn.Embedding(64, width), *layers, nn.Linear(width, 64))
    x, y = torch.randint(0, 64, (batch, length)), torch.randint(0, 64, (batch * length,))
    run = wrap(lambda: nn.functional.cross_entropy(model(x).reshape(batch * length, 64), y))
    return training(model, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True), lambda _: run())


def call(batch, width, wrap):
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width))
    x = torch.randn(batch, width)
    run = wrap(lambda: model(x))

    def step():
        with torch.no_grad():
            return run()

    return step


def measure(fn):
    for _ in range(10):
        fn()
    times = []
    for _ in range(7):
        count, begin = 0, time.process_time()
        while time.process_time() - begin < 0.1:
            fn()
            count += 1
        times.append((time.process_time() - begin) / count * 1e6)
    return sorted(times)[3]


ROWS = {
    "tiny MLP step": lambda wrap: mlp(8, 16, wrap),
    "MLP step": lambda wrap: mlp(64, 256, wrap),
    "transformer step": lambda wrap: transformer(4, 32, 64, 2, wrap),
    "call of a block": lambda wrap: call(1, 64, wrap),
}
for name, make in ROWS.items():
    eager = measure(make(lambda f: f))
    try:
        compiled = f"{measure(make(torch.compile)):.1f}"
    except Exception:
        compiled = "failed"
    print(f"{name}\t{eager:.1f}\t{compiled}", flush=True)
