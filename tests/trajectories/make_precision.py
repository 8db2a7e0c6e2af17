#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_precision.py: how far PyTorch's optimizers in float32 get from themselves in float64, into data/precision.json,
for tests/lua/optim/precision_test.lua. Written with PyTorch 2.15.

Gradients do not depend on the parameters, so that rounding does not grow: g[t, i] = sin(0.7 t + 1.3 i + 0.011 t i) scaled
by 10^((i mod 7) - 3) / 4 as float32; the first 256 of 512 parameters begin at 0, where every digit of a step is seen, the
others at sin(i). Of each half, after some steps: the median over elements of the difference over the way gone."""
import json
import math
import os

import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
N, STEPS, MARKS = 512, 1000, (1, 2, 10, 100, 1000)
torch.set_num_threads(1)

# name: (class, options, as both name them). PyTorch's Muon computes in bfloat16, whatever the parameters are.
OPTIMIZERS = {
    "sgd": ("SGD", dict(lr=0.01)),
    "sgd_momentum": ("SGD", dict(lr=0.01, momentum=0.9, weight_decay=1e-2)),
    "sgd_nesterov": ("SGD", dict(lr=0.01, momentum=0.9, nesterov=True)),
    "adam": ("Adam", dict(lr=1e-3)),
    "adam_decay": ("Adam", dict(lr=1e-3, weight_decay=1e-2)),
    "adam_amsgrad": ("Adam", dict(lr=1e-3, amsgrad=True)),
    "adamw": ("AdamW", dict(lr=1e-3, weight_decay=1e-2)),
    "adamax": ("Adamax", dict(lr=2e-3)),
    "nadam": ("NAdam", dict(lr=2e-3)),
    "radam": ("RAdam", dict(lr=1e-3)),
    "adagrad": ("Adagrad", dict(lr=1e-2)),
    "adadelta": ("Adadelta", dict(lr=1.0)),
    "rmsprop": ("RMSprop", dict(lr=1e-3)),
    "rmsprop_centered": ("RMSprop", dict(lr=1e-3, centered=True, momentum=0.9)),
    "rprop": ("Rprop", dict(lr=1e-2)),
    "adafactor": ("Adafactor", dict(lr=1e-2)),
}


def gradient(t):
    i = torch.arange(N, dtype=torch.float64)
    return (torch.sin(0.7 * t + 1.3 * i + 0.011 * t * i) * 10.0 ** (i % 7 - 3) / 4).float()


def start():
    i = torch.arange(N, dtype=torch.float64)
    return torch.where(i < N // 2, torch.zeros_like(i), torch.sin(i)).float()


def run(name, dtype):
    kind, options = OPTIMIZERS[name]
    shape = (2, 16, 16) if kind == "Adafactor" else (2, N // 2)
    halves = [h.clone().to(dtype).requires_grad_() for h in start().reshape(shape)]
    optimizer = getattr(torch.optim, kind)(halves, **options)
    seen = []
    for t in range(1, STEPS + 1):
        for h, g in zip(halves, gradient(t).to(dtype).reshape(shape)):
            h.grad = g.clone()
        optimizer.step()
        if t in MARKS:
            seen.append([h.detach().double().flatten().clone() for h in halves])
    return seen


def distances(name):
    narrow, wide = run(name, torch.float32), run(name, torch.float64)
    begin = start().double().reshape(2, N // 2)
    return [[((a[k] - b[k]) / (b[k] - begin[k])).abs().median().item() for k in range(2)] for a, b in zip(narrow, wide)]


def main():
    table = {name: {"class": kind, "options": options, "distances": distances(name)}
             for name, (kind, options) in OPTIMIZERS.items()}
    with open(os.path.join(HERE, "precision.json"), "w") as file:
        json.dump({"steps": MARKS, "optimizers": table}, file, indent=1)
        file.write("\n")
    for name, row in table.items():
        print("%-18s" % name, " ".join("%.1e/%.1e" % tuple(d) for d in row["distances"]))


main()
