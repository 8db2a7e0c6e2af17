# SPDX-License-Identifier: Apache-2.0
"""The items of models.lua for PyTorch, for model_step_torch.py: each as fast as its users write it: one product for the three projections of
attention, the attention and the optimizers it has as one kernel, gradients cleared by dropping them."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def mlp():
    layers, inputs = [], 784
    for width in (2048, 1024, 512):
        layers += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 10))


def attend(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(q.size(-1)))
    mask = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).triu(1)
    return F.softmax(scores.masked_fill(mask, -math.inf), dim=-1) @ v


def fused(optimizer, *arguments, **options):
    """The optimizer with one kernel a parameter, where this version has one for the processor."""
    try:
        return optimizer(*arguments, fused=True, **options)
    except (TypeError, RuntimeError):
        return optimizer(*arguments, **options)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(384), nn.LayerNorm(384)
        self.qkv, self.out = nn.Linear(384, 3 * 384), nn.Linear(384, 384)
        self.up, self.down = nn.Linear(384, 1536), nn.Linear(1536, 384)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (t.view(b, n, 6, 64).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(384, dim=2))
        y = attend(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, 384))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, 384), nn.Embedding(256, 384)
        self.blocks = nn.Sequential(*[Block() for _ in range(6)])
        self.norm, self.head = nn.LayerNorm(384), nn.Linear(384, 256, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        return self.head(self.norm(self.blocks(x)))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps, self.head = nn.LSTM(64, 256, num_layers=2, batch_first=True), nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.steps(x)[0][:, -1])


def tiny():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def items(train, infer):
    def mlp_step(batch):
        model = mlp()
        return train(model, torch.rand(batch, 784), torch.randint(0, 10, (batch,)),
                     fused(torch.optim.Adam, model.parameters(), lr=1e-3))

    def gpt_step():
        model = GPT()
        return train(model, torch.randint(0, 256, (8, 256)), torch.randint(0, 256, (8 * 256,)),
                     fused(torch.optim.AdamW, model.parameters(), lr=3e-4))

    def adam(model, x, classes):
        return train(model, x, torch.randint(0, classes, (x.size(0),)), fused(torch.optim.Adam, model.parameters(), lr=1e-3))

    def attention(backward):
        inputs = [torch.randn(8, 6, 256, 64, requires_grad=backward) for _ in range(3)]

        def run():
            y = attend(*inputs)
            if backward:
                torch.autograd.grad(y.sum(), inputs)

        return run

    return {
        "mlp_step": lambda: mlp_step(64), "mlp_step_512": lambda: mlp_step(512),
        "mlp_infer": lambda: infer(mlp(), torch.rand(1, 784)),
        "gpt_step": gpt_step, "gpt_infer": lambda: infer(GPT(), torch.randint(0, 256, (1, 256))),
        "lstm_step": lambda: adam(LSTM(), torch.randn(32, 100, 64), 10),
        "lstm_infer": lambda: infer(LSTM(), torch.randn(1, 100, 64)),
        "mlp_tiny_step": lambda: adam(tiny(), torch.randn(2, 4), 2), "mlp_tiny_infer": lambda: infer(tiny(), torch.randn(2, 4)),
        "attention": lambda: attention(False), "attention_backward": lambda: attention(True),
    }
