# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of corners.lua: for each name of an item on a line of the input a line with the microseconds of
processor time of a call on one thread, or a dash for an item that is not
here."""
import gc
import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(1)
items = []


def item(name):
    def add(make):
        items.append((name, make))
        return make
    return add


def signs(*shape):
    return (torch.rand(shape) > 0.5).float() * 2 - 1


def logs(*shape):
    return torch.rand(shape).log()


losses = [("mse", F.mse_loss, torch.randn, torch.randn), ("l1", F.l1_loss, torch.randn, torch.randn),
          ("huber", F.huber_loss, torch.randn, torch.randn), ("smooth_l1", F.smooth_l1_loss, torch.randn, torch.randn),
          ("bce", F.binary_cross_entropy, torch.rand, torch.rand),
          ("bce_with_logits", F.binary_cross_entropy_with_logits, torch.randn, torch.rand),
          ("kl_div", F.kl_div, logs, torch.rand), ("poisson_nll", F.poisson_nll_loss, torch.randn, torch.rand),
          ("soft_margin", F.soft_margin_loss, torch.randn, signs),
          ("hinge_embedding", F.hinge_embedding_loss, torch.randn, signs),
          ("gaussian_nll", F.gaussian_nll_loss, torch.randn, torch.randn)]


def add_loss(name, loss, make_x, make_y, size):
    def tensors():
        more = (torch.rand(size) + 0.5,) if name == "gaussian_nll" else ()
        return (make_x(*size), make_y(*size)) + more

    @item("%s %dx%d" % (name, *size))
    def forward():
        args = tensors()
        return lambda: loss(*args)

    @item("%s %dx%d, back" % (name, *size))
    def back():
        x, *others = tensors()
        x.requires_grad_()

        def run():
            x.grad = None
            loss(x, *others).backward()
        return run


for size in ((32, 10), (1000, 1000)):
    for row in losses:
        add_loss(*row, size)


def resized(name, shape, **options):
    @item("interpolate " + name)
    def _():
        x = torch.randn(shape)
        return lambda: F.interpolate(x, **options)

    @item("interpolate " + name + ", back")
    def _():
        x = torch.randn(shape)
        dy = torch.randn(F.interpolate(x, **options).shape)
        x.requires_grad_()

        def run():
            x.grad = None
            F.interpolate(x, **options).backward(dy)
        return run


for mode in ("nearest", "bilinear", "bicubic"):
    resized(mode + " 224 to 448", (8, 3, 224, 224), size=448, mode=mode)
    resized(mode + " 56 to 112", (8, 64, 56, 56), size=112, mode=mode)
    resized(mode + " 448 to 224", (8, 3, 448, 448), size=224, mode=mode)
    resized(mode + " by 0.5", (8, 3, 224, 224), scale_factor=0.5, mode=mode)
    resized(mode + " 4 to 8", (1, 1, 4, 4), size=8, mode=mode)
resized("corners, bilinear 224 to 448", (8, 3, 224, 224), size=448, mode="bilinear", align_corners=True)
resized("corners, bicubic 224 to 448", (8, 3, 224, 224), size=448, mode="bicubic", align_corners=True)
resized("bilinear 224 to 300", (8, 3, 224, 224), size=300, mode="bilinear")
resized("area 448 to 224", (8, 3, 448, 448), size=224, mode="area")
resized("area 224 to 100", (8, 3, 224, 224), size=100, mode="area")
resized("linear 1000 to 2000", (8, 64, 1000), size=2000, mode="linear")
resized("trilinear by 2", (2, 8, 16, 32, 32), scale_factor=2, mode="trilinear")


def bagged(name, entries, features, lengths, mode, weighed):
    def make():
        starts = torch.tensor([0] + lengths[:-1]).cumsum(0)
        weights = torch.rand(sum(lengths)) if weighed else None
        index = torch.randint(0, entries, (sum(lengths),))
        return torch.randn(entries, features), index, {"offsets": starts, "mode": mode, "per_sample_weights": weights}

    @item("embedding_bag " + name)
    def _():
        weight, index, o = make()
        return lambda: F.embedding_bag(index, weight, **o)

    @item("embedding_bag " + name + ", back")
    def _():
        weight, index, o = make()
        dy = torch.randn(len(lengths), features)
        weight.requires_grad_()
        if weighed:
            o["per_sample_weights"].requires_grad_()

        def run():
            weight.grad = None
            if weighed:
                o["per_sample_weights"].grad = None
            F.embedding_bag(index, weight, **o).backward(dy)
        return run


for kind, mode, weighed in (("sum", "sum", 0), ("mean", "mean", 0), ("max", "max", 0), ("weighed", "sum", 1)):
    bagged(kind, 10000, 64, [8 + i * 37 % 43 for i in range(1, 513)], mode, weighed)
    bagged("tiny " + kind, 10, 4, [2, 3], mode, weighed)


for n in (10, 1000, 100000, 10000000):
    item("randperm of %d" % n)(lambda n=n: lambda: torch.randperm(n))


def line_item(name, shape, dtype, fn):
    @item(name)
    def _():
        x = torch.randn(shape, dtype=dtype)
        run = fn(x)
        return lambda: run(x)


def line_items(name, shape, dtype, fn):
    line_item(name, shape, dtype, fn)

    @item(name + ", back")
    def _():
        x = torch.randn(shape, dtype=dtype)
        run = fn(x)
        dy = torch.rand_like(run(x))
        x.requires_grad_()

        def back():
            x.grad = None
            run(x).backward(dy)
        return back


def norm_of(name):
    def make(x):
        shape = x.shape[1:]
        weight, bias = torch.rand(shape), torch.rand(shape)
        if name == "rms_norm":
            return lambda y: F.rms_norm(y, shape, weight)
        return lambda y: F.layer_norm(y, shape, weight, bias)
    return make


def cross_entropy(x):
    target = torch.randint(0, x.shape[1], x.shape[:1])
    return lambda y: F.cross_entropy(y, target)


def plainly(fn):
    return lambda x: fn


for n in (3, 8, 16, 33):
    def lines(name, fn):
        line_items("%s of 100000x%d" % (name, n), (100000, n), torch.float32, fn)
    lines("softmax", plainly(lambda x: torch.softmax(x, 1)))
    lines("log_softmax", plainly(lambda x: torch.log_softmax(x, 1)))
    lines("cross_entropy", cross_entropy)
    lines("layer_norm", norm_of("layer_norm"))
    lines("rms_norm", norm_of("rms_norm"))
    for name in ("sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std"):
        lines(name, plainly(lambda x, f=getattr(torch, name): f(x, 1)))
    lines("norm", plainly(lambda x: torch.linalg.vector_norm(x, 2, 1)))
    line_item("argmax of 100000x%d" % n, (100000, n), torch.float32, plainly(lambda x: torch.argmax(x, 1)))
for shape, axis in (((64, 1000, 64), 2), ((1000, 1000), 1), ((1000, 1000), 2), ((100000, 8), 2)):
    for name in ("softmax", "log_softmax"):
        title = "%s of %s along %d, float64" % (name, "x".join(map(str, shape)), axis)
        line_items(title, shape, torch.float64, plainly(lambda x, f=getattr(torch, name), d=axis - 1: f(x, d)))


for n in (1000, 10000, 25000, 100000, 300000, 1000000):
    @item("a + b of %d, dropped" % n)
    def _(n=n):
        a, b = torch.rand(n), torch.rand(n)
        return lambda: a + b


@item("(a * b + c):relu() of 100000")
def _():
    a, b, c = torch.rand(100000), torch.rand(100000), torch.rand(100000)
    return lambda: (a * b + c).relu()


@item("c = a + b of 100000")
def _():
    a, b, c = torch.rand(100000), torch.rand(100000), None

    def run():
        nonlocal c
        c = a + b
    return run


def put(name, shape, where, what):
    @item(name)
    def _():
        a = torch.rand(shape)
        value = what() if callable(what) else what

        def run():
            a[where] = value
        return run


tiny = torch.rand(4)
square, pair, eight = torch.rand(4, 4), [torch.rand(4), torch.rand(4)], [torch.rand(4) for _ in range(8)]
item("zero_ of 4")(lambda: tiny.zero_)
item("fill_ of 4")(lambda: lambda: tiny.fill_(2))
put("a[1] = 0 of 4", 4, 0, 0)
put("a[{1, 2}] = 0 of 4x4", (4, 4), (0, 1), 0)
put("a[{1, {}}] = 0 of 4x4", (4, 4), (0, slice(None)), 0)
put("a[1] = row of 4x4", (4, 4), 0, lambda: torch.rand(4))
item("tril of 4x4")(lambda: square.tril)
item("triu of 4x4")(lambda: lambda: square.triu(1))
item("tril of 512x512")(lambda: torch.rand(512, 512).tril)
item("pad of 4x4")(lambda: lambda: F.pad(square, (1, 1, 1, 1)))


@item("pad of 64x512")
def _():
    a = torch.rand(64, 512)
    return lambda: F.pad(a, (1, 1, 1, 1))


item("stack of 2x4")(lambda: lambda: torch.stack(pair))
item("stack of 8x4")(lambda: lambda: torch.stack(eight))
item("cat of 2x4")(lambda: lambda: torch.cat(pair))
for mode in ("reflect", "replicate", "circular"):
    item("pad, %s, of 4x4" % mode)(lambda mode=mode: lambda a=torch.rand(1, 4, 4): F.pad(a, (1, 1, 1, 1), mode=mode))
item("pad, reflect, of 16x64x64")(
    lambda: lambda a=torch.rand(16, 64, 64): F.pad(a, (3, 3, 3, 3), mode="reflect"))


def pad_back(name, shape, widths, grown, **options):
    @item(name)
    def _():
        a, dy = torch.rand(shape, requires_grad=True), torch.rand(grown)

        def run():
            a.grad = None
            F.pad(a, widths, **options).backward(dy)
        return run


pad_back("pad, reflect, back, of 16x64x64", (16, 64, 64), (3, 3, 3, 3), (16, 70, 70), mode="reflect")
pad_back("pad, back, of 64x512", (64, 512), (1, 1, 1, 1), (66, 514))
eight_square, eight_large = [torch.rand(4, 4) for _ in range(8)], [torch.rand(64, 64) for _ in range(8)]
item("cat of 2x4, axis=1")(lambda: lambda: torch.cat(pair, dim=0))
item("cat of 8 4x4, axis 2")(lambda: lambda: torch.cat(eight_square, 1))
item("stack of 8 64x64, axis 2")(lambda: lambda: torch.stack(eight_large, 1))
item("a[2] of 4x4")(lambda: lambda: square[1])
item("a[{1, {2, 3}}] of 4x4")(lambda: lambda: square[0, 1:3])

other, below = torch.rand(4, 4), torch.rand(4, 4) > 0.5
vector, one, classes = torch.rand(4), torch.rand(()), torch.tensor([0, 2, 1])
places, few = torch.tensor([[0, 1], [2, 3]]), torch.tensor([0, 2])
for name, run in {
    "clone": square.clone, "copy_": lambda: other.copy_(square), "narrow": lambda: square.narrow(0, 1, 2),
    "select": lambda: square.select(0, 1), "split": lambda: square.split(2), "chunk": lambda: square.chunk(2),
    "unbind": square.unbind, "where": lambda: torch.where(below, square, other),
    "where with a number": lambda: torch.where(below, square, 0), "masked_fill": lambda: square.masked_fill(below, 0),
    "flip": lambda: square.flip(0), "roll": lambda: square.roll(1, 0), "tile": lambda: square.tile(2, 2),
    "repeat_interleave": lambda: square.repeat_interleave(2, 0), "diag of a matrix": square.diag,
    "diag of a vector": vector.diag, "diagonal": square.diagonal, "one_hot": lambda: F.one_hot(classes, 4),
    "arange": lambda: torch.arange(4), "zeros": lambda: torch.zeros(4), "ones": lambda: torch.ones(4, 4),
    "full": lambda: torch.full((4,), 2.0), "zeros_like": lambda: torch.zeros_like(square),
    "full_like": lambda: torch.full_like(square, 2), "eye": lambda: torch.eye(4),
    "linspace": lambda: torch.linspace(0, 1, 4), "tensor": lambda: torch.tensor([1.0, 2.0, 3.0, 4.0]),
    "expand and contiguous": lambda: vector.expand(4, 4).contiguous(),
    "transpose and contiguous": lambda: square.t().contiguous(), "reshape": lambda: square.reshape(2, 8),
    "unsqueeze": lambda: square.unsqueeze(0), "permute": lambda: square.permute(1, 0),
    "gather": lambda: square.gather(1, places), "index_select": lambda: square.index_select(0, few),
    "to float64": square.double, "item": one.item,
}.items():
    item(name + ", tiny")(lambda run=run: run)



def measure(make):
    run, calls = make(), 1

    def repeat(n):
        for _ in range(n):
            run()
    start = time.process_time()
    while True:
        repeat(calls)
        calls *= 2
        if time.process_time() - start > 0.05:
            break
    gc.collect()
    count, begin = 0, time.process_time()
    while True:
        repeat(calls)
        count += calls
        if time.process_time() - begin > 0.3:
            break
    return (time.process_time() - begin) / count * 1e6


named = dict(items)
for line in sys.stdin:
    make = named.get(line.rstrip("\n"))
    print("%.4f" % measure(make) if make else "-", flush=True)
