# SPDX-License-Identifier: BSD-3-Clause
"""What a case says: lines "PASS name", "FAIL name: why", "SKIP name: why"."""

import os
import time


class Skipped(Exception):
    """The case cannot be run here; its text says why."""


class Results:
    """The lines of one case, under its name."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.counts = [0, 0, 0]

    def _say(self, verdict, text):
        self.counts[("PASS", "FAIL", "SKIP").index(verdict)] += 1
        self.lines.append(f"{verdict} {self.name}: {text}")

    def check(self, what, good, why="it is not so"):
        """Passes if `good`, else fails and says why."""
        self._say(*(("PASS", what) if good else ("FAIL", f"{what}: {why}")))

    def equal(self, what, got, want):
        self.check(what, got == want, f"got {got}, want {want}")

    def skip(self, why):
        self._say("SKIP", why)

    def remark(self, text):
        """A line that is no result: a seed, a figure."""
        self.lines.append(f"{self.name}: {text}")


def run_case(name, case, *arguments, **more):
    """case(results, ...) to its end, whatever becomes of it. VPMU_TRACE lets its exceptions through."""
    results = Results(name)
    begin = time.monotonic()
    try:
        case(results, *arguments, **more)
    except Skipped as reason:
        results.skip(str(reason))
    except Exception as error:  # pylint: disable=broad-except
        if os.environ.get("VPMU_TRACE"):
            raise
        results.check("runs to its end", False, f"{type(error).__name__}: {error}")
    results.remark(f"{time.monotonic() - begin:.1f} s")
    return results
