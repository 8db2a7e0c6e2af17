# SPDX-License-Identifier: Apache-2.0
"""The rows of frozen.lua in PyTorch, eager and compiled, and what it exports in ONNX Runtime and OpenVINO where this
Python has them (and onnx).

frozen_torch.py THREADS DTYPE [ROW ...]: "ROW<tab>microseconds" and three more a line; "-" where something is
missing."""
import copy
import os
import sys
import tempfile
import time

import torch
from torch import nn

import models_torch
import vision_torch

THREADS = int(sys.argv[1])
NARROW = sys.argv[2] == "bfloat16"
torch.set_num_threads(THREADS)


class Layer(nn.Module):
    """What TransformerEncoderLayer computes, in operators that are exported."""

    def __init__(self, layer, heads):
        super().__init__()
        self.layer, self.heads = layer, heads

    def forward(self, x):
        layer = self.layer
        n, length, size = x.shape
        mixed = nn.functional.linear(x, layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias)
        q, k, v = (part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in mixed.chunk(3, -1))
        seen = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, size)
        x = layer.norm1(x + layer.self_attn.out_proj(seen))
        return layer.norm2(x + layer.linear2(torch.relu(layer.linear1(x))))


def mlp(inputs, hidden):
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def made(model, x):
    return x, model


MODELS = {**models_torch.items(None, made), **vision_torch.items(None, made)}
ROWS = [
    ((2, 4), lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))),
    ((1, 256), lambda: mlp(256, 256)),
    ((1, 784), lambda: mlp(784, 2048)),
    ((1, 64), lambda: nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 64))),
    ((1, 16, 64), lambda: nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True)),
    ((1, 1, 16, 16), lambda: nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))),
] + [MODELS[name + "_infer"] for name in ("resnet", "mlp", "convnet", "gpt", "lstm")]


def microseconds(call, seconds=0.2):
    for _ in range(5):
        call()
    least = float("inf")
    for _ in range(5):
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds / 5 or count < 2:
            call()
            count += 1
        least = min(least, (time.perf_counter() - begin) / count * 1e6)
    return least


def exported(model, x):
    if isinstance(model, nn.TransformerEncoderLayer):
        model = Layer(model, 4).eval()
    path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    torch.onnx.export(model.to(memory_format=torch.contiguous_format), (x,), path, dynamo=False)
    return path


def in_onnxruntime(path, x):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: x.numpy()}
    return microseconds(lambda: session.run(None, given))


def in_openvino(path, x):
    import openvino
    core = openvino.Core()
    hints = {"INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
             "INFERENCE_PRECISION_HINT": "bf16" if NARROW else "f32"}
    request = core.compile_model(core.read_model(path), "CPU", hints).create_infer_request()
    request.set_input_tensor(openvino.Tensor(x.numpy()))
    return microseconds(request.infer)


def others(model, x):
    try:
        path = exported(model, x)
    except Exception as error:  # of torch.onnx: it says in a class of its own that onnx is missing
        print(error, file=sys.stderr)
        return ["-", "-"]
    found = []
    for way in (in_onnxruntime, in_openvino):
        try:
            found.append(f"{way(path, x):.2f}")
        except ImportError:
            found.append("-")
    return found


def in_torch(model, x):
    compiled = torch.compile(model)
    return [microseconds(lambda: model(x)), microseconds(lambda: compiled(x))]


for row in [int(a) for a in sys.argv[3:]] or range(1, len(ROWS) + 1):
    item = ROWS[row - 1]
    x, model = item() if callable(item) else (torch.randn(item[0]), item[1]())
    model = model.eval()
    last = x.dim() == 4 and x.size(1) > 1  # as it is quickest there
    given = x.to(memory_format=torch.channels_last) if last else x
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=NARROW):
        times = in_torch(model, given)
    if NARROW:
        narrow = given.to(torch.bfloat16) if given.is_floating_point() else given
        with torch.inference_mode():
            times = map(min, times, in_torch(copy.deepcopy(model).to(torch.bfloat16), narrow))
    print("\t".join([str(row)] + [f"{t:.2f}" for t in times] + others(model, x.contiguous())), flush=True)
