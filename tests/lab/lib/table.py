# SPDX-License-Identifier: BSD-3-Clause
"""The table of silent failures: what a guest of this host gets today, and what it gets with vpmud."""

import json
import textwrap
from pathlib import Path

import l1

COLUMNS = 80
NAMES = 10

# What the rows are, and what happens today where no scenario records it.
ROWS = {
    1: ("KVM's event cannot be created", ""),
    2: ("an agent's pinned events win over the guest's", ""),
    3: ("the NMI watchdog has a counter of every processor", ""),
    4: ("an agent leaves fewer counters than the guest has", ""),
    5: ("libvirt's <perf> opens events on QEMU's threads", ""),
    6: ("an event that is denied reads 0", ""),
    7: ("a filter's rule that cannot match", "KVM takes the rule without an error; the event counts"),
    8: ("pmu=on while kvm.enable_pmu=N", ""),
    9: ("hybrid processors", ""),
    10: ("no APIC of the kernel's", ""),
    11: ("the legacy counters swallow writes", ""),
    12: ("a mediated vPMU and events of the host's", ""),
    13: ("a mediated vPMU and the NMI watchdog", ""),
    14: ("Windows under hv-* sees no PMU", "QEMU 10.0 leaves CPUID 40000003H:EDX[2] clear, whatever it offers"),
    15: ("HalAllocateHardwareCounters with nothing behind it", ""),
    16: ("counters that are not enabled globally", "QEMU 10.0 writes 0 over what KVM has set at the reset"),
    17: ("RDPMC faults", "it does without a PMU; nobody tries it before the guest does"),
    18: ("0 is not told from unavailable", "the guest's perf says that it counted 100 % of the time"),
    19: ("migration to fewer counters", "QEMU 10.0 starts the guest there: its counters read 0 or fault"),
}

# Rows that no KVM guest of the lab can meet, and where they are dealt with.
ELSEWHERE = {
    1: "no way is known to have an AMD machine's kernel refuse it; once it does, it is starved, as row 2",
    5: "tests/libvirt: the hook's claim has what <perf> takes",
    9: "tests/unit: hv/host refuses; QEMU's processors are all alike",
    15: "tests/nt: vpmu.sys proves that a counter counts before it says so",
}

ANSWERS = ("refused", "reduced", "hidden", "granted", "starved", "filtered", "revoked")


def write(run, whole, today, ours):
    """Prints and leaves the table, and checks it; run is told the results. No ours: nothing to do.

    whole: every row must be there.
    """
    if not ours:
        return
    Path(l1.build(), "ours.json").write_text(json.dumps(ours, indent=1) + "\n")
    text = "\n\n".join(block(row, of(row, today), of(row, ours)) for row in ROWS) + "\n"
    Path(l1.build(), "table.txt").write_text(text)
    run.print(text)
    for row in ROWS:
        if whole or of(row, ours):
            check(run, row, of(row, ours))
    wide = [line for line in text.splitlines() if len(line) > COLUMNS]
    run.result("FAIL" if wide else "PASS", f"table: it fits {COLUMNS} columns{': ' + wide[0] if wide else ''}")


def of(row, records):
    return [record for record in records if record["row"] == row]


def check(run, row, ours):
    name = f"table: row {row}: {ROWS[row][0]}"
    bad = [record for record in ours if record["state"] not in ANSWERS or not record["where"]]
    if row in ELSEWHERE:
        run.result("FAIL" if ours else "PASS", f"{name}: {ELSEWHERE[row]}")
    elif not ours or bad:
        run.result("FAIL", f"{name}: {bad or 'no boot of this run has recorded it'}")
    else:
        run.result("PASS", f"{name}: {', '.join(sorted({record['state'] for record in ours}))}")


def block(row, today, ours):
    lines = [f"row {row}: {ROWS[row][0]}"]
    for record in distinct(today):
        lines += said("today", f"{record['what']}: executed or asked for {record['executed']}, it reads or gets "
                      f"{record['reads']}; the kernel says {record['said']}")
    if not today and ROWS[row][1]:
        lines += said("today", ROWS[row][1])
    for record in distinct(ours):
        where = "; ".join(f"{place}: {text}" for place, text in record["where"].items())
        lines += said("ours", f"{record['what']}: {record['state'].upper()}"
                      f"{', ' + repr(record['text']) if record['text'] else ''} ({where})")
    if row in ELSEWHERE:
        lines += said("elsewhere", ELSEWHERE[row])
    return "\n".join(lines)


def distinct(records):
    """One of those that the kernels agree about."""
    return list({record["what"]: record for record in records}.values())


def said(who, text):
    return textwrap.wrap(text, COLUMNS, initial_indent=f"  {who:{NAMES}}", subsequent_indent=" " * (NAMES + 2))
