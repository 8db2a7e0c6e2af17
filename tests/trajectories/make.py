#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make.py: writes what PyTorch (Debian's python3-torch) does into data/, for tests/lua/optim/trajectory_test.lua.

  MODEL.safetensors       initial weights and batches of a model, numbers that float32 holds
  losses.safetensors      MODEL.OPTIMIZER.DTYPE: the losses of 100 steps
  optimizers.safetensors  OPTIMIZER.NUMBER: parameters after some of 30 steps in float64, on a function of six numbers
  large.safetensors       the same of optimizers that look at whole matrices, on a function of three tensors
  settings.json           which optimizers with which options; rates of schedules, a number a step
"""
import json
import math
import os
import struct

import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler as S

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
STEPS = 100
torch.set_num_threads(1)


def save(name, arrays):
    """The format of https://huggingface.co/docs/safetensors: a length, a JSON header, the data."""
    kinds = {"float32": "F32", "float64": "F64", "int64": "I64"}
    header, blobs, at = {}, [], 0
    for key, array in arrays.items():
        blob = np.ascontiguousarray(array).tobytes()
        ends = [at, at + len(blob)]
        header[key] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape), "data_offsets": ends}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, in numpy: PyTorch has none."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
            for p in group["params"]:
                x, g = p.numpy(), p.grad.numpy()
                m = self.state[p].setdefault("m", np.zeros_like(x))
                kind = x.dtype.type
                x *= kind(1 - lr * decay)
                x -= kind(lr) * np.sign(kind(beta1) * m + kind(1 - beta1) * g)
                m *= kind(beta2)
                m += kind(1 - beta2) * g


class NAdam(torch.optim.Optimizer):
    """Dozat 2016. PyTorch 1.13 has mu_t once too often in the second term, and keeps the product in float32."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, decay=momentum_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
            for p in group["params"]:
                x, s = p.numpy(), self.state[p]
                g = p.grad.numpy() + group["weight_decay"] * x
                t = s["t"] = s.get("t", 0) + 1
                mu, after = (beta1 * (1 - 0.5 * 0.96 ** (k * group["decay"])) for k in (t, t + 1))
                product = s["product"] = s.get("product", 1.0) * mu
                m = s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
                v = s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
                root = np.sqrt(v / (1 - beta2**t)) + eps
                x -= lr * ((1 - mu) / (1 - product) * g + after / (1 - product * after) * m) / root


# ---- models: Perigee's test builds the same ones, with the same names ----


class Block(nn.Module):
    """A transformer block before its input's norm, and a classifier of the mean over positions."""

    def __init__(self, width=16, heads=2, classes=4):
        super().__init__()
        self.heads, self.width = heads, width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        n, t, w = x.shape
        h = self.norm1(x)

        def split(y):
            return y.reshape(n, t, self.heads, w // self.heads).transpose(1, 2)

        q, k, v = split(self.q(h)), split(self.k(h)), split(self.v(h))
        scores = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(w // self.heads), -1)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(n, t, w))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(1))


def mlp():
    return nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 16), nn.Tanh(), nn.Linear(16, 4))


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 4))


MODELS = {"mlp": (mlp, (12,)), "convnet": (convnet, (1, 8, 8)), "transformer": (Block, (6, 16))}
BATCHES, SIZE = 5, 16
OPTIMIZERS = {
    "sgd": ["SGD", dict(lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-3)],
    "adam": ["Adam", dict(lr=2e-3, betas=[0.9, 0.999])],
    "adamw": ["AdamW", dict(lr=2e-3, betas=[0.9, 0.999], weight_decay=0.05)],
    "rmsprop": ["RMSprop", dict(lr=1e-3, alpha=0.95, momentum=0.5, centered=True)],
    "lion": ["Lion", dict(lr=3e-4, betas=[0.9, 0.99], weight_decay=0.1)],
}


def construct(name, params, options):
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    return {"Lion": Lion, "NAdam": NAdam}.get(name, getattr(torch.optim, name, None))(params, **options)


