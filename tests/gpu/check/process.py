# SPDX-License-Identifier: Apache-2.0
"""Commands with a time limit, and a limit on how long they say nothing. What does not end is killed with all that it
started, and what it had said is kept; what cannot be killed is left behind."""
import os
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

LOOK, FAREWELL = 0.1, 5.0  # seconds between looks, and for what was killed to be gone
_alive = set()
_lock = threading.Lock()


class Outcome:
    """timed_out: its time was up. hung: it had said nothing for as long as it may. undying: killing it did not help."""

    def __init__(self, name, command, status, seconds, text, timed_out=False, hung=False, undying=False):
        self.name, self.command, self.status, self.seconds = name, command, status, seconds
        self.text, self.timed_out, self.hung, self.undying = text, timed_out, hung, undying

    @property
    def ok(self):
        return self.status == 0 and not self.timed_out and not self.hung

    def ending(self):
        """How it ended, in words."""
        undying = ", and could not be killed" if self.undying else ""
        if self.hung:
            return "hung: stopped after %.0f s, the last of them without a word%s" % (self.seconds, undying)
        if self.timed_out:
            return "stopped after %.0f s, its limit%s" % (self.seconds, undying)
        return ending_of(self.status)

    def tail(self, count=12):
        return "\n".join(self.text.strip().splitlines()[-count:])


def ending_of(status):
    if status is None:
        return "could not be started"
    return "died of %s" % signal.Signals(-status).name if status < 0 else "status %d" % status


def start(command, env, cwd, **pipes):
    """In a session of its own, which stop() and kill_all() end as a whole. Raises what Popen does."""
    process = subprocess.Popen(command, env=env, cwd=cwd, start_new_session=True, **pipes)
    with _lock:
        _alive.add(process)
    return process


def stop(process):
    """With all that it started; answers whether it is gone."""
    _kill(process)
    try:
        process.wait(FAREWELL)
        gone = True
    except subprocess.TimeoutExpired:  # it waits within the driver, say
        gone = False
    with _lock:
        _alive.discard(process)
    return gone


def _kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_all():
    with _lock:
        for process in list(_alive):
            _kill(process)


def _watch(process, said, limit, silence):
    """Until it ends: nothing; else what it did wrong."""
    start = spoke = time.monotonic()
    size = 0
    while True:
        try:
            process.wait(LOOK)
            return None
        except subprocess.TimeoutExpired:
            pass
        now, before = time.monotonic(), size
        size = os.fstat(said.fileno()).st_size
        spoke = now if size != before else spoke
        if now - start >= limit:
            return "timed_out"
        if silence and now - spoke >= silence:
            return "hung"


def run(command, limit, env=None, cwd=None, name=None, silence=None):
    """Runs a list of words for at most `limit` seconds, of which at most `silence` in a row without output; its output
    and errors go into one text."""
    begun = time.monotonic()
    name = name or os.path.basename(command[0])
    # A file, not a pipe: a process left behind would hold a pipe open.
    with tempfile.TemporaryFile() as said:
        try:
            process = start(command, env, cwd, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        except OSError as error:
            return Outcome(name, command, None, 0.0, str(error))
        wrong = _watch(process, said, max(limit, 0.1), silence)
        undying = not stop(process)  # also what it left running
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    return Outcome(name, command, process.returncode, time.monotonic() - begun, text, wrong == "timed_out",
                   wrong == "hung", undying)


def run_all(jobs, width, limit, env=None, cwd=None, silence=None):
    """Runs (name, command[, more environment]) at most `width` at once and all within `limit` seconds; in order."""
    end = time.monotonic() + limit

    def one(job):
        own = dict(env or os.environ, **(job[2] if len(job) > 2 else {}))
        left = end - time.monotonic()
        if left < 1:
            return Outcome(job[0], job[1], None, 0.0, "no time was left for it", timed_out=True)
        return run(job[1], left, own, cwd, job[0], silence)

    with ThreadPoolExecutor(max(1, width)) as pool:
        return list(pool.map(one, jobs))


class Background:
    """Something that is done while other parts run."""

    def __init__(self, function, *arguments):
        self.result = None
        self.thread = threading.Thread(target=self._run, args=(function, arguments), daemon=True)
        self.thread.start()

    def _run(self, function, arguments):
        self.result = function(*arguments)

    def wait(self, limit):
        """None: it is not over yet."""
        self.thread.join(limit)
        return self.result
