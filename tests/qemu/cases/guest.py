# SPDX-License-Identifier: BSD-3-Clause
"""What the guest does wrong, resets from outside, record and replay."""

import os
import re
import tempfile

from machine import ON, Machine, check_guest, run_image
from results import Skipped

PASSED_STATUS = 1  # isa-debug-exit: 2 * 0 + 1
CPUS = 2
LOGGED = re.compile(r"vpmu: vCPU (\d+): (.*) 0x([0-9a-f]+) \(value 0x([0-9a-f]+)\): #GP")
MISTAKE = re.compile(r"MISTAKE (\d+) (.*) ([0-9a-f]+) ([0-9a-f]+)")


def mistakes(results, _):
    """Each mistake is one line of the log, with vCPU, register and value; counts stay right."""
    with tempfile.NamedTemporaryFile("r") as log:
        options = ("-d", "guest_errors", "-D", log.name)
        status, lines, said = run_image("probe", ON, append="mistakes", cpus=CPUS, options=options)
        logged = [line for line in log.read().splitlines() if "vpmu" in line]
    failed = [line for line in lines if line.startswith("FAIL")]
    results.equal("the guest's checks", (status, failed, said), (PASSED_STATUS, [], []))
    made = [match.groups() for match in map(MISTAKE.fullmatch, lines) if match]
    per_cpu = len(made) // CPUS
    twice = [m for cpu in range(CPUS) for m in 2 * made[cpu * per_cpu : (cpu + 1) * per_cpu]]
    results.check("mistakes were made", per_cpu > 10, f"{per_cpu}")
    parsed = [match.groups() if match else "" for match in map(LOGGED.fullmatch, logged)]
    unlike = [line for line, match in zip(logged, parsed) if not match]
    results.check("each line has vCPU, register and value", not unlike, f"{unlike[:2]}")
    results.equal("a line for each, in order", parsed, twice)


def silent(results, _):
    """A guest that makes no mistake leaves no line."""
    with tempfile.NamedTemporaryFile("r") as log:
        run_image("replay", ON, options=("-d", "guest_errors", "-D", log.name))
        logged = [line for line in log.read().splitlines() if "vpmu" in line]
    results.equal("lines", logged, [])


def check_cleared(results, what, machine):
    counters = [c for v in machine.vpmu() for c in v["counters"]]
    left = [c for c in counters if c["value"] or c["enabled"] or c["code"] or c["overflowed"]]
    results.check(f"{what}: every counter is as after power-on", not left, f"{left[:1]}")


def reset(results, _):
    """A reset from outside while vCPUs count clears the PMU, and the next guest counts right."""
    with Machine(ON, "user", cpus=CPUS, options=("-action", "reboot=reset")) as machine:
        for what in ("stopped", "running"):
            machine.begin("user")
            if what == "stopped":
                machine.qmp("stop")
            machine.qmp("system_reset")
            machine.wait_event(lambda event: event["event"] == "RESET")
            if what == "stopped":
                check_cleared(results, what, machine)
                machine.qmp("cont")
        machine.begin("user")
        machine.end("user")
        check_guest(results, "after two resets", machine)


def replay(results, _):
    """Counts, overflows and their places are the same in a recorded run and its replay."""
    with tempfile.TemporaryDirectory() as folder:

        def run(mode):
            path = os.path.join(folder, "run")
            options = ("-icount", f"shift=auto,rr={mode},rrfile={path}")
            return run_image("replay", ON, options=options)

        status, recorded, said = run("record")
        if status == 1 and not recorded:
            raise Skipped(f"this QEMU does not record: {said}")
        failed = [line for line in recorded if line.startswith("FAIL")]
        results.equal("the recorded guest", (status, failed), (PASSED_STATUS, []))
        for line in recorded:
            results.remark(line)
        for which in ("first", "second"):
            # The end of the record may come before the guest's own end does.
            status, replayed, said = run("replay")
            results.check(f"the {which} replay ends", status in (0, PASSED_STATUS), f"{said}")
            results.equal(f"the {which} replay", replayed, recorded)


CASES = (mistakes, silent, reset, replay)