def trajectories():
    losses = {}
    for name, (build, shape) in MODELS.items():
        weights = {k: v.clone() for k, v in build().state_dict().items()}
        x = torch.randn(BATCHES, SIZE, *shape)
        y = torch.randint(0, 4, (BATCHES, SIZE))
        kept = {k: v.numpy() for k, v in weights.items() if v.is_floating_point()}
        save(name + ".safetensors", {**kept, "batches.x": x.numpy(), "batches.y": y.numpy()})
        for optimizer, (kind, options) in OPTIMIZERS.items():
            for dtype in (torch.float32, torch.float64):
                model = build()
                model.load_state_dict(weights)
                model.to(dtype)
                opt = construct(kind, model.parameters(), options)
                out = []
                for step in range(STEPS):
                    b = step % BATCHES
                    opt.zero_grad()
                    loss = nn.functional.cross_entropy(model(x[b].to(dtype)), y[b])
                    loss.backward()
                    opt.step()
                    out.append(loss.item())
                losses["%s.%s.%s" % (name, optimizer, str(dtype).split(".")[1])] = np.array(out)
                print(name, optimizer, dtype, out[0], out[-1])
    save("losses.safetensors", losses)


# ---- every optimizer of PyTorch, on a small function ----

VARIANTS = [
    ["SGD", dict(lr=0.05)],
    ["SGD", dict(lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.1)],
    ["SGD", dict(lr=0.02, momentum=0.9, nesterov=True)],
    ["SGD", dict(lr=0.01, momentum=0.5, maximize=True)],
    ["Adam", dict(lr=0.05, amsgrad=True, weight_decay=0.1)],
    ["Adam", dict(lr=0.05, betas=[0.8, 0.95], eps=1e-3)],
    ["AdamW", dict(lr=0.05, weight_decay=0.2)],
    ["AdamW", dict(lr=0.05, amsgrad=True, maximize=True)],
    ["RMSprop", dict(lr=0.02)],
    ["RMSprop", dict(lr=0.02, alpha=0.9, centered=True, weight_decay=0.1, eps=1e-4)],
    ["RMSprop", dict(lr=0.01, momentum=0.8)],
    ["Adagrad", dict(lr=0.3, lr_decay=0.1, weight_decay=0.05, initial_accumulator_value=0.1)],
    ["Adadelta", dict(lr=1.0, rho=0.8, weight_decay=0.05)],
    ["Adamax", dict(lr=0.05, weight_decay=0.1)],
    ["NAdam", dict(lr=0.05, weight_decay=0.1, momentum_decay=0.02)],
    ["RAdam", dict(lr=0.05, weight_decay=0.1)],
    ["RAdam", dict(lr=0.05, betas=[0.9, 0.95])],
    ["Rprop", dict(lr=0.05)],
    ["Rprop", dict(lr=0.05, etas=[0.4, 1.5], step_sizes=[1e-3, 0.2])],
    ["Lion", dict(lr=0.02, weight_decay=0.1)],
]
SHOWN = [1, 2, 3, 5, 10, 30]


def function(a, b):
    scale = torch.tensor([1.0, 3.0, 0.2], dtype=torch.float64)
    return (scale * a * a).sum() + torch.sin(3 * b).sum() + (b * b).sum() + (a[0] * b[1, 0])


def optimizers():
    arrays = {}
    for number, (name, options) in enumerate(VARIANTS):
        a = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
        b = torch.tensor([[0.3], [-1.2], [2.0]], dtype=torch.float64, requires_grad=True)
        opt, rows = construct(name, [a, b], options), []
        for step in range(1, max(SHOWN) + 1):
            opt.zero_grad()
            function(a, b).backward()
            opt.step()
            if step in SHOWN:
                rows.append(torch.cat([a.detach(), b.detach().flatten()]).numpy().copy())
        arrays["%s.%d" % (name, number + 1)] = np.stack(rows)
    save("optimizers.safetensors", arrays)


# ---- optimizers of matrices, by their papers' formulas: PyTorch 1.13 has LBFGS alone ----


def norm(x):
    return math.sqrt((x * x).sum())


def ratio(a, b):
    return a / b if a > 0 and b > 0 else 1.0


def lamb(x, g, s, t, lr, betas, weight_decay, eps):
    m = s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    v = s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
    r = m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps) + weight_decay * x
    x -= lr * ratio(norm(x), norm(r)) * r


