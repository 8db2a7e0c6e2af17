# SPDX-License-Identifier: Apache-2.0
"""gpu_check notices what fails, dies, hangs or is missing, and goes on: a Perigee that is told how to end stands for the
real one. python3 -m unittest discover -s tests/gpu/check -p "*_test.py" """
import json
import os
import stat
import sys
import tempfile
import textwrap
import time
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check as checking  # noqa: E402
import lua  # noqa: E402
import machine  # noqa: E402
import process  # noqa: E402
from part import Part  # noqa: E402
from report import Report  # noqa: E402
from turns import Side  # noqa: E402

# Runs files with a line a test: its name and how it ends. A file `gone` beside them: no device answers.
PERIGEE = '''\
#!{python}
import os, re, signal, sys, time
words, gone = sys.argv[1:], {gone!r}
if words[0] == "-e":
    if os.path.exists(gone):
        sys.exit("the device is gone")
    print("add mul sub" if "op_names" in words[1] else 2)
    sys.exit()
value = lambda name, other: words[words.index(name) + 1] if name in words else other
passed = failed = 0
shard, shards = map(int, value("--shard", "1/1").split("/"))
file = next(word for word in words if word.endswith("_test.lua"))
tests = [line.split() for line in open(file) if re.search(value("--filter", ".").replace("%", ""), line.split()[0])]
for name, ending in tests[shard - 1::shards]:
    print("RUN " + name, file=sys.stderr, flush=True)
    if ending == "gone":
        open(gone, "w").close()
    if ending in ("hangs", "gone"):
        time.sleep(60)
    if ending == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    passed, failed = passed + (ending == "passes"), failed + (ending != "passes")
    if ending != "passes":
        print("FAIL %s: %s\\n  %s" % (file, name, "an illegal memory access was met" if ending == "breaks" else ending))
print("%d passed, %d failed, 0 skipped" % (passed, failed))
sys.exit(failed > 0)
'''


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("home/bin/perigee", PERIGEE.format(python=sys.executable, gone=os.path.join(self.root, "gone")), True)
        options = types.SimpleNamespace(device="cuda:0", rehearsal=False, small=True, jobs=2, python=sys.executable,
                                        torch_device=None, build=None, plugins=None)
        self.check = checking.Check(options, self.root, self.root)
        self.check.use(os.path.join(self.root, "home"))
        self.part = Part("operators", 10)

    def write(self, name, text, runs=False):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        os.chmod(path, os.stat(path).st_mode | (stat.S_IXUSR if runs else 0))
        return path

    def suite(self, text, pieces=lua.shards_of, limit=4.0):
        self.write("tests/a_test.lua", text)
        start = time.monotonic()
        lua.run(self.check, self.part, lua.jobs_of(self.check, "tests/*_test.lua"), limit, pieces)
        return time.monotonic() - start


class Suites(Case):
    def setUp(self):
        super().setUp()
        self.check.scale = 0.05  # of the silence that counts as a hang

    BY_OPERATOR = "forward/add/1 passes\nforward/mul/1 %s\nforward/sub/1 passes\nforward/sub/2 fails\n"

    def test_what_fails_is_counted_once(self):
        self.suite("one/a/1 passes\none/b/1 fails\n")
        self.assertEqual((self.part.passed, self.part.failed), (1, 1))

    def test_a_word_of_a_lost_device_is_no_lost_device(self):
        spoken = process.Outcome("a", [], 0, 1.0, "SKIP a: device lost: device is lost\n3 passed, 0 failed, 1 skipped\n")
        self.assertTrue(lua.ended_well(spoken))
        spoken.text = spoken.text.replace("0 failed", "1 failed")
        self.assertFalse(lua.ended_well(spoken))

    def test_what_breaks_off_costs_one_operator(self):
        for ending, words in (("hangs", "hung"), ("dies", "died of SIGSEGV"), ("breaks", "illegal memory access")):
            self.part = Part("operators", 10)
            seconds = self.suite(self.BY_OPERATOR % ending, lua.an_operator_each, 6.0)
            self.assertLess(seconds, 6, ending)
            self.assertEqual((self.part.passed, self.part.failed), (2, 2), ending)
            self.assertIn("ran again in pieces", " ".join(self.part.notes))
            lost = [failure["message"] for failure in self.part.failures if "mul" in failure["where"] + failure["message"]]
            self.assertIn(words, " ".join(lost), ending)

    def test_other_files_run_again_in_shards(self):
        self.suite("a passes\nb passes\nc hangs\n" + "".join("d%d passes\n" % i for i in range(13)), limit=8.0)
        self.assertEqual(self.part.failed, 1)  # c, and with it what its shard had left
        self.assertEqual(self.part.passed, 14)
        self.assertIn("in c", self.part.failures[0]["message"])

    def test_a_device_that_is_gone_ends_it(self):
        self.suite("forward/add/1 gone\nforward/mul/1 passes\n", lua.an_operator_each)
        self.assertEqual(self.part.failed, 1)
        self.assertIn("the device is gone", self.check.no_device())


