# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of the GPU benchmark: the items of bench.lua, measured and printed in the same way.

bench.py DEVICE full|small [ITEM...]. float32 is float32: no TF32, as in Perigee."""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda:0"
SMALL = sys.argv[2:3] == ["small"]
BLOCKS, SECONDS = (2, 0) if SMALL else (9, 0.03)
CUDA = DEVICE.startswith("cuda")


def size(n):
    return max(4, int(n) // 64) if SMALL else int(n)


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


def measure(run):
    for _ in range(3):
        run()
    synchronize()
    start = time.perf_counter()
    run()
    synchronize()
    count = max(1, min(1000, int(SECONDS / (time.perf_counter() - start))))
    values = []
    for _ in range(BLOCKS):
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        synchronize()
        values.append((time.perf_counter() - start) / count)
    return values


def show(name, unit, better, values):
    print(name, unit, better, *("%.4g" % v for v in values), flush=True)


def bandwidth(name, count, run):
    show(name, "GB/s", "more", [count / s / 1e9 for s in measure(run)])


def timed(name, unit, run):
    scale = {"ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    show(name, unit, "less", [s * scale for s in measure(run)])


def launches(name, run):
    for _ in range(1000):
        run()
    values, burst = [], 200
    for _ in range(BLOCKS):
        synchronize()
        start = time.perf_counter()
        for _ in range(burst):
            run()
        values.append((time.perf_counter() - start) / burst * 1e9)
    show(name, "ns", "less", values)


def rand(*shape, dtype=torch.float32, grad=False):
    return torch.rand(*shape, device=DEVICE).to(dtype).requires_grad_(grad)


def launch_add():
    a, b = rand(4), rand(4)
    launches("launch_add", lambda: a + b)


def launch_add_recorded():
    a, b = rand(4, grad=True), rand(4)
    launches("launch_add_recorded", lambda: a + b)


def matmul(name, n, dtype):
    a, b = rand(n, n, dtype=dtype), rand(n, n, dtype=dtype)
    show(name, "TFLOP/s", "more", [2 * n ** 3 / s / 1e12 for s in measure(lambda: a @ b)])


def copies():
    n = size(2 ** 26)
    here = torch.rand(n)
    there = here.to(DEVICE)
    bandwidth("copy_to_device", 4 * n, lambda: here.to(DEVICE))
    bandwidth("copy_to_host", 4 * n, there.cpu)
    bandwidth("copy_on_device", 8 * n, there.clone)
    bandwidth("copy_transposed", 8 * n, lambda: there.reshape(-1, 4).t().contiguous())
    if CUDA:
        pinned = torch.empty(n, pin_memory=True)
        bandwidth("copy_to_device_pinned", 4 * n, lambda: there.copy_(pinned, non_blocking=True))
        bandwidth("copy_to_host_pinned", 4 * n, lambda: pinned.copy_(there, non_blocking=True))


def elementwise():
    n = size(2 ** 26)
    x, y = rand(n), rand(n)
    bandwidth("add_64m", 12 * n, lambda: x + y)
    bandwidth("gelu_64m", 8 * n, lambda: F.gelu(x))
    bandwidth("relu_64m", 8 * n, x.relu)
    rows, row = x.reshape(-1, 4), rand(4)
    bandwidth("add_row_64m", 8 * n, lambda: rows + row)
    bandwidth("rand_64m", 4 * n, lambda: torch.rand(n, device=DEVICE))
    half = x.to(torch.bfloat16)
    bandwidth("gelu_bf16_64m", 4 * n, lambda: F.gelu(half))


def reductions():
    side = size(8192)
    x = rand(side, side)
    bandwidth("sum_all", 4 * side * side, x.sum)
    bandwidth("sum_rows", 4 * side * side, lambda: x.sum(1))
    bandwidth("sum_columns", 4 * side * side, lambda: x.sum(0))
    bandwidth("softmax_rows", 8 * side * side, lambda: x.softmax(1))


def conv2d(name, dtype):
    n, c, side = size(32), 64, 8 if SMALL else 56
    x, w = rand(n, c, side, side, dtype=dtype, grad=True), rand(c, c, 3, 3, dtype=dtype, grad=True)
    dy = rand(n, c, side, side, dtype=dtype)

    def forward():
        with torch.no_grad():
            F.conv2d(x, w, padding=1)

    timed(name, "ms", forward)
    timed(name + "_backward", "ms", lambda: torch.autograd.grad(F.conv2d(x, w, padding=1), (x, w), dy))


def convolution():
    conv2d("conv2d_f32", torch.float32)
    conv2d("conv2d_bf16", torch.bfloat16)


def norms():
    rows, width = size(8192), size(4096)
    x, w, b = rand(rows, width), rand(width), rand(width)
    bandwidth("layer_norm", 8 * rows * width, lambda: F.layer_norm(x, (width,), w, b))
    n, c, side = size(32), 64, 8 if SMALL else 56
    images = rand(n, c, side, side)
    weight, bias, mean, var = rand(c), rand(c), rand(c), rand(c)
    bandwidth("batch_norm", 8 * n * c * side * side,
              lambda: F.batch_norm(images, mean, var, weight, bias, training=True))


def norm_pool_of(suffix, dtype):
    n, c, side = size(32), 64, 8 if SMALL else 56
    x, dy = rand(n, c, side, side, dtype=dtype, grad=True), rand(n, c, side, side, dtype=dtype)
    weight, bias, mean, var = rand(c, grad=True), rand(c, grad=True), rand(c), rand(c)

    def forward():
        return F.batch_norm(x, mean, var, weight, bias, training=True)

    def without_gradient(run):
        with torch.no_grad():
            run()

    timed("batch_norm_" + suffix, "ms", lambda: without_gradient(forward))
    timed("batch_norm_" + suffix + "_backward", "ms", lambda: torch.autograd.grad(forward(), (x, weight, bias), dy))
    timed("max_pool_3x3_" + suffix, "ms", lambda: without_gradient(lambda: F.max_pool2d(x, 3, 2, 1)))
    pooled = rand(n, c, side // 2, side // 2, dtype=dtype)
    timed("avg_pool_2x2_" + suffix, "ms", lambda: without_gradient(lambda: F.avg_pool2d(x, 2)))
    timed("avg_pool_2x2_" + suffix + "_backward", "ms",
          lambda: torch.autograd.grad(F.avg_pool2d(x, 2), x, pooled))


def norm_pool():
    norm_pool_of("f32", torch.float32)
    norm_pool_of("bf16", torch.bfloat16)


def adam():
    n = size(25e6)
    parts = [rand(n // 10, grad=True) for _ in range(10)]
    for part in parts:
        part.grad = rand(n // 10)
    optimizer = torch.optim.Adam(parts, lr=1e-3, **({"fused": True} if CUDA else {}))
    bandwidth("adam_25m", 28 * n, optimizer.step)


def train(name, unit, model, x, y):
    model = model.to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **({"fused": True} if CUDA else {}))

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    timed(name, unit, step)


def classes(n, count):
    return torch.randint(0, n, (count,), device=DEVICE)


def training():
    train("tiny_step", "us", nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), rand(2, 4), classes(2, 2))
    train("digits_step", "ms", nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(256, 10)), rand(32, 1, 8, 8), classes(10, 32))
    widths = [size(784), size(2048), size(1024), size(512)]
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Dropout(0.2)]
    train("mlp_step", "ms", nn.Sequential(*layers, nn.Linear(widths[-1], 10)), rand(512, widths[0]), classes(10, 512))


ITEMS = {
    "launch_add": launch_add, "launch_add_recorded": launch_add_recorded,
    "matmul_bf16_8192": lambda: matmul("matmul_bf16_8192", size(8192), torch.bfloat16),
    "matmul_f16_8192": lambda: matmul("matmul_f16_8192", size(8192), torch.float16),
    "matmul_f32_4096": lambda: matmul("matmul_f32_4096", size(4096), torch.float32),
    "copies": copies, "elementwise": elementwise, "reductions": reductions, "convolution": convolution, "norms": norms,
    "norm_pool": norm_pool,
    "adam": adam, "training": training,
}

if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for item in sys.argv[3:] or ITEMS:
        try:
            ITEMS[item]()
        except Exception as error:  # the other items still run
            print(item, "failed", " ".join(str(error).split()), flush=True)
        if CUDA:
            torch.cuda.empty_cache()