def lars(x, g, s, t, lr, momentum, weight_decay, trust, eps, nesterov):
    rate = trust * norm(x) / (norm(g) + weight_decay * norm(x) + eps) if norm(x) > 0 and norm(g) > 0 else 1.0
    g = rate * (g + weight_decay * x)
    b = s["b"] = momentum * s["b"] + g if "b" in s else g
    x -= lr * (g + momentum * b if nesterov else b)


def adafactor(x, g, s, t, lr, beta2_decay, eps, d, weight_decay):
    part, rate, least = t**beta2_decay, min(lr, 1 / math.sqrt(t)), 2.0**-52
    alpha = max(eps, norm(x) / math.sqrt(x.size)) * rate
    if x.ndim > 1:
        row = s["row"] = s.get("row", 0) * (1 - part) + part * (g * g).mean(-1, keepdims=True)
        col = s["col"] = s.get("col", 0) * (1 - part) + part * (g * g).mean(-2, keepdims=True)
        v = row @ col / max(row.mean(-2, keepdims=True).item(), least)
    else:
        v = s["v"] = s.get("v", 0) * (1 - part) + part * g * g
    u = g / np.sqrt(np.maximum(v, least * least))
    x *= 1 - lr * weight_decay
    x -= alpha / max(1, norm(u) / (math.sqrt(u.size) * d)) * u


def muon(x, g, s, t, lr, momentum, nesterov, weight_decay, ns_steps):
    b = s["b"] = momentum * s.get("b", 0) + (1 - momentum) * g
    u = g + (b - g) * momentum if nesterov else b
    u = u.T if u.shape[0] > u.shape[1] else u
    u = u / max(norm(u), 1e-7)
    for _ in range(ns_steps):
        gram = u @ u.T
        u = 3.4445 * u + (-4.7750 * gram + 2.0315 * gram @ gram) @ u
    u = u.T if x.shape[0] > x.shape[1] else u
    x *= 1 - lr * weight_decay
    x -= lr * math.sqrt(max(1, x.shape[0] / x.shape[1])) * u


LARGE = [
    ["LAMB", lamb, dict(lr=0.02, betas=[0.9, 0.99], weight_decay=0.1, eps=1e-6)],
    ["LARS", lars, dict(lr=0.5, momentum=0.9, weight_decay=0.01, trust=0.02, eps=1e-8, nesterov=False)],
    ["LARS", lars, dict(lr=0.5, momentum=0.5, weight_decay=0.0, trust=0.1, eps=1e-8, nesterov=True)],
    ["Adafactor", adafactor, dict(lr=0.05, beta2_decay=-0.8, eps=1e-3, d=1.0, weight_decay=0.1)],
    ["Muon", muon, dict(lr=0.02, momentum=0.95, nesterov=True, weight_decay=0.1, ns_steps=5)],
    ["LBFGS", None, dict(lr=0.5, max_iter=4, history_size=3)],
]


def matrices(vector):
    params = [torch.tensor([[0.5, -0.3], [1.2, 0.8], [-0.7, 0.1]], dtype=torch.float64, requires_grad=True),
              torch.tensor([[0.9, -1.1, 0.2, 0.4], [0.3, 0.6, -0.5, 1.0]], dtype=torch.float64, requires_grad=True)]
    if vector:
        params.append(torch.tensor([0.2, -0.4, 0.6, 1.0], dtype=torch.float64, requires_grad=True))
    return params


def matrix_loss(params):
    y = params[0] @ params[1]
    if len(params) > 2:
        y = y + params[2]
    return torch.sin(y).sum() + 0.1 * sum((p * p).sum() for p in params)


def large():
    arrays = {}
    for number, (name, rule, options) in enumerate(LARGE):
        params, states, rows = matrices(name != "Muon"), {}, []
        opt = torch.optim.LBFGS(params, **options) if name == "LBFGS" else None
        for t in range(1, max(SHOWN) + 1):

            def closure():
                for p in params:
                    p.grad = None
                loss = matrix_loss(params)
                loss.backward()
                return loss

            if opt:
                opt.step(closure)
            else:
                closure()
                for i, p in enumerate(params):
                    rule(p.detach().numpy(), p.grad.numpy(), states.setdefault(i, {}), t, **options)
            if t in SHOWN:
                rows.append(torch.cat([p.detach().flatten() for p in params]).numpy().copy())
        arrays["%s.%d" % (name, number + 1)] = np.stack(rows)
    save("large.safetensors", arrays)


