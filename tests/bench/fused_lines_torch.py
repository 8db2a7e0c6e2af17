# SPDX-License-Identifier: Apache-2.0
"""The rows of fused_lines.lua by PyTorch: a line a row, its name and the milliseconds of processor time of an eager call and of
torch.compile's, on one thread, the best of five."""
import sys
import time

import torch
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(1)
ROWS = [
    ("sum of products", lambda x, y, w: (x * y).sum()),
    ("mean of squares", lambda x, y, w: (x - y).square().mean()),
    ("line sums of exp(x - max)", lambda x, y, w: (x - x.amax(-1, keepdim=True)).exp().sum(-1)),
    ("scale, mask, softmax, weigh", lambda x, y, w: (x * 0.125 + y).softmax(-1) * y),
    ("add, layer_norm, relu", lambda x, y, w: F.layer_norm(x + y, w.shape, w, w).relu()),
    ("add, rms_norm, mul", lambda x, y, w: F.rms_norm(x + y, w.shape, w) * y),
    ("mean of squares over rows", lambda x, y, w: (x - y).square().mean(0)),
    ("relu of products, sum over rows", lambda x, y, w: (x * y).relu().sum(0)),
    ("log_softmax, weigh, line sums", lambda x, y, w: -(x.log_softmax(-1) * y).sum(-1)),
]
pattern = sys.argv[1] if len(sys.argv) > 1 else ""


def measure(fn, *args):
    for _ in range(2):
        fn(*args)
    best = float("inf")
    for _ in range(5):
        begin = time.process_time()
        fn(*args)
        best = min(best, time.process_time() - begin)
    return best * 1e3


for dtype in [torch.float32, torch.bfloat16]:
    for shape in [(4096, 1024), (65536, 64)]:
        x, y = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
        w = torch.randn(shape[1]).to(dtype)
        for row, fn in ROWS:
            name = "%s, %dx%d, %s" % (row, *shape, str(dtype).removeprefix("torch."))
            if pattern not in name:
                continue
            torch._dynamo.reset()
            print("%s\t%.4f\t%.4f" % (name, measure(fn, x, y, w), measure(torch.compile(fn), x, y, w)), flush=True)
