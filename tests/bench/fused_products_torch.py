# SPDX-License-Identifier: Apache-2.0
"""The rows of fused_products.lua by PyTorch: a line a row, its name and the milliseconds of processor time of an eager call and of
torch.compile's, on one thread, the best of seven."""
import sys
import time

import torch
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(1)
ROWS = [
    ("linear, relu", lambda x, w, b, r: F.linear(x, w, b).relu()),
    ("linear, sum", lambda x, w, b, r: F.linear(x, w, b) + r),
    ("linear, gelu", lambda x, w, b, r: F.gelu(F.linear(x, w, b))),
    ("linear, scale, silu, gate", lambda x, w, b, r: F.silu(F.linear(x, w, b) * 0.5) * r),
    ("linear, sum, softmax", lambda x, w, b, r: (F.linear(x, w, b) + r).softmax(-1)),
]
SHAPES = [(65536, 32, 64), (16384, 64, 64), (4096, 64, 256), (4096, 128, 512), (4096, 256, 256),
          (64, 784, 512), (512, 512, 512), (2048, 384, 1536)]
pattern = sys.argv[1] if len(sys.argv) > 1 else ""


def measure(fn, *args):
    for _ in range(2):
        fn(*args)
    best = float("inf")
    for _ in range(7):
        begin = time.process_time()
        fn(*args)
        best = min(best, time.process_time() - begin)
    return best * 1e3


with torch.inference_mode():
    for m, k, n in SHAPES:
        x, w, b, r = torch.randn(m, k), torch.randn(n, k), torch.randn(n), torch.randn(m, n)
        for row, fn in ROWS:
            name = "%s, %dx%dx%d" % (row, m, k, n)
            if pattern not in name:
                continue
            torch._dynamo.reset()
            print("%s\t%.4f\t%.4f" % (name, measure(fn, x, w, b, r), measure(torch.compile(fn), x, w, b, r)), flush=True)