# ---- schedules ----

METRICS = [10, 8, 8, 8.1, 7.9999, 8, 8, 6, 6.5, 6.5, 6.5, 6.5, 6.4, 6.4, 6.4, 6.4, 6.4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]


def rates(make, metrics=False, momentum=False):
    p = nn.Parameter(torch.zeros(1))
    opt = torch.optim.SGD([dict(params=[p]), dict(params=[nn.Parameter(torch.zeros(1))], lr=0.1)], lr=0.5, momentum=0.9)
    schedule, out = make(opt), []
    for i in range(30):
        out.append([g["lr"] for g in opt.param_groups] + ([opt.param_groups[0]["momentum"]] if momentum else []))
        opt.step()
        if i < 29:
            schedule.step(*([METRICS[i]] if metrics else []))
    return out


def schedules():
    def chain(opt):
        return S.SequentialLR(opt, [S.LinearLR(opt, 0.1, 1.0, 5), S.CosineAnnealingLR(opt, 15, 0.01),
                                    S.ExponentialLR(opt, 0.9)], [5, 18])

    return {
        "Step": [dict(step_size=4, gamma=0.5), rates(lambda o: S.StepLR(o, 4, 0.5))],
        "MultiStep": [dict(milestones=[3, 4, 20], gamma=0.3), rates(lambda o: S.MultiStepLR(o, [3, 4, 20], 0.3))],
        "Exponential": [dict(gamma=0.9), rates(lambda o: S.ExponentialLR(o, 0.9))],
        "Polynomial": [dict(total_iters=20, power=2), rates(lambda o: S.PolynomialLR(o, 20, 2))],
        "Cosine": [dict(t_max=29, eta_min=0.01), rates(lambda o: S.CosineAnnealingLR(o, 29, 0.01))],
        "CosineRestarts": [dict(t_0=4, t_mult=2, eta_min=0.01),
                           rates(lambda o: S.CosineAnnealingWarmRestarts(o, 4, 2, 0.01))],
        "CosineRestarts.1": [dict(t_0=7), rates(lambda o: S.CosineAnnealingWarmRestarts(o, 7))],
        "Warmup": [dict(total_iters=8, start_factor=0.25, end_factor=0.9), rates(lambda o: S.LinearLR(o, 0.25, 0.9, 8))],
        "OneCycle": [dict(max_lr=[1.0, 2.0], total_steps=30),
                     rates(lambda o: S.OneCycleLR(o, [1.0, 2.0], 30), momentum=True)],
        "OneCycle.1": [dict(max_lr=1.0, total_steps=30, pct_start=0.4, anneal_strategy="linear", three_phase=True,
                            div_factor=10, final_div_factor=100),
                       rates(lambda o: S.OneCycleLR(o, 1.0, 30, pct_start=0.4, anneal_strategy="linear", three_phase=True,
                                                    div_factor=10, final_div_factor=100), momentum=True)],
        "Plateau": [dict(patience=2, factor=0.5, cooldown=1, min_lr=0.01),
                    rates(lambda o: S.ReduceLROnPlateau(o, patience=2, factor=0.5, cooldown=1, min_lr=0.01), True)],
        "Plateau.1": [dict(mode="max", patience=1, threshold=0.2, threshold_mode="abs"),
                      rates(lambda o: S.ReduceLROnPlateau(o, "max", patience=1, threshold=0.2, threshold_mode="abs"), True)],
        "Chain": [dict(), rates(chain)],
        "Chain.1": [dict(), rates(lambda o: S.ChainedScheduler([S.LinearLR(o, 0.1, 1.0, 5), S.ExponentialLR(o, 0.9)]))],
    }


if __name__ == "__main__":
    torch.manual_seed(0)
    trajectories()
    optimizers()
    large()
    with open(os.path.join(HERE, "settings.json"), "w") as file:
        json.dump({"models": OPTIMIZERS, "variants": VARIANTS, "large": [[n, o] for n, _, o in LARGE], "shown": SHOWN, "metrics": METRICS,
                   "schedules": schedules(), "torch": torch.__version__}, file, indent=None)
