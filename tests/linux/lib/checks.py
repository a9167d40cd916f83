# SPDX-License-Identifier: BSD-3-Clause
"""PASS, FAIL and SKIP lines and their sum; checks may run in several threads."""

import threading
from contextlib import contextmanager


class Failed(Exception):
    """A check's condition does not hold; the text says how."""


class Skipped(Exception):
    """A check cannot be made here; the text says why."""


class Checks:
    def __init__(self):
        self.counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}
        self._lock = threading.Lock()
        self._thread = threading.local()

    def prefix(self, text):
        """From now on `text` stands before the name of each check of this thread."""
        self._thread.prefix = text

    @contextmanager
    def check(self, name):
        """One check: it passes unless its body raises."""
        try:
            yield
        except Skipped as why:
            self._report("SKIP", f"{name}: {why}")
        except Exception as why:  # a guest that dies fails this check and those after it
            self._report("FAIL", f"{name}: {type(why).__name__}: {' '.join(str(why).split())}")
        else:
            self._report("PASS", name)

    def finish(self):
        """Print the sum; the exit status of the run."""
        print("{PASS} passed, {FAIL} failed, {SKIP} skipped".format(**self.counts))
        return int(self.counts["FAIL"] > 0 or self.counts["PASS"] == 0)

    def _report(self, kind, text):
        with self._lock:
            self.counts[kind] += 1
            print(f"{kind} {getattr(self._thread, 'prefix', '')}{text}", flush=True)


def equal(what, found, expected):
    if found != expected:
        raise Failed(f"{what} is {found}, not {expected}")


def require(condition, text):
    if not condition:
        raise Failed(text)
