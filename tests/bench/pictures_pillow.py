# SPDX-License-Identifier: Apache-2.0
# pictures_pillow.py FOLDER decoded|exact|draft: the same as pictures.lua with Pillow and NumPy, as torchvision's
# transforms do it on Pillow's images; pictures a second.
import glob
import math
import random
import sys
import time

import numpy as np
from PIL import Image

folder, way = sys.argv[1:]
paths = sorted(glob.glob(folder + "/*.jpg"))
mean = np.array([0.485, 0.456, 0.406], np.float32)
std = np.array([0.229, 0.224, 0.225], np.float32)


def rectangle(width, height):
    for _ in range(10):
        target = random.uniform(0.08, 1) * width * height
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    return 0, 0, width, height


def one(path):
    im = Image.open(path)
    if way == "decoded":
        return np.asarray(im)
    x, y, w, h = rectangle(*im.size)
    scale = 1
    if way == "draft":
        while scale < 8 and w / (2 * scale) >= 224 and h / (2 * scale) >= 224:
            scale *= 2
        im.draft("RGB", (im.size[0] // scale, im.size[1] // scale))
    box = (x / scale, y / scale, (x + w) / scale, (y + h) / scale)
    if scale == 1:
        im = im.convert("RGB").crop(tuple(int(v) for v in box)).resize((224, 224), Image.BILINEAR)
    else:
        im = im.convert("RGB").resize((224, 224), Image.BILINEAR, box=box)
    if random.random() < 0.5:
        im = im.transpose(Image.FLIP_LEFT_RIGHT)
    a = np.asarray(im).astype(np.float32).transpose(2, 0, 1) / np.float32(255)
    return np.ascontiguousarray((a - mean[:, None, None]) / std[:, None, None])


random.seed(1)
one(paths[0])
start = time.perf_counter()
for path in paths:
    one(path)
print(len(paths) / (time.perf_counter() - start))
