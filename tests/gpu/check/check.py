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
import smoke
import suites
from part import Part

# Seconds: what a part may take, and what is kept back for it while parts before it run.
BUDGETS = {"smoke": (120, 60), "build": (270, 0), "operators": (150, 40), "vectors": (40, 10), "lua": (170, 30),
           "examples": (60, 20), "programs": (60, 20), "sanitizer": (130, 40), "bench": (500, 100)}
NAMES = list(BUDGETS)
APART = ("bench",)  # when it is asked for by name: it wants all the time of a run
REHEARSED = 20  # an emulated device takes so many times as long


class Check:
    def __init__(self, options, root, work):
        self.root, self.work = root, work
        self.device, self.rehearsal = options.device, options.rehearsal
        self.scale = REHEARSED if self.rehearsal else 1
        self.small = options.small or self.rehearsal
        self.width = options.jobs
        self.python, self.torch_device = options.python, options.torch_device
        self.env, self.test_build = dict(os.environ), None
        self.options = options
        self.save = lambda: None  # writes the report as it is
        self.tree = self.building = self.compiling = self.note = None
        self.mismatch = False  # between the carried build and this machine
        self.perigee = self.gone = None  # gone: why the device does not answer any more
        self._asked, self._reason, self._operators = None, None, None

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
        """Why the build in use has no such device, or it does not answer any more; None: it has. Asked once a build."""
        if self._asked != self.perigee:
            self._asked = self.perigee
            self._reason = self._ask()
        return self._reason or self.gone

    def _ask(self):
        code = 'print((require("perigee").ones { 1, device = "%s" } + 1):item())' % self.device
        outcome = process.run([self.perigee, "-e", code], 60, self.env)
        if outcome.ok and outcome.text.strip() == "2":
            return None
        return (outcome.text.strip() or outcome.ending()).splitlines()[0]

    def answers(self):
        """Whether the device still does, after something on it broke off. Where it does not, no later part runs on it."""
        self.gone = self.gone or self._ask()
        return not self.gone

    def operators(self):
        """Their names."""
        if self._operators is None:
            code = 'print(table.concat(require("perigee.native").op_names(), " "))'
            self._operators = process.run([self.perigee, "-e", code], 30 * self.scale, self.env).text.split()
        return self._operators

    def program(self, name):
        """A test program in C++, of a build or carried; None: there is none."""
        places = [os.path.join(self.test_build or "", "tests/bin"), os.path.dirname(self.perigee)]
        return next((os.path.join(place, name) for place in places if os.path.exists(os.path.join(place, name))), None)

    def plugin(self):
        """The library of the device in use."""
        folders = [self.env.get("PERIGEE_PLUGIN_PATH", "").split(":")[0]]
        folders.append(os.path.join(self.env.get("PERIGEE_HOME") or os.path.join(os.path.dirname(self.perigee), ".."),
                                    "lib/perigee/plugins"))
        files = [os.path.join(folder, self.device.split(":")[0] + ".so") for folder in folders if folder]
        return next((os.path.realpath(file) for file in files if os.path.exists(file)), None)

    def usable(self, folder):
        names = ["bin/perigee", "lib/libperigee.so"]
        names += ["lib/perigee/plugins/%s.so" % n for n in ("cpu", "ops", "layers", "optimizers", "formats", "cuda")]
        return [name for name in names if not os.path.exists(os.path.join(folder, name))]


def build_part(check, part, limit):
    """From nothing, on this machine. With a carried build the other parts begin while this goes on."""
    if check.mismatch:
        part.fail("the carried build", check.note)
    elif check.note:
        part.note(check.note)
    if check.building:
        outcomes = check.building.wait(limit)
        if not outcomes:  # it must not go on beside what is measured
            process.kill_all()
            part.note("not finished in time")
            outcomes = check.building.wait(10) or []
    else:
        outcomes = check.tree.build(limit, os.cpu_count(), check.rehearsal)
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
    if check.rehearsal and check.device.startswith("cuda") and os.path.exists(check.tree.home):
        check.env.setdefault("PERIGEE_HOME", check.tree.home)
    objects = os.path.join(check.tree.fresh, "plugins/cuda/CMakeFiles/perigee_plugin_cuda.dir")
    folder = os.path.join(check.root, "tests/cuda_budget")
    budget = process.run(["luajit", folder + "/budget.lua", objects, folder + "/budget.txt"], 60, check.env)
    part.note("registers, stack, spills: " + budget.tail(1))
    if budget.ok:
        part.passed += 1
    else:
        part.fail("the budget of registers", budget.tail(30))


RUN = {"smoke": smoke.smoke, "build": build_part, "operators": suites.operators, "vectors": suites.vectors,
       "lua": suites.lua, "examples": suites.examples, "programs": suites.programs, "sanitizer": sanitizer.sanitizer,
       "bench": bench.bench}


def order(check, wanted):
    """The build comes first, or, where a carried one serves, when the smoke is over: beside what is not measured."""
    names = [name for name in NAMES if name in wanted]
    if check.options.build:
        return [name for name in names if name != "build"]
    if check.perigee and not check.no_device():
        if "build" in names:
            names.remove("build")
            at = next((i for i, name in enumerate(names) if name in ("programs", "sanitizer", "bench")), len(names))
            names.insert(at, "build")
        return names
    if check.perigee:
        check.note = "the carried build was left: " + check.no_device()
        check.mismatch = check.rehearsal and "driver" not in check.no_device()  # it must come as far as that
        check.perigee = None
    return ["build"] + [name for name in names if name != "build"]


def begin_build(check, names, at):
    """Where a carried build serves: in the background from the first part on that measures nothing."""
    if check.perigee and not check.building and "build" in names[at:] and names[at] != "smoke":
        check.building = process.Background(check.tree.build, BUDGETS["build"][0], os.cpu_count(), False)


def begin_compiling(check, names, at):
    """torch.compile, beside what is not measured."""
    if "bench" in names[at + 1:] and names[at] != "smoke" and check.torch_device and not check.small and check.options.compile:
        check.compiling = check.compiling or process.Background(bench.compile_ahead, check)


def run_parts(check, names, limit, done):
    """Calls done(parts, over) after each part, which writes the report; and in between, where a part says so."""
    end, parts = time.monotonic() + limit * check.scale, []
    for at, name in enumerate(names):
        part = Part(name, BUDGETS[name][0] * check.scale)
        parts.append(part)
        check.save = lambda: done(parts, False)
        begin_build(check, names, at)
        begin_compiling(check, names, at)
        start = time.monotonic()
        left = end - start - sum(BUDGETS[later][1] * check.scale for later in names[at + 1:])
        if name != "build" and not check.perigee:
            part.skip("there is no build to run it with")
        elif left < 5:
            part.skip("no time was left")
        elif name != "build" and check.no_device():
            part.fail(check.device, check.no_device())
            smoke.explain(check, part)
        else:
            try:
                RUN[name](check, part, min(part.budget, left))
            except Exception:  # one part's mistake is not the others'
                part.fail("gpu_check itself", traceback.format_exc())
        part.finish(time.monotonic() - start)
        done(parts, True)
    return parts


def facts(check):
    return machine.describe(check.root, check.python)
