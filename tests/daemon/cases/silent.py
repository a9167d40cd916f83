# SPDX-License-Identifier: BSD-3-Clause
"""What silently goes wrong without an arbiter: each is refused, or said, and the holder is named."""

import wire
from vpmud import ROOT_MAY_ALL, Vpmud, eventually, machine, new_uuid

AGENT = {"name": "agent", "pid": 812, "events": 40, "gp": 5, "pinned": True}


def refused(results, what, call, status, *words):
    """The call is refused with this status, and the text has these words."""
    try:
        got = call()
        results.check(what, False, f"granted: {got}")
    except wire.Refused as error:
        missing = [w for w in words if w.lower() not in error.text.lower()]
        results.check(what, error.status == status and not missing, f"{error}; it lacks {missing}")


def frozen_counter(results):
    """Row 1: KVM cannot create an event: the VM is admitted before it starts, and reports starvation."""
    with Vpmud(machine(gp=4)) as daemon, daemon.vm("web1") as vm:
        refused(results, "more counters than there are", lambda: vm.acquire(5), wire.INSUFFICIENT_RESOURCES, "5", "4")
        lease = vm.acquire(4).lease
        vm.report(lease, 1, [0, 3, 0, 1, 0, 0, 0, 0], [(0, 3, 0x4300C0, 10**9, 10**8)])
        report = daemon.leases()["web1"]["report"]
        results.equal("a starved counter is in the books", report["states"]["starved"], 1)
        results.check("and in the log", "event=starved" in daemon.read_log(), daemon.read_log())
        vm.report(lease, 1, [0, 3, 1, 0, 0, 0, 0, 0])
        results.check("also when it counts again", "event=backed" in daemon.read_log(), daemon.read_log())


def host_agent(results):
    """Rows 2 and 4: CPU-wide pinned events of the host win."""
    with Vpmud(machine(gp=6, holders=[AGENT])) as daemon, daemon.vm("web1") as vm:
        refused(results, "beside an agent that holds 5 of 6", lambda: vm.acquire(2), wire.INSUFFICIENT_RESOURCES,
                "agent")
        grant = vm.acquire(6, least=(1, 0))
        results.equal("reduced to what is left", (grant.gp, grant.reason), (1, wire.REDUCED))
        results.check("the text names the agent", "agent" in grant.text, grant.text)


def over_pinned_later(results):
    """Row 4: an agent that pins later makes a VM short; the VM is told, and told when it has gone."""
    with Vpmud(machine(gp=6)) as daemon, daemon.vm("web1") as vm:
        vm.acquire(4)
        vm.subscribe()
        daemon.describe(machine(gp=6, holders=[AGENT]))
        daemon.reload()
        notice = vm.notice()
        results.equal("the VM is short", notice.state, wire.SHORT)
        results.check("by whom", "agent" in notice.text, notice.text)
        results.equal("the control socket says so", daemon.leases()["web1"]["lease_state"], "short")
        daemon.describe(machine(gp=6))
        daemon.reload()
        results.equal("the agent has gone", vm.notice().state, wire.GRANTED)


def watchdog(results):
    """Row 3: the NMI watchdog has a counter on every processor."""
    with Vpmud(machine(gp=4, fixed=0, watchdog=True)) as daemon, daemon.vm() as vm:
        refused(results, "all counters, with the NMI watchdog on", lambda: vm.acquire(4),
                wire.INSUFFICIENT_RESOURCES, "watchdog")
        results.equal("one fewer is granted", vm.acquire(4, least=(1, 0)).gp, 3)


def libvirt_perf(results):
    """Row 5: libvirt's <perf> counts on the threads of the domain."""
    uuid = new_uuid()
    text = f"{uuid.hex()[:8]}-{uuid.hex()[8:12]}-{uuid.hex()[12:16]}-{uuid.hex()[16:20]}-{uuid.hex()[20:]}"
    domain = {"kind": "domain_perf", "name": "db1", "pid": 99, "uuid": text, "events": 2, "gp": 2,
              "binding": "vcpu"}
    with Vpmud(machine(gp=4, holders=[domain])) as daemon:
        with daemon.vm("db1", uuid) as vm:
            refused(results, "all counters beside <perf>", lambda: vm.acquire(4), wire.INSUFFICIENT_RESOURCES, "it has 4",
                    "2 GP", "libvirt's <perf>")
            vm.acquire(2)
            results.equal("what it counts is beside the lease", vm.status().beside, (2, 0))
        with daemon.vm("other") as vm:
            results.equal("another VM has room", vm.acquire(4).gp, 4)


