# SPDX-License-Identifier: Apache-2.0
# pillow.py FILE.npz: what Pillow 12 makes of small pictures, for tests/lua/image. Names say what was asked:
# resize/PICTURE/FILTER/ROWSxCOLUMNS[/box], and so on; a resize's box is {top, left, height, width} under NAME#box.
import sys

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

rng = np.random.default_rng(3)
out = {}
smooth = np.add.outer(np.arange(19) * 9, np.arange(24) * 5)[:, :, None] + np.array([0, 40, 90])
pictures = {
    "noise": rng.integers(0, 256, (17, 22, 3), dtype=np.uint8),
    "smooth": (smooth % 256).astype(np.uint8),
    "grey": rng.integers(0, 256, (15, 12, 1), dtype=np.uint8),
    "square": rng.integers(0, 256, (11, 11, 3), dtype=np.uint8),
}
for name, x in pictures.items():
    out["x/" + name] = x
filters = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "area": 4}


def image_of(x):
    return Image.fromarray(x[:, :, 0] if x.shape[2] == 1 else x)


def array_of(im):
    a = np.asarray(im)
    return a[:, :, None] if a.ndim == 2 else a


for name, x in pictures.items():
    im = image_of(x)
    h, w = x.shape[:2]
    for filter, number in filters.items():
        for rows, columns in ((7, 9), (29, 23), (h, 30), (9, w)):
            key = f"resize/{name}/{filter}/{rows}x{columns}"
            out[key] = array_of(im.resize((columns, rows), number))
            box = (1.5, 2.25, w - 3.125, h - 1.0)
            out[key + "/box"] = array_of(im.resize((columns, rows), number, box=box))
            out[key + "/box#box"] = np.array([box[1], box[0], box[3] - box[1], box[2] - box[0]])
        if x.shape[2] == 1:
            floats = Image.fromarray(x[:, :, 0].astype(np.float32) / 7)
            out[f"floats/{name}/{filter}/9x20"] = array_of(floats.resize((20, 9), number))
    for filter in ("nearest", "bilinear", "bicubic"):
        for degrees in (0, 30, 90, 180, 270, -10.5):
            for expand in (False, True):
                key = f"rotate/{name}/{filter}/{degrees}/{int(expand)}"
                fill = 77 if x.shape[2] == 1 else (77, 77, 77)
                out[key] = array_of(im.rotate(degrees, filters[filter], expand, fillcolor=fill))
        matrix = (1.1, 0.2, -1.5, -0.3, 0.9, 2.25)
        out[f"affine/{name}/{filter}"] = array_of(im.transform((21, 17), Image.AFFINE, matrix, filters[filter]))
        scaling = (0.8, 0, 1.25, 0, 1.2, -2.5)
        out[f"scaling/{name}/{filter}"] = array_of(im.transform((25, 18), Image.AFFINE, scaling, filters[filter]))
    for factor in (0, 0.3, 1.7):
        out[f"brightness/{name}/{factor}"] = array_of(ImageEnhance.Brightness(im).enhance(factor))
        out[f"contrast/{name}/{factor}"] = array_of(ImageEnhance.Contrast(im).enhance(factor))
        out[f"saturation/{name}/{factor}"] = array_of(ImageEnhance.Color(im).enhance(factor))
        out[f"sharpness/{name}/{factor}"] = array_of(ImageEnhance.Sharpness(im).enhance(factor))
    out[f"grey/{name}"] = array_of(im.convert("L"))
    out[f"autocontrast/{name}"] = array_of(ImageOps.autocontrast(im))
    out[f"equalize/{name}"] = array_of(ImageOps.equalize(im))
    for bits in (1, 4, 8):
        out[f"posterize/{name}/{bits}"] = array_of(ImageOps.posterize(im, bits))
    out[f"solarize/{name}/100"] = array_of(ImageOps.solarize(im, 100))
    if x.shape[2] == 3:
        for turn in (-0.5, -0.13, 0.1, 0.37):
            h, s, v = im.convert("HSV").split()
            shifted = (np.asarray(h).astype(np.int32) + int(turn * 255)) % 256
            turned = Image.merge("HSV", (Image.fromarray(shifted.astype(np.uint8)), s, v))
            out[f"hue/{name}/{turn}"] = array_of(turned.convert("RGB"))
np.savez_compressed(sys.argv[1], **out)
