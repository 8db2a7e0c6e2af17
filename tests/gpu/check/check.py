# SPDX-License-Identifier: Apache-2.0
"""The parts in their order, each within its time, and what they share: which build, which device, which folders."""
import os
import time
import traceback

import bench
import build
import machine
import process
import sanitizer
import suites
from part import Part

# Seconds: what a part may take, and what is kept back for it while parts before it run.
BUDGETS = {"build": (270, 0), "operators": (150, 30), "vectors": (40, 10), "lua": (60, 15), "examples": (60, 20),
           "plugin": (60, 20), "sanitizer": (130, 40), "bench": (130, 60)}
NAMES = list(BUDGETS)


REHEARSED = 20  # an emulated device takes so many times as long


class Check:
    def __init__(self, options, root, work):
        self.root, self.work = root, work
        self.device, self.rehearsal = options.device, options.rehearsal
        self.small = options.small or self.rehearsal
        self.width, self.rounds = options.jobs, 2
        self.python, self.torch_device = options.python, options.torch_device
        self.env, self.test_build = dict(os.environ), None
        self.options = options
        self.tree = self.building = self.note = None
        self.perigee = None
        self._asked, self._reason = None, None

    def use(self, prefix, tests=None):
        self.perigee = os.path.join(prefix, "bin/perigee")
        self.test_build = tests or self.test_build

    def test(self, device=""):
        """The command that runs tests on the device, or on another; None: on none of its own."""
        where = ["--device", device or self.device] if device is not None else []
        holes = os.path.join(self.root, "tests/cases/absent.lua")
        return [self.perigee, "test", "--verbose", "--absent", holes, *where]

    def prepare(self):
        """Unpacks; with --build DIR there is nothing to unpack."""
        os.makedirs(self.work, exist_ok=True)
        self.tree = build.Tree(self.root, self.work)
        self.env = self.tree.environment()
        self.env["CUDA_MODULE_LOADING"] = self.env.get("CUDA_MODULE_LOADING", "LAZY")
        if self.options.plugins:
            self.env["PERIGEE_PLUGIN_PATH"] = os.path.abspath(self.options.plugins)
        if self.options.build:
            folder = os.path.abspath(self.options.build)
            self.use(folder, folder if os.path.exists(os.path.join(folder, "CTestTestfile.cmake")) else None)
        elif self.tree.has_carried:
            self.use(self.tree.carried)

    def no_device(self):
        """Why the build in use has no such device; None: it has. Asked once a build."""
        if self._asked != self.perigee:
            self._asked = self.perigee
            code = 'require("perigee").ones { 1, device = "%s" }' % self.device
            outcome = process.run([self.perigee, "-e", code], 60, self.env)
            self._reason = None if outcome.ok else (outcome.text.strip() or outcome.ending()).splitlines()[0]
        return self._reason

    def usable(self, folder):
        names = ["bin/perigee", "lib/libperigee.so"]
        names += ["lib/perigee/plugins/%s.so" % n for n in ("cpu", "ops", "layers", "optimizers", "formats", "cuda")]
        return [name for name in names if not os.path.exists(os.path.join(folder, name))]


def build_part(check, part, limit):
    """From nothing, on this machine. With a carried build the other parts begin while this goes on."""
    if check.note:
        part.note(check.note)
    if check.building:
        outcomes = check.building.wait(limit)
        if not outcomes:  # it must not go on beside what is measured
            process.kill_all()
            part.note("not finished in time")
            outcomes = check.building.wait(10) or []
    else:
        outcomes = check.tree.build(limit, os.cpu_count())
    for outcome in outcomes:
        if outcome.ok:
            part.passed += 1
            part.note("%s: %.0f s" % (outcome.name, outcome.seconds))
        else:
            wrong = [line for line in outcome.text.splitlines() if "error" in line.lower() or line.startswith("FAILED")]
            part.fail(outcome.name, "%s\n%s\n%s" % (outcome.ending(), "\n".join(wrong[:15]), outcome.tail(15)))
    missing = check.usable(check.tree.fresh)
    if missing:
        part.note("not there after the build: " + ", ".join(missing))
        return
    check.use(check.tree.fresh, check.tree.fresh)
    objects = os.path.join(check.tree.fresh, "plugins/cuda/CMakeFiles/perigee_plugin_cuda.dir")
    folder = os.path.join(check.root, "tests/cuda_budget")
    budget = process.run(["luajit", folder + "/budget.lua", objects, folder + "/budget.txt"], 60, check.env)
    part.note("registers, stack, spills: " + budget.tail(1))
    if budget.ok:
        part.passed += 1
    else:
        part.fail("the budget of registers", budget.tail(30))


RUN = {"build": build_part, "operators": suites.operators, "vectors": suites.vectors, "lua": suites.lua,
       "examples": suites.examples, "plugin": suites.plugin, "sanitizer": sanitizer.sanitizer, "bench": bench.bench}


def order(check, wanted):
    """The build comes first, or, where a carried one serves, behind what can do without it."""
    names = [name for name in NAMES if name in wanted]
    if check.options.build:
        names = [name for name in names if name != "build"]
    elif "build" in names and check.perigee and check.no_device():
        check.note = "the carried build was left: " + check.no_device()
        check.perigee = None
    elif "build" in names and check.perigee:
        names.remove("build")
        at = next((i for i, name in enumerate(names) if name in ("plugin", "sanitizer", "bench")), len(names))
        names.insert(at, "build")
        check.building = build.Background(check.tree.build, BUDGETS["build"][0], os.cpu_count())
    return names


def run_parts(check, names, limit, done):
    """Calls done(parts) after each part, which writes the report."""
    scale = REHEARSED if check.rehearsal else 1
    end, parts = time.monotonic() + limit * scale, []
    for at, name in enumerate(names):
        part = Part(name, BUDGETS[name][0] * scale)
        parts.append(part)
        start = time.monotonic()
        left = end - start - sum(BUDGETS[later][1] * scale for later in names[at + 1:])
        if name != "build" and not check.perigee:
            part.skip("there is no build to run it with")
        elif left < 5:
            part.skip("no time was left")
        elif name not in ("build", "plugin") and check.no_device():
            part.fail(check.device, check.no_device())
        else:
            try:
                RUN[name](check, part, min(part.budget, left))
            except Exception:  # one part's mistake is not the others'
                part.fail("gpu_check itself", traceback.format_exc())
        part.finish(time.monotonic() - start)
        done(parts)
    return parts


def facts(check):
    return machine.describe(check.root, check.python)
