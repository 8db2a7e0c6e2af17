# SPDX-License-Identifier: Apache-2.0
"""The items of norms.lua for PyTorch."""
import torch
from torch.nn import functional as F


def items(b):
    def without_gradient(run):
        with torch.no_grad():
            run()

    def layer_norm(suffix, dtype, each):
        rows, width = b.size(16384), b.size(768)
        x, w, bias = (b.rand(*shape, dtype=dtype, grad=True) for shape in ((rows, width), (width,), (width,)))
        dy, size = b.rand(rows, width, dtype=dtype), rows * width * each
        norm = b.pure(lambda x, w, bias: F.layer_norm(x, (width,), w, bias))
        b.row("layer_norm" + suffix, "GB/s", lambda: without_gradient(lambda: norm(x, w, bias)), 2 * size)
        b.row("layer_norm" + suffix + "_backward", "GB/s",
              lambda: torch.autograd.grad(norm(x, w, bias), (x, w, bias), dy), 5 * size)

    def layer_norms():
        layer_norm("_f32", torch.float32, 4)
        layer_norm("_bf16", torch.bfloat16, 2)

    def norm_pool(suffix, dtype):
        n, c, side = b.size(64), 64, b.side(56)
        x, dy = b.rand(n, c, side, side, dtype=dtype, grad=True), b.rand(n, c, side, side, dtype=dtype)
        weight, bias, mean, var = b.rand(c, grad=True), b.rand(c, grad=True), b.rand(c), b.rand(c)
        norm = b.pure(lambda x, weight, bias: F.batch_norm(x, mean, var, weight, bias, training=True))
        most, average = b.pure(lambda x: F.max_pool2d(x, 3, 2, 1)), b.pure(lambda x: F.avg_pool2d(x, 2))
        b.row("batch_norm" + suffix, "ms", lambda: without_gradient(lambda: norm(x, weight, bias)))
        b.row("batch_norm" + suffix + "_backward", "ms",
              lambda: torch.autograd.grad(norm(x, weight, bias), (x, weight, bias), dy))
        b.row("max_pool_3x3" + suffix, "ms", lambda: without_gradient(lambda: most(x)))
        pooled = b.rand(n, c, side // 2, side // 2, dtype=dtype)
        b.row("avg_pool_2x2" + suffix, "ms", lambda: without_gradient(lambda: average(x)))
        b.row("avg_pool_2x2" + suffix + "_backward", "ms", lambda: torch.autograd.grad(average(x), x, pooled))

    def norms_and_pooling():
        norm_pool("_f32", torch.float32)
        norm_pool("_bf16", torch.bfloat16)

    return {"layer_norm": layer_norms, "norm_pool": norms_and_pooling}
