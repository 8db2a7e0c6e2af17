# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of elementwise.lua: THREADS SIZES DTYPES (with commas). A line an item: its name, dtype, size and the
nanoseconds of processor time an element, the best of some samples. What PyTorch has not for a dtype is left out."""
import sys
import time

import torch
import torch.nn.functional as F

aten = torch.ops.aten
torch.set_num_threads(int(sys.argv[1]))
UNARY = {
    "x": """neg abs sign square relu nan_to_num reciprocal exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh erf erfc
            sigmoid floor ceil round trunc frac deg2rad rad2deg sinc isnan isinf isfinite signbit logical_not relu6
            hardtanh silu gelu softplus elu celu selu mish logsigmoid tanhshrink hardshrink softshrink softsign
            hardswish hardsigmoid leaky_relu""",
    "positive": "sqrt rsqrt log log1p log2 log10 lgamma digamma",
    "unit": "asin acos atanh erfinv",
    "above": "acosh",
}
BINARY = """add sub mul div maximum minimum pow remainder fmod floor_divide fmax fmin atan2 hypot copysign logaddexp
            logaddexp2 xlogy eq lt logical_and"""


def items(size, dtype):
    torch.manual_seed(1)
    x, d = torch.randn(size).to(dtype), torch.rand(size).to(dtype)
    operands = {"x": x, "positive": (x.float().abs() + 0.01).to(dtype), "unit": (d.float() * 1.8 - 0.9).to(dtype),
                "above": (d.float() + 1).to(dtype)}
    positive = operands["positive"]
    for kind, names in UNARY.items():
        for name in names.split():
            function = getattr(torch, name, None) or getattr(F, name)
            yield name, lambda f=function, a=operands[kind]: f(a)
    for name in BINARY.split():
        yield name.replace("divide", "div"), lambda f=getattr(torch, name): f(positive, d)
    yield "relu_grad", lambda: aten.threshold_backward(d, x, 0)
    yield "hardtanh_grad", lambda: aten.hardtanh_backward(d, x, -1, 1)
    yield "leaky_relu_grad", lambda: aten.leaky_relu_backward(d, x, 0.01, False)
    yield "elu_grad", lambda: aten.elu_backward(d, 1.0, 1.0, 1.0, False, x)
    yield "sigmoid_grad", lambda: aten.sigmoid_backward(d, x)
    yield "tanh_grad", lambda: aten.tanh_backward(d, x)
    yield "silu_grad", lambda: aten.silu_backward(d, x)
    yield "softplus_grad", lambda: aten.softplus_backward(d, x, 1.0, 20.0)
    yield "mish_grad", lambda: aten.mish_backward(d, x)
    yield "hardswish_grad", lambda: aten.hardswish_backward(d, x)
    yield "gelu_grad", lambda: aten.gelu_backward(d, x)
    yield "gelu_tanh", lambda: F.gelu(x, approximate="tanh")
    yield "gelu_tanh_grad", lambda: aten.gelu_backward(d, x, approximate="tanh")
    yield "clamp", lambda: torch.clamp(x, -1, 1)
    yield "addcmul", lambda: torch.addcmul(x, d, positive)
    yield "addcdiv", lambda: torch.addcdiv(x, d, positive)
    yield "lerp", lambda: torch.lerp(x, d, positive)
    yield "relu in place", lambda: positive.relu_()
    yield "add a number", lambda: x + 1.5
    yield "pow 3", lambda: x ** 3


def measure(run, size):
    calls = max(1, 65536 // size)
    best, samples, spent = float("inf"), 0, 0.0
    run()
    while samples < 3 or (spent < 0.02 and samples < 20):
        start = time.process_time()
        for _ in range(calls):
            run()
        taken = time.process_time() - start
        best, samples, spent = min(best, taken), samples + 1, spent + taken
    return best / calls / size * 1e9


for dtype in sys.argv[3].split(","):
    for size in sys.argv[2].split(","):
        with torch.no_grad():
            for name, run in items(int(size), getattr(torch, dtype)):
                try:
                    print(f"{name}\t{dtype}\t{size}\t{measure(run, int(size)):.4f}", flush=True)
                except RuntimeError:
                    pass
