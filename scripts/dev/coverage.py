# SPDX-License-Identifier: Apache-2.0
"""coverage.py FILE: prints what gcovr counted (its JSON): lines by folder, and the longest functions that nothing called."""

import collections
import json
import sys

LONGEST = 20


def folder(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("bindings", "plugins") else parts[0]


def code_lines(file):
    """Those that have code: gcovr lists comments and braces too."""
    return [line for line in file["lines"] if not line["gcovr/noncode"] and not line["gcovr/excluded"]]


def uncalled(file):
    """(lines, where, name) of each function that was not called; it ends where the next one begins."""
    functions = sorted(file["functions"], key=lambda f: f["lineno"])
    starts = sorted({f["lineno"] for f in functions})
    called = {f["lineno"] for f in functions if f["execution_count"] > 0}  # instances of one template share a line
    for f in functions:
        first = f["lineno"]
        if first in called:
            continue
        called.add(first)
        after = next((s for s in starts if s > first), 10**9)
        lines = sum(1 for line in code_lines(file) if first <= line["line_number"] < after and line["count"] == 0)
        yield lines, "%s:%d" % (file["file"], first), f["name"]


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        files = json.load(stream)["files"]
    totals, gaps = collections.defaultdict(lambda: [0, 0]), []
    for file in files:
        lines = code_lines(file)
        for name in (folder(file["file"]), "all"):
            totals[name][0] += sum(1 for line in lines if line["count"] > 0)
            totals[name][1] += len(lines)
        gaps += uncalled(file)
    print("%-24s %8s %8s %8s" % ("folder", "lines", "ran", "%"))
    for name in sorted(totals, key=lambda n: (n == "all", n)):
        ran, lines = totals[name]
        print("%-24s %8d %8d %8.1f" % (name, lines, ran, 100 * ran / max(1, lines)))
    gaps.sort(reverse=True)
    print("\n%d functions were not called; the longest:" % len(gaps))
    for lines, where, name in gaps[:LONGEST]:
        print("%5d  %s  %s" % (lines, where, name[:100]))


main()