def profilers(results):
    """Rows 2 and 4, under leases: host profilers and VMs do not starve each other."""
    with Vpmud(machine(gp=8)) as daemon, daemon.vm("web1") as vm, daemon.profiler("perf") as perf:
        vm.acquire(6, processors=[0, 1])
        refused(results, "a profiler that would starve a VM", lambda: perf.acquire(3, processors=[1]),
                wire.INSUFFICIENT_RESOURCES, "web1")
        lease = perf.acquire(2, processors=[1]).lease
        results.equal("what is left is granted", perf.status(lease).granted, (2, 0))
        with daemon.vm("web2") as other:
            refused(results, "a VM beside a profiler", lambda: other.acquire(7, processors=[1]),
                    wire.INSUFFICIENT_RESOURCES, "perf")
            results.equal("VMs on the same processor take turns", other.acquire(6, processors=[1]).gp, 6)


def barred_hosts(results):
    """Rows 8 and 9: KVM gives no guest a PMU."""
    for what, facts, word in (("kvm.enable_pmu=N", {"enable_pmu": False}, "enable_pmu"),
                              ("hybrid processors", {"hybrid": True}, "hybrid")):
        with Vpmud(machine(facts=facts)) as daemon, daemon.vm() as vm, daemon.profiler() as perf:
            refused(results, f"a VM with {what}", lambda: vm.acquire(1), wire.NOT_SUPPORTED, word)
            results.equal(f"a profiler with {what}", perf.acquire(1).gp, 1)
            results.check(f"{what} is in the answer to host", word in daemon.ask("host")["bars_vms"],
                          daemon.ask("host")["bars_vms"])


def mediated(results):
    """Rows 12 and 13: with a mediated vPMU VMs and events that count guests exclude each other."""
    with Vpmud(machine(facts={"mediated": True, "mediated_known": True})) as daemon:
        with daemon.vm("web1") as vm, daemon.profiler("perf") as perf:
            results.equal("hello says mediated", vm.welcome.mediated, 1)
            vm.acquire(8)
            refused(results, "events that count guests, beside a VM", lambda: perf.acquire(1),
                    wire.INSUFFICIENT_RESOURCES, "web1")
            results.equal("events that exclude guests", perf.acquire(4, flags=wire.EXCLUDES_GUESTS).gp, 4)
        eventually(lambda: not daemon.leases("live"), "closed connections give back")
        with daemon.vm("web1") as vm, daemon.profiler("perf") as perf:
            perf.acquire(1, processors=[3])
            refused(results, "a VM, beside events that count guests", lambda: vm.acquire(1, processors=[0]),
                    wire.INSUFFICIENT_RESOURCES, "perf")
    with Vpmud(machine(watchdog=True, facts={"mediated": True, "mediated_known": True})) as daemon, daemon.vm() as vm:
        refused(results, "a VM, with the NMI watchdog on", lambda: vm.acquire(1), wire.INSUFFICIENT_RESOURCES,
                "NMI watchdog")
    facts = {"mediated": False, "mediated_known": True, "mediated_asked": True}
    with Vpmud(machine(facts=facts)) as daemon, daemon.vm() as vm:
        results.equal("asked for, and silently off: hello says so", vm.welcome.mediated, 0)


def probe(results):
    """Row 20: measuring with leases standing calls nobody unmanaged."""
    with Vpmud(machine(gp=6)) as daemon, daemon.vm() as vm, daemon.profiler() as perf:
        vm.acquire(4)
        perf.acquire(2)
        daemon.reload()
        results.equal("nothing is observed", daemon.leases("observed"), {})
        results.equal("the VM is not short", daemon.leases()["vm"]["lease_state"], "granted")


def odd_claims(results):
    """What admission refuses for the claim's own sake."""
    with Vpmud(machine()) as daemon, daemon.vm() as vm:
        refused(results, "a processor that is not there", lambda: vm.acquire(1, processors=[0, 9]),
                wire.INVALID_PARAMETER, "9")
        refused(results, "an empty set", lambda: vm.acquire(1, processors=[]), wire.INVALID_PARAMETER)
        refused(results, "least above need", lambda: vm.acquire(1, least=(2, 0)), wire.INVALID_PARAMETER)
        refused(results, "a fixed counter that is not there", lambda: vm.acquire(1, fixed=0x10),
                wire.INSUFFICIENT_RESOURCES)
        refused(results, "somebody else's lease", lambda: vm.release(12345), wire.INVALID_PARAMETER)
    sections = {k: v | {"max_gp": 3} for k, v in ROOT_MAY_ALL.items()}
    with Vpmud(machine(), sections=sections) as daemon, daemon.vm() as vm:
        refused(results, "more than the policy gives", lambda: vm.acquire(4), wire.DENIED, "policy test", "3")
        results.equal("as much as the policy gives", vm.acquire(3).gp, 3)
    with Vpmud(machine(), daemon={"leases": 1}) as daemon, daemon.vm() as vm:
        vm.acquire(1)
        refused(results, "one lease more than the books have room for", lambda: vm.acquire(1),
                wire.INSUFFICIENT_RESOURCES)


CASES = [frozen_counter, host_agent, over_pinned_later, watchdog, libvirt_perf, profilers, barred_hosts, mediated,
         probe, odd_claims]
