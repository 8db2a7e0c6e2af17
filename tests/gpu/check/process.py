# SPDX-License-Identifier: Apache-2.0
"""Commands with a time limit. What does not end is killed with all that it started, and what it had said is kept."""
import os
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

_alive = set()
_lock = threading.Lock()


class Outcome:
    def __init__(self, name, command, status, seconds, text, timed_out):
        self.name, self.command, self.status, self.seconds = name, command, status, seconds
        self.text, self.timed_out = text, timed_out

    @property
    def ok(self):
        return self.status == 0 and not self.timed_out

    def ending(self):
        """How it ended, in words."""
        if self.timed_out:
            return "stopped after %.0f s, its limit" % self.seconds
        if self.status is None:
            return "could not be started"
        if self.status < 0:
            return "died of %s" % signal.Signals(-self.status).name
        return "status %d" % self.status

    def tail(self, count=12):
        return "\n".join(self.text.strip().splitlines()[-count:])


def _kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_all():
    with _lock:
        for process in list(_alive):
            _kill(process)


def run(command, limit, env=None, cwd=None, name=None):
    """Runs a list of words for at most `limit` seconds; its output and errors go into one text."""
    start = time.monotonic()
    name = name or os.path.basename(command[0])
    # A file, not a pipe: a process left behind would hold a pipe open.
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       env=env, cwd=cwd, start_new_session=True)
        except OSError as error:
            return Outcome(name, command, None, 0.0, str(error), False)
        with _lock:
            _alive.add(process)
        timed_out = False
        try:
            process.wait(max(limit, 0.1))
        except subprocess.TimeoutExpired:
            timed_out = True
        _kill(process)  # also what it left running
        process.wait()
        with _lock:
            _alive.discard(process)
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    return Outcome(name, command, process.returncode, time.monotonic() - start, text, timed_out)


def run_all(jobs, width, limit, env=None, cwd=None):
    """Runs (name, command[, more environment]) at most `width` at once and all within `limit` seconds; in order."""
    end = time.monotonic() + limit

    def one(job):
        own = dict(env or os.environ, **(job[2] if len(job) > 2 else {}))
        left = end - time.monotonic()
        if left < 1:
            return Outcome(job[0], job[1], None, 0.0, "no time was left for it", True)
        return run(job[1], left, own, cwd, job[0])

    with ThreadPoolExecutor(max(1, width)) as pool:
        return list(pool.map(one, jobs))
