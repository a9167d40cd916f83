# SPDX-License-Identifier: BSD-3-Clause
"""Domains of libvirt with type='kvm' and the kernel's counters: start, refuse, starve, release."""

import shutil
from pathlib import Path

import kvm
from checks import Checks, equal, require
from host import Host, Refused
from kvm import Pinned
from scenarios_host import COUNTERS
from scenarios_vpmud import paranoid
from vpmud import Vpmud, eventually

VM = 4  # counters of a domain


class Arbiter(Vpmud):
    """A vpmud that looks at L1."""

    def arguments(self):
        return "--config", str(self.config)


def domains(checks):
    """What virsh says of them, and what vpmud's books have."""
    kvm.load()
    kvm.watchdog(False)
    paranoid(2)
    Path("/dev/kvm").chmod(0o660)  # as udev would
    shutil.chown("/dev/kvm", group="kvm")
    with Host(arbiter=Arbiter, kind="kvm") as host:
        for name in ("web1", "web2"):
            host.define(name)
            host.enable(name, "--counters", str(VM))
        with checks.check("libvirt: a domain starts and has its counters"):
            host.virsh("start", "web1")
            equal("the books", host.books(), {"web1": ("live", VM)})
            grant = host.monitor("web1", "query-vpmu-grant")
            equal("the grant", (grant["source"], grant["gp"], grant["lease"]), ("kvm", VM, "granted"))
        with checks.check("libvirt: an agent that did not ask starves it, and it is told so"), Pinned(COUNTERS - 1) as agent:
            require(agent.first.startswith("held"), agent.first)
            host.vpmud.reload()
            eventually(lambda: host.monitor("web1", "query-vpmu-grant")["lease"] == "short", "the lease is short")
        with checks.check("libvirt: beside an agent a domain does not start, and virsh says who has them"), \
                Pinned(COUNTERS - 1) as agent:
            host.vpmud.reload()
            try:
                host.virsh("start", "web2")
                require(False, "it has started")
            except Refused as said:
                for word in ("web2", "asked:", "answer:", "to do:"):
                    require(word in str(said), f"virsh says \"{said}\", not \"{word}\"")
            equal("the books", host.books(), {"web1": ("live", VM)})
        with checks.check("libvirt: the agent has gone, and the domain starts"):
            host.vpmud.reload()
            host.virsh("start", "web2")
            equal("the books", host.books(), {"web1": ("live", VM), "web2": ("live", VM)})
        with checks.check("libvirt: destroy and kill -9 give back"):
            host.virsh("destroy", "web1")
            host.kill_qemu("web2")
            eventually(lambda: not host.books(), "the books are empty")


SCENARIOS = {"libvirt-domains": domains}


def register(scenarios, checks: Checks):
    """Adds these to the table of scenarios, with the checks that print their results."""
    for name, function in SCENARIOS.items():
        scenarios[name] = lambda function=function: function(checks)
