# SPDX-License-Identifier: Apache-2.0
"""One side of the benchmark: a process that makes an item's rows ready, and measures one when it is told to (bench/turns.*).
What it says is read on a thread, so that a side that hangs is left behind in time."""
import queue
import subprocess
import tempfile
import threading
import time

import process


class Side:
    def __init__(self, name, command, env, cwd):
        self.name, self.rows, self.values = name, {}, {}  # rows: unit and whether more is better; values: a round each
        self.failures, self.notes, self.dead = [], [], None
        self._lines, self._errors = queue.Queue(), tempfile.TemporaryFile()
        try:
            self._process = process.start(command, env, cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=self._errors, text=True, bufsize=1)
        except OSError as error:
            self._process, self.dead = None, str(error)
            return
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self._process.stdout as said:
            for line in said:
                self._lines.put(line.strip())
        self._lines.put(None)

    def _next(self, end):
        """A line; None: there is none any more, and `dead` says why."""
        try:
            line = self._lines.get(timeout=max(0.01, end - time.monotonic()))
        except queue.Empty:
            self._end("hung")
            return None
        if line is None:
            self._end("ended")
        return line

    def _end(self, how):
        process.stop(self._process)
        if how == "ended":
            how = process.ending_of(self._process.returncode)
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace").strip().splitlines()[-8:]
        self.dead = "\n".join([how] + said)

    def _take(self, line):
        kind, *words = line.split(" ")
        if kind == "failed" and words:
            self.failures.append((words[0], " ".join(words[1:])))
        elif kind == "note":
            self.notes.append(" ".join(words))
        elif kind == "row" and len(words) == 3:
            self.rows[words[0]] = (words[1], words[2])
        elif kind == "value" and len(words) == 2:
            self.values.setdefault(words[0], []).append(float(words[1]))
        return kind

    def prepare(self, end):
        """Until its rows are ready."""
        while not self.dead:
            line = self._next(end)
            if line is not None and self._take(line) == "ready":
                return

    def measure(self, row, end):
        """One block."""
        if self.dead or row not in self.rows:
            return
        try:
            self._process.stdin.write("go %s\n" % row)
        except OSError:
            self._end("ended")
        while not self.dead:
            line = self._next(end)
            kind = self._take(line) if line is not None else None
            if kind == "failed":
                del self.rows[row]
            if kind in ("failed", "value"):
                return

    def close(self):
        if self._process:
            process.stop(self._process)
            try:
                self._process.stdin.close()
            except OSError:  # what it was told last never reached it
                pass
        self._errors.close()
