# SPDX-License-Identifier: Apache-2.0
# PyTorch's side of profile.lua: nanoseconds that its profiler costs an operator, with shapes, and with shapes and stacks.
import time
import torch
from torch.profiler import ProfilerActivity, profile

torch.set_num_threads(1)
x = torch.rand(4)
CALLS = 20000


def work():
    for _ in range(CALLS):
        x + 1


def processor_time(fn):
    begin = time.process_time()
    fn()
    return time.process_time() - begin


def profiled(**options):
    with profile(activities=[ProfilerActivity.CPU], **options):
        return processor_time(work)


work()
for name, options in (("shapes", {"record_shapes": True}), ("stacks", {"record_shapes": True, "with_stack": True})):
    profiled(**options)
    off = processor_time(work)
    print(f"{name}\t{(profiled(**options) - off) / CALLS * 1e9:.1f}")
