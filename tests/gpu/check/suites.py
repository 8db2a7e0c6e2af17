# SPDX-License-Identifier: Apache-2.0
"""The parts that run tests: programs in C++, and the Lua suites on the device."""
import glob
import os
import re
import time

import process


# What a context says that an operator has broken: nothing after it in that process means anything.
BROKEN = re.compile(r"illegal memory access|misaligned address|unspecified launch failure|illegal instruction|"
                    r"device-side assert|device (?:is|was) lost|cudaErrorLaunchFailure")


def lua_jobs(check, folder, *options):
    """A job a file, of the folder's rooms too: a file that dies takes no other with it."""
    files = sorted(glob.glob(os.path.join(check.root, folder, "**", "*_test.lua"), recursive=True))
    return [(os.path.relpath(file, check.root),
             [*check.test(), *options, file]) for file in files]


# The longest file, in parts: the operators by their first letters.
SPLIT = {"gradient_test.lua": ("ab", "c", "d-k", "l", "m-o", "p-r", "s", "t-z")}


def split(jobs):
    for name, command in jobs:
        letters = SPLIT.get(os.path.basename(name))
        if not letters:
            yield name, command
        for some in letters or ():
            yield name, command + ["--filter", "^[a-z_]+/[%s]" % some]


def ended_well(outcome):
    return re.search(r"^\d+ passed, \d+ failed", outcome.text, re.M) and not BROKEN.search(outcome.text)


def plugin(check, part, limit):
    """That the plugin is there and says what it has; then the programs in C++ that want a device."""
    listed = process.run([check.perigee, "devices"], 60, check.env)
    part.note("devices:\n```\n%s\n```" % listed.text.strip())
    kind = check.device.split(":")[0]
    if re.search(r"^%s:\d+" % kind, listed.text, re.M):
        part.passed += 1
    else:
        plugins = process.run([check.perigee, "plugins"], 60, check.env)
        part.fail("perigee devices", "there is no %s\n%s" % (check.device, plugins.text))
    one = process.run([check.perigee, "-e", 'local pg = require "perigee"; assert((pg.ones{3, device="%s"} * 2):sum()'
                       ':item() == 6)' % check.device], 60, check.env)
    part.note("the first operator of a process is done after %.2f s" % one.seconds)
    if one.ok:
        part.passed += 1
    else:
        part.fail("the first operator", "%s\n%s" % (one.ending(), one.tail()))
    folder = check.test_build
    if not folder:
        part.note("no programs in C++: there is no build with tests")
        return
    junit = os.path.join(check.work, "ctest.xml")
    if os.path.exists(junit):
        os.remove(junit)
    outcome = process.run(["ctest", "--test-dir", folder, "-L", "gpu", "-j4", "--timeout", str(int(limit)),
                           "--output-junit", junit], limit, check.env)
    if "No tests were found" in outcome.text:
        part.note("no program in C++ has the label gpu")
    elif os.path.exists(junit):
        part.add_junit(junit)
    else:
        part.fail("ctest", "%s\n%s" % (outcome.ending(), outcome.tail()))


def _run_lua(check, part, jobs, limit, show_skips=False):
    outcomes = process.run_all(jobs, check.width, limit, check.env, check.work)
    for outcome in outcomes:
        part.add_lua(outcome, show_skips)
    _note_slowest(part, outcomes)


def _note_slowest(part, outcomes):
    slowest = sorted(outcomes, key=lambda o: -o.seconds)[:3]
    part.note("slowest: " + ", ".join("%s %.1f s" % (os.path.basename(o.name), o.seconds) for o in slowest))


