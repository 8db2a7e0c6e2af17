# SPDX-License-Identifier: Apache-2.0
# input_torch.py FOLDER BATCH WORKERS: the same as input.lua with PyTorch's DataLoader and torchvision; images a second, and
# milliseconds of processor time an image.
import os
import sys
import time

import torch
import torchvision
from torchvision import transforms

folder, batch, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
steps = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])
images = torchvision.datasets.ImageFolder(folder, steps)
loader = torch.utils.data.DataLoader(images, batch, shuffle=True, num_workers=workers, persistent_workers=True,
                                     prefetch_factor=2)
tick = os.sysconf("SC_CLK_TCK")


def processor_time():
    total = time.process_time()
    for worker in loader._iterator._workers if loader._iterator else []:
        with open(f"/proc/{worker.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


for _ in range(4):
    start, used, n = time.perf_counter(), processor_time(), 0
    for x, _ in loader:
        n += len(x)
    rate = n / (time.perf_counter() - start)
    used = (processor_time() - used) / n
print(rate, used * 1e3)
