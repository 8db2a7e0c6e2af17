# SPDX-License-Identifier: Apache-2.0
"""PyTorch's half of order.lua: a line an item, its name and the milliseconds of processor time of a call on one thread,
the best of some."""
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(1)
long, rows, table = torch.rand(1000000), torch.rand(2000, 500), torch.rand(64, 50000)
short, whole = torch.rand(100000, 10), torch.randint(0, 1000, (1000000,))
edges = torch.randint(0, 50000, (500000,))
nodes, features = torch.zeros(50000, 32), torch.rand(500000, 32)
wide = edges.unsqueeze(1).expand(500000, 32)
i, j, flat = edges % 1000, edges % 777, torch.zeros(1000, 1000)
volume, image, scores = torch.randn(128, 256, 128), torch.randn(8, 6, 128, 128), torch.randn(4, 19, 128, 128)
labels = torch.randint(0, 19, (4, 128, 128))
yes, no = torch.rand(1000000) > 0.5, torch.rand(1000000) > 0.5


def put():
    flat[i, j] = 1


items = {
    "sort 1e6": lambda: long.sort(),
    "sort 2000 x 500": lambda: rows.sort(),
    "sort 2000 x 500, axis 1": lambda: rows.sort(0),
    "sort 100000 x 10": lambda: short.sort(),
    "sort 1e6 int64": lambda: whole.sort(),
    "topk 50 of 64 x 50000": lambda: table.topk(50),
    "topk 3 of 100000 x 10": lambda: short.topk(3),
    "median of 2000 x 500": lambda: rows.median(1),
    "unique 1e6 int64": lambda: whole.unique(),
    "searchsorted 1e6 in 1e6": lambda: torch.searchsorted(long, long),
    "scatter_add 500000 x 32": lambda: nodes.scatter_add(0, wide, features),
    "index_add 500000 x 32": lambda: nodes.index_add(0, edges, features),
    "x[{i, j}], 500000": lambda: flat[i, j],
    "x[{i, j}] = v, 500000": put,
    "amax 128x256x128, axis 1": lambda: volume.amax(0),
    "amax 128x256x128, axis 3": lambda: volume.amax(2),
    "softmax 8x6x128x128, axis 2": lambda: image.softmax(1),
    "softmax 8x6x128x128, axis 3": lambda: image.softmax(2),
    "cross_entropy 4x19x128x128": lambda: torch.nn.functional.cross_entropy(scores, labels),
    "logical_and 1e6": lambda: yes.logical_and(no),
    "logical_not 1e6": lambda: yes.logical_not(),
    "linspace 1e6": lambda: torch.linspace(0, 1, 1000000),
}
for name, run in items.items():
    best, begin = float("inf"), time.process_time()
    while time.process_time() - begin < 0.3:
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    print("%s\t%.4f" % (name, best * 1e3), flush=True)
