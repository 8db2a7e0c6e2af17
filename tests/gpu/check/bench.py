# SPDX-License-Identifier: Apache-2.0
"""The benchmark: Perigee and the machine's PyTorch, eager and through torch.compile, by turns, row by row; and Perigee's
two ways of computing batch norms and pooling. The report is written after every item."""
import os
import statistics
import time

import process
from turns import Side

# By what matters most: the later ones are left out when time is short.
ITEMS = ("launch", "copies", "matmul", "elementwise", "reductions", "softmax", "attention", "layer_norm", "gpt2", "resnet50",
         "norm_pool", "adam", "small_models", "convolution", "matmul_tf32", "convolution_tf32", "resnet50_f32",
         "resnet50_tf32", "gpt2_f32", "gpt2_tf32")
OURS, OURS_COMPILED, EAGER, COMPILED = "Perigee", "pg.compile", "PyTorch", "torch.compile"
MODELS = ("gpt2", "resnet50", "small_models", "gpt2_f32", "resnet50_f32", "gpt2_tf32", "resnet50_tf32")  # have steps
WAYS = {"cuDNN": "cudnn", "own kernels": "own"}  # of batch norm and pooling
ROUNDS, PREPARATION, BLOCK = 5, 150, 30  # of a row; seconds at most until a side is ready, and for a block
# What torch.compile takes longest for comes first; a process each, so many at a time.
COMPILE, AT_ONCE, COMPILING = ("gpt2", "resnet50", "softmax", "attention", "layer_norm", "elementwise", "small_models",
                               "norm_pool", "reductions", "gpt2_f32", "resnet50_f32", "gpt2_tf32", "resnet50_tf32"), 6, 170


def _sides(check, item):
    folder = os.path.join(check.root, "tests/gpu/bench")
    size = "small" if check.small else "full"
    ours = [check.perigee, os.path.join(folder, "turns.lua"), check.device, size, item]
    sides = [(OURS, ours, check.env)]
    if item in MODELS:
        sides.append((OURS_COMPILED, ours + ["compiled"], check.env))
    for name, way in WAYS.items() if item == "norm_pool" else ():
        sides.append((name, ours, dict(check.env, PERIGEE_CUDA_NORMS=way, PERIGEE_CUDA_POOLS=way)))
    if check.torch_device:
        theirs = [check.python, os.path.join(folder, "turns.py"), check.torch_device, size]
        # With the environment as it was: it brings libraries of its own.
        sides.append((EAGER, theirs + ["eager", item], None))
        if check.options.compile:
            sides.append((COMPILED, theirs + ["compiled", item], None))
    return sides


def compile_ahead(check):
    """Lets torch.compile fill its cache beside what is not measured: an item is ready in seconds then."""
    jobs = [(item, _sides(check, item)[-1][1]) for item in COMPILE]
    return process.run_all(jobs, AT_ONCE, COMPILING * check.scale, dict(os.environ), check.work)


def _measure(check, commands, rounds, end):
    """All sides are made ready at once, then take turns; answers them."""
    sides = [Side(name, command, env, check.work) for name, command, env in commands]
    ready = min(end, time.monotonic() + PREPARATION * check.scale)
    for side in sides:
        side.prepare(ready)
    for row in dict.fromkeys(row for side in sides for row in side.rows):
        for _ in range(rounds):
            for side in sides:
                side.measure(row, min(end, time.monotonic() + BLOCK * check.scale))
    for side in sides:
        side.close()
    return sides


def _tell(part, item, sides):
    for side in sides:
        problems = side.failures + ([(item, side.dead)] if side.dead else [])
        for name, message in problems:
            if side.name in (OURS, OURS_COMPILED) or side.name in WAYS:
                part.fail("%s: %s" % (side.name, name), message)
            else:
                part.note("%s: %s: %s" % (side.name, name, message))
        for note in side.notes:
            if note not in part.notes:
                part.note(note)


