# SPDX-License-Identifier: Apache-2.0
"""The parts that run tests: programs in C++, and the Lua suites on the device."""
import os
import re

import lua as lua_suites
import process

# Random functions and programs: each kernel that is made of one takes NVRTC a fifth of a second.
FEWER = {"PERIGEE_FUSED": "30", "PERIGEE_PROGRAMS": "30", "PERIGEE_LINES": "10"}
# The longest file, in parts: the operators by their first letters.
SPLIT = {"gradient_test.lua": ("ab", "c", "d-k", "l", "m-o", "p-r", "s", "t-z")}


def split(jobs):
    for name, command in jobs:
        letters = SPLIT.get(os.path.basename(name))
        if not letters:
            yield name, command
        for some in letters or ():
            yield name, command + ["--filter", "^[a-z_]+/[%s]" % some]


def programs(check, part, limit):
    """The programs in C++ that want a device."""
    folder = check.test_build
    if not folder:
        part.skip("there is no build with tests")
        return
    junit = os.path.join(check.work, "ctest.xml")
    if os.path.exists(junit):
        os.remove(junit)
    which = ["-R", "^contract_cuda_standin$"] if check.rehearsal else ["-L", "gpu"]
    outcome = process.run(["ctest", "--test-dir", folder, *which, "-j4", "--timeout", str(int(limit * 0.8)),
                           "--output-junit", junit], limit, check.env)
    if "No tests were found" in outcome.text:
        part.note("no program in C++ has the label gpu")
    elif os.path.exists(junit):
        part.add_junit(junit)
    else:
        part.fail("ctest", "%s\n%s" % (outcome.ending(), outcome.tail()))


def operators(check, part, limit):
    """Every case of every operator: against references, against the CPU, all dtypes, views, gradients, bad input."""
    jobs = list(split(lua_suites.jobs_of(check, "tests/lua/operators/*_test.lua")))
    jobs.sort(key=lambda job: os.path.basename(job[0]) not in SPLIT)
    lua_suites.run(check, part, jobs, limit, lua_suites.an_operator_each)


def vectors(check, part, limit):
    """What PyTorch computed, in float64."""
    folder = os.path.join(check.root, "tests")
    command = [check.perigee, folder + "/vectors.lua", folder + "/vectors/data", check.device]
    part.add_lua(process.run(command, limit, check.env, check.work, "vectors"), True)


def lua(check, part, limit):
    """The suites of the language, with the device in force; and those about a second device, with it as that;
    and tensors of more than 2^31 elements."""
    jobs = lua_suites.jobs_of(check, "tests/gpu/huge_test.lua")  # the longest comes first
    jobs += [(*job, FEWER) for job in lua_suites.jobs_of(check, "tests/lua/**/*_test.lua")
             if not job[0].startswith("tests/lua/operators/") and not job[0].endswith("vectors_test.lua")]
    for name in ("device", "stream"):
        file = "tests/lua/devices/%s_test.lua" % name
        jobs.append((file + " beside the CPU", [*check.test(None), os.path.join(check.root, file)],
                     {"PERIGEE_TEST_SECOND": check.device}))
    file = "tests/lua/kernels/norm_pool_test.lua"
    for way in ("own", "cudnn"):
        jobs.append((file + " by PERIGEE_CUDA_NORMS and POOLS = " + way, [*check.test(), os.path.join(check.root, file)],
                     {"PERIGEE_CUDA_NORMS": way, "PERIGEE_CUDA_POOLS": way}))
    lua_suites.run(check, part, jobs, limit, show_skips=True)


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
