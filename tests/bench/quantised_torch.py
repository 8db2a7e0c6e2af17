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
         "block 1024-4096-1024": [1024, 4096, 1024], "head 1024-16384": [1024, 16384]}
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
layers = []
for i in range(len(sizes) - 1):
    layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ReLU()]
model = nn.Sequential(*layers[:-1]).eval()
x = torch.randn(1, sizes[0])
with torch.inference_mode():
    measure("torch float32", lambda: model(x))
    dynamic = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    measure("torch dynamic", lambda: dynamic(x))

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    sys.exit(0)


def graph(quantised):
    """The same network; quantised: DynamicQuantizeLinear, MatMulInteger and scales, as onnxruntime's own tool writes it."""
    nodes, tensors, at = [], [], "x"
    linear = [layer for layer in model if isinstance(layer, nn.Linear)]
    for k, layer in enumerate(linear):
        weight, bias = layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy()
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
        last = k + 1 == len(linear)
        nodes.append(helper.make_node("Add", ["y%d" % k, "b%d" % k], ["out" if last else "a%d" % k]))
        if not last:
            nodes.append(helper.make_node("Relu", ["a%d" % k], ["r%d" % k]))
            at = "r%d" % k
    made = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, sizes[0]])],
                             [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, sizes[-1]])], tensors)
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    whole.ir_version = 9
    return whole.SerializeToString()


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
sample = {"x": x.numpy()}
for name, quantised in [("onnxruntime float32", False), ("onnxruntime dynamic", True)]:
    session = onnxruntime.InferenceSession(graph(quantised), options, providers=["CPUExecutionProvider"])
    measure(name, lambda: session.run(None, sample))
