# SPDX-License-Identifier: Apache-2.0
"""What a part of the check found, and what is read off the outputs of test programs."""
import os
import re
import xml.etree.ElementTree as xml

KEPT, KEPT_OF_GROUP = 120, 2  # failures of a part, and of an operator in it, whose messages are kept
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def clean(text):
    """Without the folders of this machine: the report is committed."""
    return text.replace(ROOT + "/", "").strip()


class Part:
    def __init__(self, name, budget):
        self.name, self.budget = name, budget
        self.state, self.reason, self.seconds = "running", "", 0.0
        self.passed = self.failed = self.skipped = 0
        self.failures, self.notes, self.tables = [], [], []
        self.groups = {}  # failures by operator, or by suite
        self.holes = {}  # skipped tests that met an operator which is known to have no kernel

    def fail(self, where, message):
        self.failed += 1
        name = re.search(r": (?:[a-z_]+/)([\w ]+)/", where)
        group = name.group(1) if name else clean(where).split(":")[0]
        self.groups[group] = self.groups.get(group, 0) + 1
        if len(self.failures) < KEPT and self.groups[group] <= KEPT_OF_GROUP:
            self.failures.append({"where": clean(where), "message": clean(message)[-4000:]})

    def note(self, text):
        self.notes.append(clean(text))

    def table(self, title, columns, rows):
        self.tables.append({"title": title, "columns": columns, "rows": rows})

    def skip(self, reason):
        self.state, self.reason = "skipped", reason

    def finish(self, seconds):
        self.seconds = round(seconds, 1)
        if self.holes:
            self.note("skipped for want of a kernel (tests/cases/absent.lua): " +
                      ", ".join("%s %d" % item for item in sorted(self.holes.items())))
        if self.failed > len(self.failures):
            most = sorted(self.groups.items(), key=lambda item: -item[1])
            self.note("failures: " + ", ".join("%s %d" % item for item in most))
        if self.state == "running":
            self.state = "failed" if self.failed else "passed"
            if not self.failed and not self.passed and not self.tables:
                self.state, self.reason = "skipped", self.reason or "nothing ran"

    def add_lua(self, outcome, show_skips=False):
        """Counts and failures of `perigee test` or of tests/vectors.lua. --verbose says what ran last."""
        running = re.findall(r"^RUN (.*)$", outcome.text, re.M)
        outcome.text = re.sub(r"^RUN .*\n", "", outcome.text, flags=re.M)
        found = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped", outcome.text, re.M)
        if found:
            passed, failed, skipped = map(int, found[-1])
            self.passed += passed
            self.skipped += skipped
        before = self.failed
        for block in re.split(r"^(?=FAIL |SKIP |\d+ passed, )", outcome.text, flags=re.M):
            if block.startswith("FAIL "):
                where, _, message = block[5:].partition("\n")
                if not message:
                    where, _, message = block[5:].partition(": ")
                self.fail(where, message)
            elif hole := re.match(r"SKIP (?:(\d+): |.*: )(\w+) has no kernel on \w+$", block.strip()):
                self.holes[hole[2]] = self.holes.get(hole[2], 0) + int(hole[1] or 1)
            elif block.startswith("SKIP ") and show_skips:
                self.note("skipped: " + block[5:].strip())
        if not found:
            last = " in %s" % running[-1] if running else ""
            self.fail(outcome.name, "did not reach its end: %s%s\n%s" % (outcome.ending(), last, outcome.tail()))
        elif self.failed - before < failed:
            self.failed = before + failed
        elif outcome.status != 0 and self.failed == before:
            self.fail(outcome.name, "no test failed, and it ended with %s\n%s" % (outcome.ending(), outcome.tail()))

    def add_junit(self, path):
        """Counts and failures of ctest --output-junit."""
        for case in xml.parse(path).getroot().iter("testcase"):
            status = case.get("status")
            if status == "run":
                self.passed += 1
            elif status == "fail":
                said = case.findtext("system-out") or ""
                self.fail(case.get("name"), "\n".join(said.strip().splitlines()[-60:]))
            else:
                self.skipped += 1
                self.note("skipped: " + case.get("name"))

    def as_json(self):
        names = ("name", "state", "reason", "seconds", "budget", "passed", "failed", "skipped", "failures", "notes",
                 "tables")
        return {name: getattr(self, name) for name in names}
