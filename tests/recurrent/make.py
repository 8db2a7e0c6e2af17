# SPDX-License-Identifier: Apache-2.0
# What PyTorch's recurrent layers and cells compute: writes data/recurrent.json, the cases, and data/recurrent.safetensors,
# their tensors, all float64. A case has parameters, inputs, outputs, cotangents, the gradients of all inputs and parameters,
# and gradients of the sum of the squares of those of x and of weight_hh (second order).
#   python3 tests/recurrent/make.py            needs torch (2.15 wrote the files that are here)
import json
import os
import struct

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

STEPS, COUNT, INPUTS, HIDDEN = 5, 3, 4, 3
LENGTHS = [3, 5, 2]

CASES = []
for kind in ["RNN", "LSTM", "GRU"]:
    CASES += [
        dict(kind=kind),
        dict(kind=kind, batch_first=True, states=True),
        dict(kind=kind, bias=False, states=True),
        dict(kind=kind, num_layers=2, states=True),
        dict(kind=kind, bidirectional=True),
        dict(kind=kind, num_layers=3, bidirectional=True, batch_first=True, states=True),
        dict(kind=kind, lengths=LENGTHS),
        dict(kind=kind, num_layers=2, bidirectional=True, batch_first=True, lengths=LENGTHS, states=True),
        dict(kind=kind, alone=True, num_layers=2, states=True),
        dict(kind=kind, alone=True, bidirectional=True),
        dict(kind=kind + "Cell"),
        dict(kind=kind + "Cell", states=True),
        dict(kind=kind + "Cell", bias=False, states=True, alone=True),
    ]
CASES += [
    dict(kind="RNN", nonlinearity="relu", num_layers=2, bidirectional=True, states=True),
    dict(kind="RNN", nonlinearity="relu", lengths=LENGTHS, batch_first=True),
    dict(kind="RNNCell", nonlinearity="relu", states=True),
    dict(kind="LSTM", proj_size=2, states=True),
    dict(kind="LSTM", proj_size=2, num_layers=2, bidirectional=True, lengths=LENGTHS, batch_first=True, states=True),
    dict(kind="LSTM", proj_size=1, bias=False, alone=True),
]
OPTIONS = ["bias", "batch_first", "num_layers", "bidirectional", "nonlinearity", "proj_size"]


def shape_of_input(case):
    if case["kind"].endswith("Cell"):
        return [INPUTS] if case.get("alone") else [COUNT, INPUTS]
    if case.get("alone"):
        return [STEPS, INPUTS]
    return [COUNT, STEPS, INPUTS] if case.get("batch_first") else [STEPS, COUNT, INPUTS]


def make_states(case):
    has_cell = case["kind"].startswith("LSTM")
    if not case.get("states"):
        return []
    lead = []
    if not case["kind"].endswith("Cell"):
        lead = [case.get("num_layers", 1) * (2 if case.get("bidirectional") else 1)]
    if not case.get("alone"):
        lead = lead + [COUNT]
    states = [torch.randn(*lead, case.get("proj_size") or HIDDEN)]
    return states + ([torch.randn(*lead, HIDDEN)] if has_cell else [])


def call(case, layer, x, states):
    has_cell = case["kind"].startswith("LSTM")
    hx = None if not states else tuple(states) if has_cell else states[0]
    if case["kind"].endswith("Cell"):
        out = layer(x, hx)
        return list(out) if has_cell else [out]
    if "lengths" in case:
        first = case.get("batch_first", False)
        packed = pack_padded_sequence(x, torch.tensor(case["lengths"]), batch_first=first, enforce_sorted=False)
        y, last = layer(packed, hx)
        y = pad_packed_sequence(y, batch_first=first, total_length=STEPS)[0]
    else:
        y, last = layer(x, hx)
    return [y] + (list(last) if has_cell else [last])


def run(case, prefix, tensors):
    options = {k: case[k] for k in OPTIONS if k in case}
    layer = getattr(nn, case["kind"])(INPUTS, HIDDEN, **options)
    x = torch.randn(*shape_of_input(case), requires_grad=True)
    states = [s.requires_grad_() for s in make_states(case)]
    outputs = call(case, layer, x, states)
    cotangents = [torch.randn_like(y) for y in outputs]
    names = ["x"] + ["h0", "c0"][: len(states)] + [name for name, _ in layer.named_parameters()]
    inputs = [x] + states + [p for _, p in layer.named_parameters()]
    gradients = torch.autograd.grad(outputs, inputs, cotangents, create_graph=True)
    hidden = [i for i, name in enumerate(names) if name.startswith("weight_hh")]
    norm = sum((gradients[i] ** 2).sum() for i in [0] + hidden)
    seconds = torch.autograd.grad(norm, inputs, allow_unused=True)
    case["inputs"] = names
    for i, name in enumerate(names):
        tensors[f"{prefix}.in.{name}"] = inputs[i]
        tensors[f"{prefix}.grad.{name}"] = gradients[i]
        if seconds[i] is not None:
            tensors[f"{prefix}.second.{name}"] = seconds[i]
    for i, y in enumerate(outputs):
        tensors[f"{prefix}.out.{i + 1}"] = y
        tensors[f"{prefix}.cotangent.{i + 1}"] = cotangents[i]


def write(path, tensors):
    header, parts, at = {}, [], 0
    for name, t in tensors.items():
        data = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F64", "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(20)
    folder, tensors = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data"), {}
    for number, case in enumerate(CASES):
        run(case, str(number + 1), tensors)
    write(os.path.join(folder, "recurrent.safetensors"), tensors)
    with open(os.path.join(folder, "recurrent.json"), "w") as file:
        file.write("[\n" + ",\n".join("  " + json.dumps(case) for case in CASES) + "\n]\n")


main()
