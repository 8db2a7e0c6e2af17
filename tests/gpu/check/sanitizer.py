# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over a subset: memory accesses of the cases of all operators, races where memory is shared."""
import os
import re

import machine
import process

# Cases by what their names begin with. Operators whose kernels pass values between threads.
SHARING = ("sum", "mean", "amax", "argmax", "logsumexp", "var", "all_finite", "softmax", "log_softmax", "cross_entropy",
           "layer_norm", "batch_norm", "cumsum", "nonzero", "masked_select", "embedding_grad", "index_select_grad",
           "sum_like", "randperm", "clone")
EXACT = {"PERIGEE_MEMORY": "exact"}  # else a tensor's end lies within a larger allocation, where nothing is noticed
FORWARD = "tests/lua/operators/forward_test.lua"
LARGE = "tests/lua/operators/large_test.lua"
GRADIENT = "tests/lua/operators/gradient_test.lua"


def jobs_of(check, tool):
    """Memory: the forward cases of all operators in float64, by first letter, and gradients of some. Races: both sizes
    of what shares memory."""
    def job(tag, words, file, pattern):
        command = [tool, "--tool", words, "--error-exitcode", "86", "--print-limit", "5",
                   "--report-api-errors", "no"] if tool else []  # the plugin looks at every answer itself
        command += [*check.test(), "--filter", pattern]
        return ("%s %s %s" % (words, tag, pattern), command + [os.path.join(check.root, file)], EXACT)

    jobs = [job("forward", "memcheck", FORWARD, "^forward/[%s]" % letters)
            for letters in ("ab", "c", "d-e", "f-k", "l", "m", "n-q", "r", "s", "t-z")]
    jobs += [job("gradient", "memcheck", GRADIENT, "/%s/" % name) for name in ("conv2d", "batch_norm", "layer_norm",
                                                                                "embedding", "max_pool2d", "gather")]
    jobs += [job("large", "memcheck", LARGE, "^large/%s/" % name) for name in ("sum", "softmax", "layer_norm", "add")]
    jobs += [job("forward", "racecheck", FORWARD, "^forward/%s/" % name) for name in SHARING]
    jobs += [job("large", "racecheck", LARGE, "^large/%s/" % name) for name in SHARING[:12] if name != "all_finite"]
    return jobs


def rehearse(check, part, limit):
    """The same tests without the tool: that the filters choose some, and how long they take."""
    part.note("rehearsed without compute-sanitizer")
    for outcome in process.run_all(jobs_of(check, None), check.width, limit, check.env, check.work):
        part.add_lua(outcome)
        if re.search(r"^0 passed, 0 failed, 0 skipped", outcome.text, re.M):
            part.fail(outcome.name, "the filter chooses no case")


def sanitizer(check, part, limit):
    if check.rehearsal:
        rehearse(check, part, limit)
        return
    tool = machine.find_tool("compute-sanitizer")
    if not tool:
        part.skip("compute-sanitizer is not here")
        return
    probe = process.run([tool, "--tool", "memcheck", check.perigee, "-e",
                         'print((require("perigee").ones{3, device="%s"} + 1):sum():item())' % check.device],
                        60, check.env)
    if "ERROR SUMMARY" not in probe.text or "Device not supported" in probe.text:
        part.skip("compute-sanitizer does not work here: " + probe.tail(4).replace("\n", " / "))
        return
    unfinished = empty = 0
    for outcome in process.run_all(jobs_of(check, tool), check.width, limit - probe.seconds, check.env, check.work):
        summary = re.search(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", outcome.text)
        tests = re.search(r"^(\d+) passed, (\d+) failed", outcome.text, re.M)
        if outcome.timed_out:
            unfinished += 1
            part.note("not finished: " + outcome.name)
        elif not summary:
            part.fail(outcome.name, "no summary: %s\n%s" % (outcome.ending(), outcome.tail()))
        elif int(summary.group(1) or summary.group(2)) > 0:
            part.fail(outcome.name, "\n".join(line for line in outcome.text.splitlines() if line.startswith("=")))
        elif tests and int(tests.group(1)) + int(tests.group(2)) == 0:
            empty += 1
        elif not tests or int(tests.group(2)) > 0:
            last = (re.findall(r"^RUN (.*)$", outcome.text, re.M) or ["none"])[-1]
            outcome.text = re.sub(r"^RUN .*\n", "", outcome.text, flags=re.M)
            part.fail(outcome.name, "clean, but the tests under it failed: %s, the last in %s\n%s" % (
                outcome.ending(), last, outcome.tail(30)))
        else:
            part.passed += 1
    part.skipped += unfinished + empty
    if empty:
        part.note("%d filters chose no case" % empty)
