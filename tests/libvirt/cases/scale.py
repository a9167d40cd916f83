# SPDX-License-Identifier: BSD-3-Clause
"""Two hundred domains on a described machine of 64 processors."""

import statistics
import time

from host import Host
from vpmud import machine

DOMAINS = 200
STARTED = 12


def hundreds(results):
    """All are enabled and admitted through the hook; some are started, the others reserved."""
    with Host(machine(processors=64, gp=8)) as host:
        took = []
        for number in range(DOMAINS):
            name = f"vm{number}"
            host.define(name)
            host.enable(name)
            xml = host.inactive_xml(name)
            begin = time.monotonic()
            run = host.hook(name, "prepare", xml)
            took.append(time.monotonic() - begin)
            if run.returncode:
                results.check(f"{name} is admitted", False, run.stderr)
        results.equal("all are admitted", len(host.books("reserved")), DOMAINS)
        for number in range(STARTED):
            host.virsh("start", "--paused", f"vm{number * (DOMAINS // STARTED)}")
        results.equal("those that start have what was reserved", len(host.books("live")), STARTED)
        results.equal("the others wait", len(host.books("reserved")), DOMAINS - STARTED)
        quarter = DOMAINS // 4
        results.remark(f"median of an admission: {statistics.median(took[:quarter]) * 1000:.1f} ms of the first"
                       f" {quarter}, {statistics.median(took[-quarter:]) * 1000:.1f} ms of the last")


CASES = (hundreds,)
