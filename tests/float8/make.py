# SPDX-License-Identifier: Apache-2.0
# What PyTorch makes of float8: writes data/float8.safetensors. For each of the two formats F
#   F.codes                  all 256 codes, as F
#   F.codes.TYPE             what they are as float32, float64, float16, bfloat16
#   F.of.TYPE                the numbers TYPE.numbers as F
# TYPE.numbers are random ones of all sizes that matter, each tie between two neighbours of either format and its own
# neighbours, infinities, NaN of both signs, zeros, subnormals, the largest.
#   python3 tests/float8/make.py               needs torch (2.15 wrote the file that is here)
import json
import os
import struct

import torch

FORMATS = {"float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}
TYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16}
NAMES = {torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.float32: "F32", torch.float64: "F64",
         torch.float16: "F16", torch.bfloat16: "BF16"}
RANDOM = 1500


def all_codes(dtype):
    return torch.arange(256).to(torch.uint8).view(dtype)


def ties():
    """Halfway between neighbours, and what lies beside that in float32."""
    found = []
    for dtype in FORMATS.values():
        values = all_codes(dtype).to(torch.float64)
        values = values[values.isfinite() & (values >= 0)].unique()
        largest = values[-1] + (values[-1] - values[-2])  # where the next number would be
        values = torch.cat([values, largest[None]])
        middle = ((values[1:] + values[:-1]) / 2).to(torch.float32)
        up = torch.nextafter(middle, torch.tensor(float("inf")))
        down = torch.nextafter(middle, torch.tensor(0.0))
        found += [middle, up, down, -middle, -up, -down]
    return torch.cat(found)


def numbers(dtype):
    signs = torch.where(torch.rand(RANDOM) < 0.5, -1.0, 1.0)
    random = signs * (1 + torch.rand(RANDOM)) * 2.0 ** torch.randint(-20, 20, (RANDOM,))
    inf, nan = float("inf"), float("nan")
    special = torch.tensor([0.0, -0.0, inf, -inf, nan, -nan, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 448, 464, 480, 512,
                            57344, 61440, 65504, 65536, 2**-9, 2**-10, 2**-16, 2**-17])
    return torch.cat([random, ties(), special]).to(dtype)


def write(path, tensors):
    header, parts, at = {}, [], 0
    for name, t in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        data = t.contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main():
    torch.manual_seed(8)
    tensors = {}
    for kind, dtype in TYPES.items():
        tensors[kind + ".numbers"] = numbers(dtype)
    for name, dtype in FORMATS.items():
        tensors[name + ".codes"] = all_codes(dtype)
        for kind, wide in TYPES.items():
            tensors[f"{name}.codes.{kind}"] = all_codes(dtype).to(wide)
            tensors[f"{name}.of.{kind}"] = tensors[kind + ".numbers"].to(dtype)
    write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "float8.safetensors"), tensors)


main()
