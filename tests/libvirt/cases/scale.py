# SPDX-License-Identifier: BSD-3-Clause
"""Two hundred domains, started one after the other on a described machine of 64 processors."""

import re
import statistics
import time

from host import Host
from vpmud import machine

DOMAINS = 200


def start(host, name):
    """Seconds that the hook took of it, which is how long admission takes."""
    host.define(name)
    host.enable(name)
    xml = host.inactive_xml(name)
    begin = time.monotonic()
    reserved = host.hook(name, "prepare", xml)
    took = time.monotonic() - begin
    if reserved.returncode:
        raise RuntimeError(reserved.stderr)
    host.virsh("start", "--paused", name)
    return took


def hundreds(results):
    """All are enabled, admitted and started, and none ends before the last has started."""
    with Host(machine(processors=64, gp=8)) as host:
        took = [start(host, f"vm{number}") for number in range(DOMAINS)]
        results.equal("all are in the books", set(host.books().values()), {("live", 4)})
        results.equal("each of them", len(host.books()), DOMAINS)
        refused = re.findall("event=refused", host.vpmud.read_log())
        results.equal("nobody was refused", refused, [])
        quarter = DOMAINS // 4
        results.remark(f"median of an admission: {statistics.median(took[:quarter]) * 1000:.1f} ms of the first"
                       f" {quarter}, {statistics.median(took[-quarter:]) * 1000:.1f} ms of the last")


CASES = (hundreds,)
