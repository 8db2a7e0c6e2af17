# SPDX-License-Identifier: Apache-2.0
"""The benchmark: Perigee and the machine's PyTorch by turns, compared item by item; and Perigee's two ways of computing
batch norms and pooling."""
import os
import statistics
import time

import process


def _read(text, into, part, side):
    """Adds the values of lines ITEM UNIT BETTER VALUE... to those of earlier rounds."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and words[1] == "failed":
            if side != "PyTorch":
                part.fail(words[0], " ".join(words[2:]))
            else:
                part.note("%s: %s failed: %s" % (side, words[0], " ".join(words[2:])))
        elif len(words) >= 4 and words[2] in ("less", "more"):
            try:
                values = [float(word) for word in words[3:]]
            except ValueError:
                continue
            into.setdefault(words[0], (words[1], words[2], []))[2].extend(values)


def _spread(values):
    return "%.4g (%.4g to %.4g)" % (statistics.median(values), min(values), max(values))


def _rows(ours, theirs):
    """A ratio over 1: Perigee is that much faster."""
    rows = []
    for name in list(ours) + [name for name in theirs if name not in ours]:
        unit, better, values = ours.get(name, theirs.get(name))
        row = [name, unit, _spread(values) if name in ours else "", "", ""]
        if name in theirs:
            other = theirs[name][2]
            row[3] = _spread(other)
            if name in ours:
                a, b = statistics.median(values), statistics.median(other)
                ratio = (a / b if better == "more" else b / a) if a and b else 0
                row[4] = "%.2f" % ratio
        rows.append(row)
    return rows


def bench(check, part, limit):
    folder = os.path.join(check.root, "tests/gpu/bench")
    size = "small" if check.small else "full"
    commands = [("Perigee", [check.perigee, os.path.join(folder, "bench.lua"), check.device, size], check.env)]
    if check.torch_device:
        # With the environment as it was: it brings libraries of its own.
        commands.append(("PyTorch", [check.python, os.path.join(folder, "bench.py"), check.torch_device, size], None))
    else:
        part.note("no PyTorch to compare with")
    found = {"Perigee": {}, "PyTorch": {}}
    for side, way in (("cuDNN", "cudnn"), ("own kernels", "own")):
        env = dict(check.env, PERIGEE_CUDA_NORMS=way, PERIGEE_CUDA_POOLS=way)
        commands.append((side, commands[0][1] + ["norm_pool"], env))
        found[side] = {}
    end, rounds, last = time.monotonic() + limit, 0, 0.0
    for number in range(check.rounds):
        start = time.monotonic()
        if number and end - start < 1.2 * last:
            break
        for side, command, env in commands:
            outcome = process.run(command, end - time.monotonic(), env, check.work, side)
            _read(outcome.text, found[side], part, side)
            if not outcome.ok and side != "PyTorch":
                part.fail("bench.lua", "%s\n%s" % (outcome.ending(), outcome.tail()))
            elif not outcome.ok:
                part.note("%s: %s: %s" % (side, outcome.ending(), outcome.tail(3)))
        rounds, last = rounds + 1, time.monotonic() - start
    part.passed += len(found["Perigee"])
    part.note("%d rounds by turns, %s sizes; medians, least to most. Ratios over 1: Perigee is that much faster." %
              (rounds, size))
    part.table("Perigee and PyTorch", ["", "unit", "Perigee", "PyTorch", "ratio"],
               _rows(found["Perigee"], found["PyTorch"]))
    part.table("Batch norm and pooling: cuDNN, where it has an engine, and the own kernels (PERIGEE_CUDA_NORMS and "
               "PERIGEE_CUDA_POOLS: cudnn, own). Over 1: cuDNN is that much faster. By default norms are own, pools cuDNN's",
               ["", "unit", "cuDNN", "own kernels", "ratio"], _rows(found["cuDNN"], found["own kernels"]))