def operators(check, part, limit):
    """Every case of every operator: against references, against the CPU, all dtypes, views, gradients, bad input. A
    file whose process did not live to its end runs again, a process an operator: then the others' results are known."""
    end = time.monotonic() + limit
    jobs = sorted(split(lua_jobs(check, "tests/lua/operators")), key=lambda job: os.path.basename(job[0]) not in SPLIT)
    outcomes = process.run_all(jobs, check.width, limit, check.env, check.work)
    for outcome in outcomes:
        if ended_well(outcome) or outcome.timed_out:
            part.add_lua(outcome)
            continue
        part.note("%s broke off and ran again, operator by operator" % outcome.name)
        letters = re.search(r"\[[a-z-]+\]$", outcome.command[-1])
        jobs = _an_operator_each(check, outcome.name, letters.group(0) if letters else ".")
        for again in process.run_all(jobs, 2 * check.width, end - time.monotonic(), check.env, check.work):
            part.add_lua(again)
    _note_slowest(part, outcomes)


def _an_operator_each(check, name, letters):
    code = 'print(table.concat(require("perigee.native").op_names(), " "))'
    names = process.run([check.perigee, "-e", code], 30, check.env).text.split()
    return [("%s, %s" % (name, op), [*check.test(), "--filter", "^[a-z_]+/%s/" % op, os.path.join(check.root, name)])
            for op in names if re.match(letters, op)]


def vectors(check, part, limit):
    """What PyTorch computed, in float64."""
    folder = os.path.join(check.root, "tests")
    command = [check.perigee, folder + "/vectors.lua", folder + "/vectors/data", check.device]
    part.add_lua(process.run(command, limit, check.env, check.work, "vectors"), True)


def lua(check, part, limit):
    """The suites of the language, with the device in force; and those about a second device, with it as that;
    and tensors of more than 2^31 elements."""
    jobs = lua_jobs(check, "tests/gpu")  # more than 2^31 elements: the longest comes first
    jobs += [job for job in lua_jobs(check, "tests/lua") if not job[0].startswith("tests/lua/operators/")
             and not job[0].endswith("vectors_test.lua")]
    for name in ("device", "stream"):
        file = "tests/lua/devices/%s_test.lua" % name
        jobs.append((file + " beside the CPU", [*check.test(None), os.path.join(check.root, file)],
                     {"PERIGEE_TEST_SECOND": check.device}))
    file = "tests/lua/kernels/norm_pool_test.lua"
    jobs.append((file + " the other way", [*check.test(), os.path.join(check.root, file)],
                 {"PERIGEE_CUDA_NORMS": "cudnn", "PERIGEE_CUDA_POOLS": "own"}))
    _run_lua(check, part, jobs, limit, True)


def rehearse_examples(check, part, limit):
    """An emulated device takes hours for all digits: a few are compared with the processor."""
    script = os.path.join(check.root, "tests/cuda/digits.lua")
    jobs = [(name, [check.perigee, script, name + ".lua", check.device]) for name in ("01_digits", "02_own_loop")]
    for outcome in process.run_all(jobs, 2, limit, check.env, check.work):
        part.note(outcome.tail(1))
        if outcome.ok:
            part.passed += 1
        else:
            part.fail(outcome.name, "%s\n%s" % (outcome.ending(), outcome.tail()))


def examples(check, part, limit):
    """Both learn, and end with a model that predicts what the saved one does."""
    if check.rehearsal:
        rehearse_examples(check, part, limit)
        return
    jobs = []
    for name in ("01_digits", "02_own_loop"):
        command = [check.perigee, os.path.join(check.root, "examples", name + ".lua"), "--device", check.device]
        command += ["--save", os.path.join(check.work, name + ".safetensors")]
        jobs.append((name, command + (["--epochs", "2"] if check.small else [])))
    least = 60.0 if check.small else 95.0
    for outcome in process.run_all(jobs, 2, limit, check.env, check.work):
        accuracy = re.search(r"accuracy on \d+ held-out digits: ([\d.]+) %", outcome.text)
        if not outcome.ok or not accuracy:
            part.fail(outcome.name, "%s\n%s" % (outcome.ending(), outcome.tail()))
        elif float(accuracy.group(1)) < least:
            part.fail(outcome.name, "an accuracy of %s %%, less than %s" % (accuracy.group(1), least))
        else:
            part.passed += 1
            part.note("%s: accuracy %s %%, %.1f s" % (outcome.name, accuracy.group(1), outcome.seconds))
