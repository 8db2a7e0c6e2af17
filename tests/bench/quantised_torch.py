# SPDX-License-Identifier: Apache-2.0
"""The other halves of quantised.lua for one model: a line a kind, its name and the microseconds of processor time of a
call on one thread, the best of some. What is not installed prints nothing."""
import os
import sys
import time
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
import numpy as np
import torch
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)
torch.manual_seed(1)
SIZES = {"mlp 784-512-256-10": [784, 512, 256, 10], "mlp 64-2048-2048-10": [64, 2048, 2048, 10],
         "block 1024-4096-1024": [1024, 4096, 1024], "head 1024-16384": [1024, 16384],
         "conv 8: 1-64-64/128": [8, 1, 64, 64, "/", 128],
         "conv 32: 3-32-32/64-64/128-128": [32, 3, 32, 32, "/", 64, 64, "/", 128, 128],
         "conv 56: 64-64-64": [56, 64, 64, 64]}
SECONDS = 0.3


def measure(name, call):
    for _ in range(3):
        call()
    best, begin = float("inf"), time.process_time()
    while time.process_time() - begin < SECONDS:
        start = time.process_time()
        for _ in range(4):
            call()
        best = min(best, (time.process_time() - start) / 4)
    print("%s\t%.2f" % (name, best * 1e6), flush=True)


sizes = SIZES[sys.argv[1]]
convolutional = sys.argv[1].startswith("conv")
layers = []
if convolutional:
    channels = sizes[1]
    for size in sizes[2:]:
        layers += [nn.MaxPool2d(2)] if size == "/" else [nn.Conv2d(channels, size, 3, padding=1), nn.ReLU()]
        channels = channels if size == "/" else size
    x = torch.randn(1, sizes[1], sizes[0], sizes[0])
else:
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ReLU()]
    layers.pop()
    x = torch.randn(1, sizes[0])
model = nn.Sequential(*layers).eval()


def static_model():
    """Calibrated and converted, whole numbers from the first layer to the last."""
    from torch.ao import quantization as q
    whole = q.QuantWrapper(model)
    q.fuse_modules(whole.module, [[str(i), str(i + 1)] for i, layer in enumerate(layers[:-1])
                                  if isinstance(layer, (nn.Conv2d, nn.Linear)) and isinstance(layers[i + 1], nn.ReLU)],
                   inplace=True)
    whole.qconfig = q.get_default_qconfig("x86")
    q.prepare(whole, inplace=True)
    whole(torch.randn(16, *x.shape[1:]))
    return q.convert(whole)


with torch.inference_mode():
    measure("torch float32", lambda: model(x))
    if not convolutional:
        dynamic = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
        measure("torch dynamic", lambda: dynamic(x))
    original = [(layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()) for layer in layers
                if isinstance(layer, (nn.Linear, nn.Conv2d))]
    if convolutional:
        static = static_model()
        measure("torch static", lambda: static(x))

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    sys.exit(0)


def made_of(nodes, tensors):
    made = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x.shape))],
                             [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)], tensors)
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    whole.ir_version = 9
    return whole.SerializeToString()


def images(quantised):
    """The convolutions; quantised: QLinearConv from one QuantizeLinear to one DequantizeLinear, uint8 by int8 with a scale a
    filter, ReLU by the range."""
    nodes, tensors, at, k = [], [], "x", 0

    def put(name, value):
        tensors.append(numpy_helper.from_array(value, name))
        return name

    step, zero = put("step", np.array(0.05, np.float32)), put("zero", np.array(0, np.uint8))
    middle = put("middle", np.array(128, np.uint8))
    if quantised:
        nodes.append(helper.make_node("QuantizeLinear", [at, step, middle], ["q"]))
        at = "q"
    before = middle
    for i, layer in enumerate(layers):
        out = "a%d" % i
        if isinstance(layer, nn.MaxPool2d):
            nodes.append(helper.make_node("MaxPool", [at], [out], kernel_shape=[2, 2], strides=[2, 2]))
        elif isinstance(layer, nn.ReLU):
            if quantised:
                continue
            nodes.append(helper.make_node("Relu", [at], [out]))
        else:
            weight, bias = original[k]
            more = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
            if quantised:
                scale = (np.abs(weight).max(axis=(1, 2, 3)) / 127).astype(np.float32)
                whole = np.round(weight / scale[:, None, None, None]).astype(np.int8)
                names = [at, step, before, put("w%d" % k, whole), put("s%d" % k, scale),
                         put("z%d" % k, np.zeros(len(scale), np.int8)), step, zero,
                         put("b%d" % k, np.round(bias / (scale * 0.05)).astype(np.int32))]
                nodes.append(helper.make_node("QLinearConv", names, [out], **more))
                before = zero
            else:
                nodes.append(helper.make_node("Conv", [at, put("w%d" % k, weight), put("b%d" % k, bias)], [out], **more))
            k += 1
        at = out
    nodes.append(helper.make_node("DequantizeLinear", [at, step, zero], ["out"]) if quantised
                 else helper.make_node("Identity", [at], ["out"]))
    return made_of(nodes, tensors)


def graph(quantised):
    """The same network; quantised: DynamicQuantizeLinear, MatMulInteger and scales, as onnxruntime's own tool writes it."""
    nodes, tensors, at = [], [], "x"
    for k, (weight, bias) in enumerate(original):
        weight = weight.T.copy()
        tensors.append(numpy_helper.from_array(bias, "b%d" % k))
        if quantised:
            scale = (np.abs(weight).max() / 127).astype(np.float32)
            tensors += [numpy_helper.from_array(np.round(weight / scale).astype(np.int8), "w%d" % k),
                        numpy_helper.from_array(np.array(0, np.int8), "z%d" % k),
                        numpy_helper.from_array(np.array(scale), "s%d" % k)]
            nodes += [helper.make_node("DynamicQuantizeLinear", [at], ["q%d" % k, "qs%d" % k, "qz%d" % k]),
                      helper.make_node("MatMulInteger", ["q%d" % k, "w%d" % k, "qz%d" % k, "z%d" % k], ["i%d" % k]),
                      helper.make_node("Cast", ["i%d" % k], ["f%d" % k], to=TensorProto.FLOAT),
                      helper.make_node("Mul", ["qs%d" % k, "s%d" % k], ["m%d" % k]),
                      helper.make_node("Mul", ["f%d" % k, "m%d" % k], ["y%d" % k])]
        else:
            tensors.append(numpy_helper.from_array(weight, "w%d" % k))
            nodes.append(helper.make_node("MatMul", [at, "w%d" % k], ["y%d" % k]))
        last = k + 1 == len(original)
        nodes.append(helper.make_node("Add", ["y%d" % k, "b%d" % k], ["out" if last else "a%d" % k]))
        if not last:
            nodes.append(helper.make_node("Relu", ["a%d" % k], ["r%d" % k]))
            at = "r%d" % k
    return made_of(nodes, tensors)


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.log_severity_level = 3
sample = {"x": x.numpy()}
for name, quantised in [("onnxruntime float32", False), ("onnxruntime " + ("static" if convolutional else "dynamic"), True)]:
    session = onnxruntime.InferenceSession((images if convolutional else graph)(quantised), options,
                                           providers=["CPUExecutionProvider"])
    measure(name, lambda: session.run(None, sample))
