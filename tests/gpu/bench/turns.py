# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of the GPU benchmark: turns.py DEVICE full|small eager|compiled ITEM. The rows of turns.lua's item, made
ready, announced and measured in the same way. `compiled`: through torch.compile, rows alone that have something to compile."""
import os
import sys
import time

import torch

UNITS = {"GB/s": 1e-9, "TFLOP/s": 1e-12, "1/s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}
BURST = 200  # calls that a device's queue takes without waiting


def say(*words):
    print(*words, flush=True)


def one_line(error):
    return " ".join(str(error).split())[:300]


class Bench:
    def __init__(self, device, small, compiled):
        self.device, self.small, self.compiled = device, small, compiled
        self.cuda = device.startswith("cuda")
        self.kind = device.split(":")[0]
        self.block = 0 if small else 0.04  # seconds, or one call
        self.rows, self.order = {}, []

    def size(self, n):
        return max(4, int(n) // 64) if self.small else int(n)

    def side(self, n):
        return 8 if self.small else n

    def rand(self, *shape, dtype=torch.float32, grad=False):
        return torch.rand(*shape, device=self.device).to(dtype).requires_grad_(grad)

    def randn(self, *shape, dtype=torch.float32, grad=False):
        return torch.randn(*shape, device=self.device).to(dtype).requires_grad_(grad)

    def classes(self, n, *shape):
        return torch.randint(0, n, shape, device=self.device)

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize()

    def pure(self, function):
        """A function of tensors as this half runs it."""
        return torch.compile(function) if self.compiled else function

    def row(self, name, unit, run, amount=None, pure=True):
        """pure=False: nothing in it can be compiled."""
        if self.compiled and not pure:
            return
        try:
            for _ in range(3):
                run()
            self.synchronize()
            start = time.perf_counter()
            run()
            self.synchronize()
            count = max(1, min(1000, int(self.block / (time.perf_counter() - start))))
        except Exception as error:  # the other rows still run
            say("failed", name, one_line(error))
            return

        def measure():
            self.synchronize()
            start = time.perf_counter()
            for _ in range(count):
                run()
            self.synchronize()
            seconds = (time.perf_counter() - start) / count
            return amount / seconds * UNITS[unit] if amount else seconds * UNITS[unit]

        self.rows[name] = measure
        self.order.append((name, unit, "more" if amount else "less"))

    def launches(self, name, run):
        """How long the host is busy with a call."""
        if self.compiled:
            return
        for _ in range(1000):
            run()

        def measure():
            self.synchronize()
            start = time.perf_counter()
            for _ in range(BURST):
                run()
            return (time.perf_counter() - start) / BURST * 1e9

        self.rows[name] = measure
        self.order.append((name, "ns", "less"))


def tf32(on):
    """float32 is float32 unless an item says otherwise, as in Perigee."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = on


def main():
    device, size, mode, item = sys.argv[1:5]
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "items"))
    import kernels
    import models
    import norms
    import products
    bench = Bench(device, size == "small", mode == "compiled")
    tf32(item.endswith("_tf32"))
    torch.backends.cudnn.benchmark = True  # as its users get it fastest
    items = {**kernels.items(bench), **products.items(bench), **norms.items(bench), **models.items(bench)}
    try:
        items[item]()
    except Exception as error:
        say("failed", item, one_line(error))
    for row in bench.order:
        say("row", *row)
    say("ready")
    for line in sys.stdin:
        words = line.split()
        if words[:1] != ["go"]:
            break
        try:
            say("value", words[1], "%.5g" % bench.rows[words[1]]())
        except Exception as error:
            say("failed", words[1], one_line(error))


if __name__ == "__main__":
    main()
