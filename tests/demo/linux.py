# SPDX-License-Identifier: BSD-3-Clause
"""Stage: Debian's kernel and Debian's perf, both unmodified, count programs of known length."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "linux" / "lib"))

import perf  # noqa: E402
from guest import Guest, GuestError, build, version  # noqa: E402
from program import Program  # noqa: E402

CPU = "Skylake-Server,pmu=on"
PROGRAMS = ("loop", "mix", "faults")
EVENTS = {
    "instructions:u": lambda program: program.instructions,
    "branches:u": lambda program: program.branches,
    "cycles:u": lambda program: program.instructions,
}


def run():
    """Boot the guest on both QEMUs, compare, print the table; the report's part."""
    patched, unpatched = os.environ["QEMU"], os.environ["QEMU_STOCK"]
    ours = counts(patched, "patched")
    theirs = counts(unpatched, "unpatched")
    rows = [row(name, event, ours, theirs) for name in PROGRAMS for event in EVENTS]
    print_table(rows)
    return {
        "cpu": CPU,
        "patched": version(patched),
        "unpatched": version(unpatched),
        "counts": rows,
        "equal": all(row["equal"] for row in rows),
    }


def counts(qemu, name):
    """What perf counts in a guest of this QEMU: {program: {event: Count}}."""
    print(f"== booting Debian in the {name} QEMU", flush=True)
    try:
        with Guest(qemu, CPU, f"demo-{name}") as guest:
            return {program: perf.stat(guest, EVENTS, program) for program in PROGRAMS}
    except GuestError as why:
        sys.exit(f"demo: the guest of the {name} QEMU: {why}")


def row(name, event, ours, theirs):
    expected = EVENTS[event](Program(build() / "bin" / name))
    counted = ours[name][event].value
    return {
        "program": name,
        "event": event,
        "expected": expected,
        "counted": counted,
        "equal": counted == expected,
        "unpatched": theirs[name][event].value,
    }


def print_table(rows):
    line = "{:8} {:15} {:>11} {:>12}  {:9}  {}".format
    print("\nDebian's `perf stat` in a guest without KVM: what each program executes, known")
    print("from its disassembly, and what perf counts on each QEMU.\n")
    print(line("program", "event", "executed", "patched QEMU", "", "unpatched QEMU"))
    for r in rows:
        print(line(r["program"], r["event"], r["expected"], r["counted"],
                   "equal" if r["equal"] else "NOT EQUAL", r["unpatched"]))
