# SPDX-License-Identifier: Apache-2.0
"""The items of products.lua for PyTorch."""
import torch
from torch.nn import functional as F

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


def items(b):
    product = b.pure(lambda x, y: x @ y)
    convolve = b.pure(lambda x, w: F.conv2d(x, w, padding=1))
    attend = b.pure(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def without_gradient(run):
        with torch.no_grad():
            run()

    def matmul(name, n, dtype):
        n = b.size(n)
        x, y = b.randn(n, n, dtype=dtype), b.randn(n, n, dtype=dtype)
        b.row(name, "TFLOP/s", lambda: product(x, y), 2 * n ** 3)

    def matmuls():
        matmul("matmul_bf16_8192", 8192, BF16)
        matmul("matmul_f16_8192", 8192, F16)
        matmul("matmul_bf16_1024", 1024, BF16)
        matmul("matmul_f32_4096", 4096, F32)

    def conv2d(name, dtype):
        n, c, side = b.size(64), 64, b.side(56)
        x, w = b.randn(n, c, side, side, dtype=dtype, grad=True), b.randn(c, c, 3, 3, dtype=dtype, grad=True)
        dy, operations = b.rand(n, c, side, side, dtype=dtype), 2 * 9 * n * c * c * side * side
        b.row(name, "TFLOP/s", lambda: without_gradient(lambda: convolve(x, w)), operations)
        b.row(name + "_backward", "TFLOP/s", lambda: torch.autograd.grad(convolve(x, w), (x, w), dy), 3 * operations)

    def convolutions():
        conv2d("conv2d_f32", F32)
        conv2d("conv2d_bf16", BF16)

    def attention(suffix, dtype):
        shape = (1 if b.small else 8, 12, 16 if b.small else 1024, 64)
        q, k, v = (b.randn(*shape, dtype=dtype, grad=True) for _ in range(3))
        dy, operations = b.rand(*shape, dtype=dtype), 2 * shape[0] * shape[1] * shape[2] ** 2 * shape[3]
        b.row("attention" + suffix, "TFLOP/s", lambda: without_gradient(lambda: attend(q, k, v)), operations)
        b.row("attention" + suffix + "_backward", "TFLOP/s", lambda: torch.autograd.grad(attend(q, k, v), (q, k, v), dy),
              3.5 * operations)

    def attentions():
        attention("_bf16", BF16)
        attention("_f32", F32)

    return {"matmul": matmuls, "matmul_tf32": lambda: matmul("matmul_tf32_4096", 4096, F32),
            "convolution": convolutions, "convolution_tf32": lambda: conv2d("conv2d_tf32", F32),
            "attention": attentions}
