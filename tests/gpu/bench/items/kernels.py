# SPDX-License-Identifier: Apache-2.0
"""The items of kernels.lua for PyTorch."""
import torch
from torch.nn import functional as F


def items(b):
    def both_ways(name, size, x, function):
        forward = b.pure(function)
        dy = b.rand(*x.shape, dtype=x.dtype)

        def alone():
            with torch.no_grad():
                forward(x)

        b.row(name, "GB/s", alone, 2 * size)
        b.row(name + "_backward", "GB/s", lambda: torch.autograd.grad(forward(x), x, dy), 5 * size)

    def launch():
        x, y, recorded = b.rand(4), b.rand(4), b.rand(4, grad=True)
        b.launches("launch_add", lambda: x + y)
        b.launches("launch_add_recorded", lambda: recorded + y)

    def copies():
        n = b.size(2 ** 26)
        here = torch.rand(n)

        def copied(x, to):
            return x.clone() if x.device == torch.device(to) else x.to(to)

        there = copied(here, b.device)
        b.row("copy_to_device", "GB/s", lambda: copied(here, b.device), 4 * n, pure=False)
        b.row("copy_to_host", "GB/s", lambda: copied(there, "cpu"), 4 * n, pure=False)
        b.row("copy_on_device", "GB/s", there.clone, 8 * n, pure=False)
        b.row("copy_transposed", "GB/s", lambda: there.reshape(-1, 4).t().contiguous(), 8 * n, pure=False)
        side = int(n ** 0.5)
        square = b.rand(side, side)
        b.row("copy_square_transposed", "GB/s", lambda: square.t().contiguous(), 8 * side * side, pure=False)
        if b.cuda:
            pinned = torch.empty(n, pin_memory=True)
            b.row("copy_to_device_pinned", "GB/s", lambda: there.copy_(pinned, non_blocking=True), 4 * n, pure=False)
            b.row("copy_to_host_pinned", "GB/s", lambda: pinned.copy_(there, non_blocking=True), 4 * n, pure=False)

    def elementwise():
        n = b.size(2 ** 26)
        x, y = b.rand(n), b.rand(n)
        add, gelu, relu = b.pure(lambda v, w: v + w), b.pure(lambda v: F.gelu(v)), b.pure(lambda v: v.relu())
        b.row("add_64m", "GB/s", lambda: add(x, y), 12 * n)
        b.row("gelu_64m", "GB/s", lambda: gelu(x), 8 * n)
        b.row("relu_64m", "GB/s", lambda: relu(x), 8 * n)
        lines, line = x.reshape(-1, 4), b.rand(4)
        b.row("add_row_64m", "GB/s", lambda: add(lines, line), 8 * n)
        rand = b.pure(lambda: torch.rand(n, device=b.device))
        b.row("rand_64m", "GB/s", rand, 4 * n)
        half = x.to(torch.bfloat16)
        b.row("gelu_bf16_64m", "GB/s", lambda: gelu(half), 4 * n)
        chain = b.pure(lambda v: (v * 2 + 1).relu() * v)
        b.row("chain_bf16_64m", "GB/s", lambda: chain(half), 4 * n)

    def reductions():
        side = b.size(8192)
        x, size = b.rand(side, side), 4 * side * side
        for name, function in (("sum_all", lambda v: v.sum()), ("sum_rows", lambda v: v.sum(1)),
                               ("sum_columns", lambda v: v.sum(0)), ("amax_rows", lambda v: v.amax(1)),
                               ("var_rows", lambda v: v.var(1))):
            run = b.pure(function)
            b.row(name, "GB/s", lambda run=run: run(x), size)

    def softmax():
        lines, width = b.size(4096), 257 if b.small else 50257
        for dtype, suffix, each in ((torch.float32, "_f32", 4), (torch.bfloat16, "_bf16", 2)):
            x, size = b.rand(lines, width, dtype=dtype, grad=True), lines * width * each
            both_ways("softmax_50257" + suffix, size, x, lambda v: v.softmax(1))
            labels = b.classes(width, lines)
            loss = b.pure(F.cross_entropy)
            b.row("cross_entropy_50257" + suffix, "GB/s",
                  lambda x=x, labels=labels: torch.autograd.grad(loss(x, labels), x), 3 * size)

    def adam():
        n = b.size(25e6) // 10
        parts = [b.rand(n, grad=True) for _ in range(10)]
        for part in parts:
            part.grad = b.rand(n)
        optimizer = torch.optim.Adam(parts, lr=1e-3, fused=True)
        b.row("adam_25m", "GB/s", optimizer.step, 280 * n, pure=False)

    return {"launch": launch, "copies": copies, "elementwise": elementwise, "reductions": reductions,
            "softmax": softmax, "adam": adam}
