# SPDX-License-Identifier: Apache-2.0
"""The first two minutes: what devices there are, whether each kind of work does at all, plans, and the first figures. The
report is written when this is over."""
import re

import bench
import lua
import process

FIGURES = ("launch", "copies", "matmul", "elementwise")  # of the benchmark, Perigee's side alone


def explain(check, part):
    """Why there is no device."""
    for command in ("plugins", "doctor"):
        outcome = process.run([check.perigee, command], 60, check.env)
        part.note("perigee %s:\n```\n%s\n```" % (command, outcome.text.strip()))


def _listed(check, part):
    outcome = process.run([check.perigee, "devices"], 60, check.env)
    part.note("devices:\n```\n%s\n```" % outcome.text.strip())
    if re.search(r"^%s\b" % re.escape(check.device), outcome.text, re.M):
        part.passed += 1
    else:
        part.fail("perigee devices", "%s is not listed" % check.device)
        explain(check, part)


def _first_operator(check, part):
    code = 'assert((require("perigee").ones { 3, device = "%s" } * 2):sum():item() == 6)' % check.device
    outcome = process.run([check.perigee, "-e", code], 60, check.env)
    part.note("the first operator of a process is done after %.2f s" % outcome.seconds)
    if outcome.ok:
        part.passed += 1
    else:
        part.fail("the first operator", "%s\n%s" % (outcome.ending(), outcome.tail()))


def plans(check, part, limit):
    """Capture: tests/cuda_plan/plan_test.cpp."""
    emulated = check.program("cuda_plan_test") if check.rehearsal else None
    program = emulated or check.program("gpu_capture_test")
    if not program:
        part.note("capture was not tested: no build here has its program")
        part.skipped += 1
        return
    env = dict(check.env)
    if not emulated and check.plugin():
        env["PERIGEE_CAPTURE_PLUGIN"] = check.plugin()
    outcome = process.run([program], limit, env, check.work, "capture")
    tests = re.search(r"All tests passed \(\d+ assertions in (\d+) test cases\)", outcome.text)
    if "capture: skipped" in outcome.text:
        part.skipped += 1
        part.note(outcome.tail(8))
    elif outcome.ok and tests:
        part.passed += int(tests.group(1))
    else:
        part.fail("capture", "%s\n%s" % (outcome.ending(), outcome.tail(60)))


def smoke(check, part, limit):
    _listed(check, part)
    _first_operator(check, part)
    jobs = lua.jobs_of(check, "tests/gpu/smoke/smoke_test.lua")
    lua.run(check, part, jobs, limit * 0.6, show_skips=True)
    plans(check, part, limit * 0.1)
    bench.figures(check, part, limit * 0.25, FIGURES)
