# SPDX-License-Identifier: Apache-2.0
"""Lua suites on the device, a process a job. One that dies, hangs or breaks the device's context takes no other with it:
it runs again in pieces, so that one test is lost and not a file. A device that does not answer any more ends it."""
import glob
import os
import re
import time

import process

# What a context says that an operator has broken: nothing after it in that process means anything.
BROKEN = re.compile(r"illegal memory access|misaligned address|unspecified launch failure|illegal instruction|"
                    r"device-side assert|device (?:is|was) lost|cudaErrorLaunchFailure|cudaErrorLaunchTimeout")
NONE = "there is no test whose name or file fits"  # an operator may have none in a file
SHARDS = 8  # pieces of a file whose tests have no operators' names


def jobs_of(check, pattern):
    """A job a file."""
    files = sorted(glob.glob(os.path.join(check.root, pattern), recursive=True))
    return [(os.path.relpath(file, check.root), [*check.test(), file]) for file in files]


def ended_well(outcome):
    """It came to its end, and what failed did not break the device's context; a test may speak of such a thing."""
    ended = re.search(r"^\d+ passed, (\d+) failed", outcome.text, re.M)
    return ended and (ended.group(1) == "0" or not BROKEN.search(outcome.text))


def silence(check, limit):
    """Seconds without a word after which a process counts as hung: a test takes well under one of them on a GPU, loading
    cuDNN and finding its plans some."""
    return max(20 * check.scale, limit / 4)


def shards_of(check, job, _):
    """The same tests, each in one of some processes."""
    return [("%s (%d of %d)" % (job[0], i, SHARDS), job[1][:-1] + ["--shard", "%d/%d" % (i, SHARDS), job[1][-1]], *job[2:])
            for i in range(1, SHARDS + 1)]


def an_operator_each(check, job, outcome):
    """Where tests are named KIND/OPERATOR/..., those of the operators whose names the job's filter fits; else shards."""
    names = re.findall(r"^RUN (.*)$", outcome.text, re.M)
    if not all(re.match(r"[a-z_]+/\w+/", name) for name in names):
        return shards_of(check, job, outcome)
    letters = re.search(r"\[[a-z-]+\]$", job[1][-1])
    file = next(word for word in job[1] if word.endswith("_test.lua"))
    return [("%s, %s" % (job[0], op), [*check.test(), "--filter", "^[a-z_]+/%s/" % op, file], *job[2:])
            for op in check.operators() if re.match(letters.group(0) if letters else ".", op)]


def run(check, part, jobs, limit, pieces=shards_of, show_skips=False):
    """All within `limit` seconds; adds what they found to the part, and answers the outcomes of the first round."""
    end = time.monotonic() + limit
    quiet = silence(check, limit)
    outcomes = process.run_all(jobs, check.width, limit, check.env, check.work, quiet)
    broken = []
    for job, outcome in zip(jobs, outcomes):
        if ended_well(outcome) or outcome.timed_out:
            part.add_lua(outcome, show_skips)
        else:
            broken.append((job, outcome))
    for job, outcome in broken:
        if end - time.monotonic() < 5 * check.scale or not check.answers():
            part.add_lua(outcome, show_skips)
            continue
        part.note("%s: %s; it ran again in pieces\n%s" % (outcome.name, outcome.ending(), outcome.tail(3)))
        left = end - time.monotonic()
        again = process.run_all(pieces(check, job, outcome), 2 * check.width, left, check.env, check.work, min(quiet, left / 2))
        for outcome in again:
            if NONE not in outcome.text:
                part.add_lua(outcome, show_skips)
    slowest = sorted(outcomes, key=lambda o: -o.seconds)[:3]
    part.note("slowest: " + ", ".join("%s %.1f s" % (os.path.basename(o.name), o.seconds) for o in slowest))
    return outcomes