def _spread(values):
    return "%.4g (%.4g to %.4g)" % (statistics.median(values), min(values), max(values)) if values else ""


def _ratio(ours, theirs, more):
    """Over 1: ours is that much faster. Of the medians of rounds taken by turns."""
    if not ours or not theirs:
        return ""
    a, b = statistics.median(ours), statistics.median(theirs)
    if not a or not b:
        return ""
    return "%.2f" % (a / b if more else b / a)


class Table:
    """What all items so far have given."""

    def __init__(self):
        self.units, self.values = {}, {}

    def add(self, sides):
        for side in sides:
            for row, values in side.values.items():
                self.units[row] = side.rows.get(row, self.units.get(row, ("", "less")))
                self.values.setdefault(side.name, {})[row] = values

    def of(self, side, row):
        return self.values.get(side, {}).get(row, [])

    def show(self, part, title):
        part.tables = []
        rows = []
        for row, (unit, better) in self.units.items():
            sides = ours, own, eager, compiled = [self.of(side, row) for side in (OURS, OURS_COMPILED, EAGER, COMPILED)]
            rows.append([row, unit, *map(_spread, sides), _ratio(ours, eager, better == "more"),
                         _ratio(own or ours, compiled, better == "more")])
        part.table(title, ["", "unit", OURS, OURS_COMPILED, EAGER, COMPILED, "to eager", "to compile"], rows)
        cudnn, own = WAYS
        ways = [[row, self.units[row][0], _spread(self.of(cudnn, row)), _spread(values),
                 _ratio(values, self.of(cudnn, row), self.units[row][1] == "more")]
                for row, values in self.values.get(own, {}).items()]
        if ways:
            part.table("Batch norm and pooling by cuDNN, where it has an engine, and by the own kernels "
                       "(PERIGEE_CUDA_NORMS, PERIGEE_CUDA_POOLS; by default norms and max pooling are own, averages cuDNN's). Over 1: the own "
                       "kernels are that much faster",
                       ["", "unit", cudnn, own, "ratio"], ways)


def bench(check, part, limit):
    end, longest, table = time.monotonic() + limit, 0.0, Table()
    if not check.torch_device:
        part.note("no PyTorch to compare with")
    elif not check.small and check.options.compile:
        if not check.compiling:
            check.compiling = process.Background(compile_ahead, check)
        if check.compiling.wait(limit * 0.4) is None:
            process.kill_all()
            part.note("torch.compile was not ready with all in time")
        part.note("compiled ahead after %.0f s" % (time.monotonic() - end + limit))
    rounds = 2 if check.small else ROUNDS
    part.note("%d rounds by turns, %s sizes; medians, least to most. Ratios over 1: Perigee is that much faster. PyTorch "
              "as its users get it fastest: channels-last, fused optimizers, cudnn.benchmark." %
              (rounds, "small" if check.small else "full"))
    items = check.options.items or ITEMS
    for at, item in enumerate(items):
        start = time.monotonic()
        if end - start < 10 or (end - start < longest and not check.rehearsal):
            part.note("no time was left for " + ", ".join(items[at:]))
            break
        sides = _measure(check, _sides(check, item), rounds, end)
        _tell(part, item, sides)
        table.add(sides)
        part.passed += sum(len(side.values) for side in sides if side.name in (OURS, OURS_COMPILED))
        table.show(part, "Perigee and PyTorch")
        check.save()
        longest = max(longest, time.monotonic() - start)


def figures(check, part, limit, items):
    """Perigee's side of some items: the first figures of a machine."""
    end, table = time.monotonic() + limit, Table()
    for item in items:
        if end - time.monotonic() < 3:
            part.note("no time was left for figures of " + item)
            continue
        sides = _measure(check, _sides(check, item)[:1], 3, end)
        _tell(part, item, sides)
        table.add(sides)
        part.passed += len(sides[0].values)
    part.table("First figures", ["", "unit", OURS],
               [[row, unit, _spread(table.of(OURS, row))] for row, (unit, _) in table.units.items()])
