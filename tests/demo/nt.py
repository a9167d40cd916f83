# SPDX-License-Identifier: BSD-3-Clause
"""Stage: the Windows driver vpmu.sys takes counters and proves what is behind them."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "nt" / "lib"))

from ntguest import Row, boot, judge  # noqa: E402

CPU = "Skylake-Server,pmu={}"
VCPUS = 2
NUMBERS = ("processor", "counter", "exact", "expected", "counted")
CALLS = ("allocate", "configure")
FIRST_FIXED = 32  # VPMU_FIRST_FIXED
SUCCESS = "00000000"
STATUSES = {  # refusals that the two routines are documented to give
    "c0000002": "STATUS_NOT_IMPLEMENTED",
    "c000000d": "STATUS_INVALID_PARAMETER",
    "c000009a": "STATUS_INSUFFICIENT_RESOURCES",
    "c00000bb": "STATUS_NOT_SUPPORTED",
    "c0000303": "STATUS_WMI_ALREADY_ENABLED",
}


def run():
    """Boot the guest with counters and without, print both tables; the report's part."""
    counted, absent = checks("on"), checks("off")
    print("\nThe Windows driver vpmu.sys in the NT test guest. That is not Windows, but a")
    print("small kernel of our own that loads Windows drivers. On each CPU, the driver has")
    print("every counter count a piece of work of known length.\n")
    print("  Allocate  what HalAllocateHardwareCounters answers")
    print("  KeSet     what KeSetHardwareCounterConfiguration answers")
    print("\nPatched QEMU, pmu=on:\n")
    print_table(counted)
    print("\nPatched QEMU, pmu=off. There are no counters, and HalAllocateHardwareCounters")
    print("answers success all the same, as it may on Hyper-V. Only the counts tell:\n")
    print_table(absent)
    return {
        "cpu": CPU.format("on"),
        "checks": counted,
        "off": {"cpu": CPU.format("off"), "checks": absent},
        "equal": complete(counted) and all(is_backed(c) and c["equal"] for c in counted)
        and complete(absent) and all(is_hollow(c) for c in absent),
    }


def checks(pmu):
    """What the driver finds in a guest: a dictionary for each CPU, counter and event."""
    print(f"== booting the NT test guest in the patched QEMU, pmu={pmu}", flush=True)
    row = Row("demo", CPU.format(pmu), VCPUS)
    lines, why = boot(row)
    told, _ = judge(row, lines, why)
    for line in told:
        if line.startswith("FAIL"):
            sys.exit(f"demo: the NT test guest with pmu={pmu}: {line}")
    return [check(line) for line in lines if line.startswith("DEMO ")]


def check(line):
    """A line of tests/nt/demo.c. Where no count is known, the expected one is the least."""
    found = dict(re.findall(r"(\w+)=(\S+)", line))
    found |= {name: int(found[name]) for name in NUMBERS}
    found["equal"] = (found["counted"] == found["expected"] if found["exact"]
                      else found["counted"] >= found["expected"])
    return found


def complete(all_checks):
    return {c["processor"] for c in all_checks} == set(range(VCPUS))


def is_backed(c):
    return c["state"] == "backed"


def is_hollow(c):
    """Granted, with nothing behind it."""
    return c["allocate"] == SUCCESS and not is_backed(c)


def print_table(all_checks):
    line = "{:>3} {:8} {:8} {:8} {:13} {:>8} {:>8}  {}".format
    print(line("CPU", "counter", "Allocate", "KeSet", "event", "expected", "counted", "verdict"))
    for c in all_checks:
        expected = c["expected"] if c["exact"] else "above 0"
        print(line(c["processor"], counter_name(c), *(answer(c[call]) for call in CALLS),
                   c["event"], expected, c["counted"], verdict(c)))
    print()
    for status in sorted({c[call] for c in all_checks for call in CALLS} - {SUCCESS}):
        print(f"refused: {status} {STATUSES.get(status, '')}")
    for processor in range(VCPUS):
        here = [c for c in all_checks if c["processor"] == processor]
        print(f"vpmu.sys, CPU {processor}: {summary(here)}")


def summary(of_processor):
    missing = dict.fromkeys(counter_name(c) for c in of_processor if not is_backed(c))
    return f"NOT BACKED: {', '.join(missing)}" if missing else "every counter is backed"


def counter_name(c):
    index = c["counter"]
    return f"GP {index}" if index < FIRST_FIXED else f"fixed {index - FIRST_FIXED}"


def answer(status):
    return "success" if status == SUCCESS else "refused"


def verdict(c):
    if not is_backed(c):
        return "NOT BACKED"
    if not c["equal"]:
        return "NOT EQUAL"
    return "equal, backed" if c["exact"] else "backed"