class Parts(Case):
    def run_parts(self, parts):
        saved = []
        with mock.patch.dict(checking.RUN, parts):
            checking.run_parts(self.check, list(parts), 100, lambda found, over: saved.append(
                [(part.name, part.state) for part in found]))
        return saved

    def test_the_report_is_written_after_each_part_and_when_one_asks(self):
        def smoke(check, part, _):
            part.passed = 1
            check.save()

        def vectors(check, part, _):
            raise ValueError("its own mistake")

        self.assertEqual(self.run_parts({"smoke": smoke, "vectors": vectors}),
                         [[("smoke", "running")], [("smoke", "passed")], [("smoke", "passed"), ("vectors", "failed")]])

    def test_no_part_runs_on_a_device_that_is_gone(self):
        self.check.gone = "it does not answer"
        ran = []
        with mock.patch.object(checking.smoke, "explain"):
            found = self.run_parts({"vectors": lambda *_: ran.append(1)})
        self.assertEqual((found[-1], ran), ([("vectors", "failed")], []))

    def test_the_order(self):
        everything = [name for name in checking.NAMES if name not in checking.APART]
        self.assertEqual(checking.order(self.check, everything),
                         ["smoke", "operators", "vectors", "lua", "examples", "build", "programs", "sanitizer"])
        self.write("gone", "")
        self.check._asked = None
        self.assertEqual(checking.order(self.check, everything)[:3], ["build", "smoke", "operators"])
        self.assertEqual(checking.order(self.check, ["bench"]), ["build", "bench"])

    def test_reports_hold_no_folders_of_this_machine(self):
        report = Report(os.path.join(self.root, "out"), "name", {"date": "today", "commit": "abc"}, "gpu_check")
        self.part.fail("x: one/add/1", "%s/tests/x.lua:3: wrong" % os.path.abspath(
            os.path.join(os.path.dirname(__file__), "../../..")))
        self.part.finish(1)
        report.write([self.part], 2)
        with open(report.path(".json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["parts"][0]["failures"][0]["message"], "tests/x.lua:3: wrong")
        self.assertEqual(sorted(os.listdir(os.path.join(self.root, "out"))), ["name.json", "name.md"])


class Processes(unittest.TestCase):
    def test_only_silence_is_a_hang(self):
        quiet = process.run(["sh", "-c", "echo begun; sleep 30"], 20, silence=0.5)
        self.assertTrue(quiet.hung and not quiet.ok and "begun" in quiet.text)
        self.assertLess(quiet.seconds, 5)
        busy = process.run(["sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done"], 20, silence=0.6)
        self.assertTrue(busy.ok)
        long = process.run(["sh", "-c", "while :; do echo more; sleep 0.1; done"], 0.6, silence=0.5)
        self.assertTrue(long.timed_out and not long.hung)

    def test_what_cannot_be_killed_is_left_behind(self):
        with mock.patch.object(process, "_kill"), mock.patch.object(process, "FAREWELL", 0.2):
            outcome = process.run(["sleep", "3"], 0.2)
        self.assertTrue(outcome.undying)
        self.assertLess(outcome.seconds, 2)
        self.assertIn("could not be killed", outcome.ending())


class Turns(unittest.TestCase):
    def side(self, script):
        side = Side("one", ["sh", "-c", script], None, None)
        self.addCleanup(side.close)
        side.prepare(time.monotonic() + 5)
        return side

    def test_a_side_measures_what_it_is_told_to(self):
        side = self.side("echo note slow; echo row a ms less; echo failed b no kernel; echo ready; "
                         "while read go row; do echo value $row 2.5; done")
        side.measure("a", time.monotonic() + 5)
        side.measure("b", time.monotonic() + 5)
        self.assertEqual((side.rows, side.values), ({"a": ("ms", "less")}, {"a": [2.5]}))
        self.assertEqual((side.failures, side.notes, side.dead), ([("b", "no kernel")], ["slow"], None))

    def test_one_that_hangs_or_dies_is_told(self):
        side = self.side("echo row a ms less; echo ready; sleep 30")
        side.measure("a", time.monotonic() + 0.3)
        self.assertEqual((side.dead, side.values), ("hung", {}))
        self.assertIn("status 3\nwrong", self.side("echo wrong >&2; exit 3").dead)


class Machine(unittest.TestCase):
    def tree(self, *files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in files:
            path = os.path.join(folder.name, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w", encoding="utf-8").close()
        return folder.name

    def test_cudnn_is_of_one_place(self):
        toolkit = self.tree("lib64/libcudnn.so", "include/cuda_runtime_api.h")  # no headers of cuDNN
        package = self.tree("cudnn/lib/libcudnn.so.9", "cudnn/include/cudnn_version.h")
        with mock.patch.object(machine, "_roots", lambda: [toolkit, os.path.join(package, "cudnn")]):
            self.assertEqual(machine.find_cudnn(), (package + "/cudnn/lib/libcudnn.so.9", package + "/cudnn/include"))
            self.assertEqual(machine.library_folders()[0][0], package + "/cudnn/lib")

    def test_nccl_is_found_and_may_be_missing(self):
        package = self.tree("nccl/lib/libnccl.so.2", "nccl/include/nccl.h")
        for roots, found in (([os.path.join(package, "nccl")], True), ([], False)):
            with mock.patch.object(machine, "_roots", lambda roots=roots: roots), \
                 mock.patch.object(machine, "said_by", lambda *command: ""), \
                 mock.patch.object(machine, "SYSTEM_LIBRARIES", "/nowhere"):
                folders, missing = machine.library_folders()
            self.assertEqual(package + "/nccl/lib" in folders, found)
            self.assertNotIn("libnccl.so.2", missing)


if __name__ == "__main__":
    unittest.main()
