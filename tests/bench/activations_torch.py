# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of activations.lua: a line an item, its name and the milliseconds a call takes, the best of some."""
import time

import torch
import torch.nn.functional as F

torch.manual_seed(1)
x, d = torch.randn(1024, 2048), torch.randn(1024, 2048)
functions = {"relu": F.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": F.silu, "gelu": F.gelu,
             "mish": F.mish, "hardswish": F.hardswish, "selu": F.selu, "softplus": F.softplus}


def backward(f):
    leaf = x.clone().requires_grad_()
    out = f(leaf)
    return lambda: torch.autograd.grad(out, leaf, d, retain_graph=True)


items = {}
for name, f in functions.items():
    items[name] = lambda f=f: f(x)
    items[name + " back"] = backward(f)
items["norm"] = lambda: x.norm()
items["norm 1"] = lambda: x.norm(1)
items["addcmul"] = lambda: torch.addcmul(x, x, d)
items["lerp"] = lambda: torch.lerp(x, d, 0.25)
for name, run in items.items():
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < 0.3:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    print(f"{name}\t{best * 1e3:.4f}", flush=True)
