# SPDX-License-Identifier: Apache-2.0
"""The items of models.lua for PyTorch, as its users write them to be fast: channels-last, fused optimizers."""
import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()

        def conv(a, c, kernel, step):
            return nn.Conv2d(a, c, kernel, step, (kernel - 1) // 2, bias=False)

        self.main = nn.Sequential(
            conv(inputs, width, 1, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            conv(width, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            conv(width, 4 * width, 1, 1), nn.BatchNorm2d(4 * width))
        self.short = None
        if stride != 1 or inputs != 4 * width:
            self.short = nn.Sequential(conv(inputs, 4 * width, 1, stride), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return self.main(x).add_(x if self.short is None else self.short(x)).relu_()


def resnet50(small):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate((1, 1, 1, 1) if small else (3, 4, 6, 3)):
        width = 64 * 2 ** stage
        for i in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if stage > 0 and i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.width, self.heads = width, heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (part.view(n, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, words, width, heads, positions, blocks):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1), device=ids.device))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def items(b):
    def train(name, unit, model, x, y, make, dtype=None, amount=None):
        model = model.to(b.device)
        optimizer = make(model.parameters())

        def loss(x, y):
            with torch.autocast(b.kind, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
                logits = model(x)
                return F.cross_entropy(logits.reshape(-1, logits.size(-1)), y)

        run = b.pure(loss)

        def step():
            optimizer.zero_grad(set_to_none=True)
            run(x, y).backward()
            optimizer.step()

        b.row(name, unit, step, amount)

    def adam(parameters):
        return torch.optim.Adam(parameters, lr=1e-3, fused=True)

    def resnet(name, batch, dtype=None):
        batch, side = b.size(batch), 32 if b.small else 224
        model = resnet50(b.small).to(memory_format=torch.channels_last)
        x = b.rand(batch, 3, side, side).to(memory_format=torch.channels_last)
        train(name, "1/s", model, x, b.classes(1000, batch),
              lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True), dtype, batch)

    def gpt2(name, batch, dtype=None):
        words, width, heads, positions = (211, 48, 3, 16) if b.small else (50257, 768, 12, 1024)
        batch = 2 if b.small else batch
        model = GPT2(words, width, heads, positions, 2 if b.small else 12)
        train(name, "1/s", model, b.classes(words, batch, positions), b.classes(words, batch * positions),
              lambda p: torch.optim.AdamW(p, lr=3e-4, fused=True), dtype, batch * positions)

    def small_models():
        train("tiny_step", "us", nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), b.rand(2, 4),
              b.classes(2, 2), adam)
        train("digits_step", "ms", nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.3), nn.Linear(256, 10)), b.rand(32, 1, 8, 8), b.classes(10, 32), adam)
        widths, layers = [b.size(784), b.size(2048), b.size(1024), b.size(512)], []
        for inputs, out in zip(widths, widths[1:]):
            layers += [nn.Linear(inputs, out), nn.BatchNorm1d(out), nn.ReLU(), nn.Dropout(0.2)]
        train("mlp_step", "ms", nn.Sequential(*layers, nn.Linear(widths[-1], 10)), b.rand(512, widths[0]),
              b.classes(10, 512), adam)

    return {"small_models": small_models,
            "resnet50": lambda: resnet("resnet50_bf16_images", 256, torch.bfloat16),
            "resnet50_f32": lambda: resnet("resnet50_f32_images", 64),
            "resnet50_tf32": lambda: resnet("resnet50_tf32_images", 64),
            "gpt2": lambda: gpt2("gpt2_bf16_tokens", 16, torch.bfloat16),
            "gpt2_f32": lambda: gpt2("gpt2_f32_tokens", 4),
            "gpt2_tf32": lambda: gpt2("gpt2_tf32_tokens", 4)}
