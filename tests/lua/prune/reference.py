# SPDX-License-Identifier: Apache-2.0
# Writes reference.lua: masks and weights of torch.nn.utils.prune. Run with a Python that has PyTorch, in this folder.
import torch
from torch import nn
from torch.nn.utils import prune


def seq(*shape):
    n = 1
    for size in shape:
        n *= size
    return torch.sin(torch.arange(n, dtype=torch.float64) * 0.7).reshape(shape)


def layers():
    made = {"linear": nn.Linear(8, 6), "conv": nn.Conv2d(3, 4, 3), "conv1d": nn.Conv1d(4, 5, 2),
            "transposed": nn.ConvTranspose2d(3, 4, 2), "embedding": nn.Embedding(7, 3)}
    for layer in made.values():
        layer.double()
        with torch.no_grad():
            layer.weight.copy_(seq(*layer.weight.shape))
    return made


def wrapped(parts, between, indent):
    """Parts in lines of at most 100 letters."""
    rows = [""]
    for part in parts:
        if len(rows[-1]) + len(part) > 100:
            rows.append("")
        rows[-1] += part
    return (between + "\n" + indent).join(rows)


def bits(mask):
    return wrapped(["1" if v else "0" for v in mask.flatten().tolist()], '" ..', '    "').join('""')


lines = []
for name, layer in layers().items():
    for amount in (0.0, 0.25, 0.5, 0.9, 1.0):
        fresh = layers()[name]
        prune.l1_unstructured(fresh, "weight", amount)
        lines.append(f'  {{ layer = "{name}", method = "l1_unstructured", o = {{ amount = {amount} }}, '
                     f'\n    mask = {bits(fresh.weight_mask)} }},')
    for amount, n, dim in ((0.5, 2, 0), (0.4, 1, 0), (0.3, float("inf"), 1), (0.67, 2, 1)):
        fresh = layers()[name]
        prune.ln_structured(fresh, "weight", amount, n, dim)
        order = "math.huge" if n == float("inf") else n
        lines.append(f'  {{ layer = "{name}", method = "ln_structured", o = {{ amount = {amount}, n = {order}, '
                     f'axis = {dim + 1} }},\n    mask = {bits(fresh.weight_mask)} }},')
    fresh = layers()[name]
    prune.ln_structured(fresh, "weight", 0.4, 2, 0)
    prune.l1_unstructured(fresh, "weight", 0.5)
    lines.append(f'  {{ layer = "{name}", method = "twice", o = {{}},\n    mask = {bits(fresh.weight_mask)} }},')

several = layers()
prune.global_unstructured([(layer, "weight") for layer in several.values()], prune.L1Unstructured, amount=0.6)
together = ",\n  ".join(bits(layer.weight_mask) for layer in several.values())

# Five steps of a pruned layer with momentum and decay.
steps = []
for make in ("SGD", "AdamW"):
    layer = layers()["linear"]
    with torch.no_grad():
        layer.bias.copy_(seq(6))
    prune.l1_unstructured(layer, "weight", 0.5)
    if make == "SGD":
        opt = torch.optim.SGD(layer.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)
    else:
        opt = torch.optim.AdamW(layer.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(5):
        opt.zero_grad()
        (layer(seq(4, 8)) - seq(4, 6) * 2).square().mean().backward()
        opt.step()
    layer(seq(4, 8))  # PyTorch computes the weight in the call
    numbers = wrapped([f"{v:.12g}, " for v in layer.weight.flatten().tolist()], "", "    ")
    steps.append(f"  {make} = {{\n    {numbers}\n  }},")

with open("reference.lua", "w") as file:
    file.write("-- SPDX-License-Identifier: Apache-2.0\n-- Made by reference.py.\n\nreturn {\n")
    file.write("rows = {\n" + "\n".join(lines) + "\n},\n")
    file.write('order = { "' + '", "'.join(layers()) + '" },\n')
    file.write("together = { " + together + " },\n")
    file.write("steps = {\n" + "\n".join(steps) + "\n},\n}\n")
