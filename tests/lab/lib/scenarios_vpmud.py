# SPDX-License-Identifier: BSD-3-Clause
"""vpmud on the real kernel: who was admitted counts, who was not is told, who did not ask is named."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import kvm
import wire
from checks import Checks, Skipped, equal, require
from kvm import BRANCHES, Pinned, Vcpu
from scenarios_host import COUNTERS, LOOP, VPMUCTL, doctor
from vpmud import ROOT_MAY_ALL, Vpmud, eventually

EVENTS = ["branches:u", "instructions:u"]
AGENT = 5  # counters that an agent pins
VM = 4  # counters of a VM that leaves some


class Arbiter(Vpmud):
    """A vpmud that looks at L1 when it starts and when it is told to."""

    def __init__(self, watch_ms=0):
        watch = {"interval_ms": watch_ms, "name_holders": "yes"}
        super().__init__(daemon={"grace_ms": 0}, sections={"watch": watch} | ROOT_MAY_ALL)

    def arguments(self):
        return "--config", str(self.config)

    def vpmuctl(self, *words):
        """What vpmuctl says to people; its exit status has its own tests."""
        return subprocess.run([VPMUCTL, *words, "--control", self.control], capture_output=True, text=True,
                              timeout=60, check=False).stdout

    def perf(self, counters, events, *command):
        """`perf stat -a` under a lease of so many counters, while the command runs."""
        return subprocess.Popen(
            [VPMUCTL, "run", "--socket", self.socket, "--counters", str(counters), "--", "perf", "stat", "-a", "-x,",
             "-o", self.folder / "perf", "-e", ",".join(events), *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def perf_counts(self):
        """{event: (count, the share of the time in which it counted)} of the last one, and it is forgotten."""
        output = self.folder / "perf"
        rows = [line.split(",") for line in output.read_text().splitlines()] if output.exists() else []
        output.unlink(missing_ok=True)
        return {row[2]: (int(row[0]), float(row[4])) for row in rows if len(row) > 4 and row[0].isdigit()}

    def observed(self):
        return self.leases("observed")


@contextmanager
def managed_vm(arbiter, name, gp, **more):
    """A guest of one vCPU that uses what vpmud grants its VM: (client, lease, guest)."""
    with arbiter.vm(name) as vm:
        grant = vm.acquire(gp, **more)
        with Vcpu() as vcpu:
            vcpu.start(BRANCHES, vcpu.counters()[:grant.gp])
            yield vm, grant, vcpu


def paranoid(level):
    """Debian's kernels have 3, and want CAP_SYS_ADMIN then: hv/daemon/system/vpmud.sysctl."""
    Path("/proc/sys/kernel/perf_event_paranoid").write_text(str(level))


def fresh(watchdog=False, mediated=None):
    kvm.load(kvm_amd="" if mediated is None else f"enable_mediated_pmu={int(mediated)}")
    paranoid(2)
    equal("L1's NMI watchdog is on", kvm.watchdog(watchdog), watchdog)


def refusal(call, *words):
    """The call is refused, and the text has these words."""
    try:
        granted = call()
    except wire.Refused as why:
        for word in words:
            require(word in why.text, f"the refusal says \"{why.text}\", not \"{word}\"")
        return
    require(False, f"granted: {granted}")


def under_leases(checks):
    """A VM and perf stat -a, both admitted: the VM counts exactly, perf is told what is left."""
    fresh()
    with Arbiter() as arbiter:
        with managed_vm(arbiter, "web1", VM) as (vm, grant, vcpu):
            left = COUNTERS - VM
            with checks.check("a VM is granted what it asks for"):
                equal("granted", (grant.gp, grant.reason), (VM, wire.NONE))
            with checks.check("row 4: perf stat -a that would starve the VM is refused, and told what is left"):
                with arbiter.perf(left + 1, ["cycles:u"], "true") as perf:
                    said = perf.stderr.read()
                require(perf.returncode, f"it is granted: {said}")
                equal("what perf counted", arbiter.perf_counts(), {})
                for word in ("web1", str(COUNTERS), str(VM)):
                    require(word in said, f"vpmuctl says {said!r}, not {word!r}")
            with checks.check("row 4: perf stat -a with what is left counts, and so does the VM, exactly"):
                with arbiter.perf(left, EVENTS[:left], "sleep", "2") as perf:
                    loops = 0
                    while perf.poll() is None:
                        vcpu.loop(LOOP)
                        loops += 1
                    said = perf.stderr.read().strip()
                equal(f"vpmuctl's status ({said})", perf.returncode, 0)
                require(loops > 1, "the guest did not run beside perf")
                equal("the VM's counters", vcpu.read()[:VM], [loops * LOOP] * VM)
                counts = arbiter.perf_counts()
                equal("perf's events", set(counts), set(EVENTS[:left]))
                for event, (count, share) in counts.items():
                    require(count > 0, f"perf counted no {event}")
                    equal(f"perf's share of the time, {event}", share, 100.0)
            with checks.check("what perf had is given back"):
                eventually(lambda: set(arbiter.leases()) == {"web1"}, "the lease of vpmuctl run")
        with checks.check("with no VM there perf has all counters"):
            eventually(lambda: not arbiter.leases(), "the VM's lease")
            with arbiter.perf(COUNTERS, EVENTS, "true") as perf:
                said = perf.stderr.read().strip()
            equal(f"vpmuctl's status ({said})", perf.returncode, 0)
            equal("perf's events", set(arbiter.perf_counts()), set(EVENTS))


def unmanaged(checks):
    """Rows 1, 2 and 4: an agent that has not asked is found, named, and the VM it starves is told."""
    fresh()
    with Arbiter() as arbiter, managed_vm(arbiter, "web1", VM) as (vm, grant, vcpu):
        vm.subscribe()
        with Pinned(AGENT) as agent:
            require(agent.first.startswith("held"), agent.first)
            name = f"pin (pid {agent.pid})"
            arbiter.reload()
            with checks.check("row 4: the agent stands in vpmud's books, with pid and command"):
                observed = arbiter.observed()
                equal("observed", set(observed), {name})
                equal("its counters", observed[name]["granted"]["gp"], AGENT)
                equal("its pid", observed[name]["pid"], agent.pid)
            with checks.check("row 4: the VM is told that it is short, and of whom"):
                notice = vm.notice()
                equal("its state", notice.state, wire.SHORT)
                require(name in notice.text, notice.text)
                lease = arbiter.leases()["web1"]
                equal("its state in the books", lease["lease_state"], "short")
                require(name in lease["why"], lease["why"])
            with checks.check("row 2: who comes now is refused, and told of whom"):
                with arbiter.vm("web2") as second:
                    refusal(lambda: second.acquire(2), name, f"{COUNTERS}")
                    equal("what is left", second.acquire(COUNTERS, least=(1, 0)).gp, COUNTERS - AGENT)
                with arbiter.profiler() as perf:
                    refusal(lambda: perf.acquire(2), name)
            with checks.check("row 1: a VM that reports a starved counter is in the log, with who has it"):
                before = len(arbiter.read_log())
                vm.report(grant.lease, 1, [0, 0, 0, VM, 0, 0, 0, 0])
                arbiter.wait_for_log("event=starved", before)
                require(name in arbiter.read_log(before), arbiter.read_log(before))
            for command in (("status",), ("leases",), ("explain", "web1")):
                with checks.check(f"row 4: vpmuctl {command[0]} names the agent"):
                    said = arbiter.vpmuctl(*command)
                    for word in (name, "web1", "short"):
                        require(word in said, f"{said!r} has no {word!r}")
            with checks.check("row 4: vpmuctl doctor names the agent and what it leaves"):
                found = doctor("--measure")
                found.expect("holders", "warning", name, f"{AGENT} on each")
                found.expect("left", "failure", f"{COUNTERS - AGENT} of {COUNTERS}", name)
        with checks.check("when the agent has gone the VM is told"):
            arbiter.reload()
            equal("observed", arbiter.observed(), {})
            equal("the VM's state", vm.notice().state, wire.GRANTED)


def watched(checks):
    """vpmud finds an agent by itself, and harms no VM while it looks: rows 4 and 20."""
    fresh()
    with Arbiter(watch_ms=100) as arbiter, managed_vm(arbiter, "web1", COUNTERS) as (_, grant, vcpu):
        with checks.check("row 20: a VM with all counters counts exactly while vpmud measures"):
            looked = observations(arbiter)
            loops = 0
            while observations(arbiter) < looked + 20:
                vcpu.loop(LOOP)
                loops += 1
            equal("the VM's counters", vcpu.read(), [loops * LOOP] * grant.gp)
            equal("observed", arbiter.observed(), {})
            require("event=not-measured" not in arbiter.read_log(), arbiter.read_log())
        with checks.check("row 4: an agent is found without being looked for"):
            with Pinned(1) as agent:
                eventually(lambda: f"pin (pid {agent.pid})" in arbiter.observed(), "the agent in the books")
                eventually(lambda: arbiter.leases()["web1"]["lease_state"] == "short", "the VM is short")
            eventually(lambda: not arbiter.observed(), "the agent has gone")


def not_measured(checks):
    """Where the kernel lets nobody measure that is said, and an agent is named all the same."""
    fresh()
    paranoid(3)
    with Arbiter() as arbiter, arbiter.vm("web1") as vm:
        with checks.check("row 4: what cannot be measured is said, with how to mend it"):
            require("event=not-measured" in arbiter.read_log(), arbiter.read_log())
            require("perf_event_paranoid is 3" in arbiter.ask("host")["not_measured"], arbiter.ask("host"))
        with Pinned(AGENT) as agent, checks.check("row 4: an agent that is not measured is named"):
            arbiter.reload()
            refusal(lambda: vm.acquire(VM), f"pin (pid {agent.pid})")
        with checks.check("row 4: when measuring is allowed again that is said"):
            paranoid(2)
            arbiter.reload()
            arbiter.wait_for_log("event=measured")


def hotplug(checks):
    """A processor goes and comes back, while a VM counts on the other one."""
    fresh()
    switch = Path(f"/sys/devices/system/cpu/cpu{os.cpu_count() - 1}/online")
    if not switch.exists():
        raise Skipped("L1 has one processor")
    with Arbiter(watch_ms=200) as arbiter, managed_vm(arbiter, "web1", VM) as (vm, grant, vcpu):
        count = len(vm.status().processors)
        with checks.check("a VM's lease follows the processors that are online, and it counts exactly"):
            vcpu.loop(LOOP)
            switch.write_text("0")
            try:
                eventually(lambda: len(vm.status().processors) == count - 1, "the processor is gone")
                vcpu.loop(LOOP)
            finally:
                switch.write_text("1")
            eventually(lambda: len(vm.status().processors) == count, "the processor is back")
            vcpu.loop(LOOP)
            equal("the VM's counters", vcpu.read()[:grant.gp], [3 * LOOP] * grant.gp)
            equal("observed", arbiter.observed(), {})


def observations(arbiter):
    return arbiter.scrape()["vpmud_observations_total"]


def watchdog(checks):
    """Row 3: the NMI watchdog's counter is not given away."""
    fresh(watchdog=True)
    with Arbiter() as arbiter:
        with checks.check("row 3: the NMI watchdog stands in the books"):
            equal("its counters", {n: o["granted"]["gp"] for n, o in arbiter.observed().items()}, {"NMI watchdog": 1})
        with checks.check("row 3: a VM is refused the watchdog's counter, by name"):
            with arbiter.vm("web1") as vm:
                refusal(lambda: vm.acquire(COUNTERS), "NMI watchdog", f"{COUNTERS}")
        with checks.check("row 3: a VM with one counter less counts exactly"):
            with managed_vm(arbiter, "web1", COUNTERS, least=(1, 0)) as (_, grant, vcpu):
                equal("granted", (grant.gp, grant.reason), (COUNTERS - 1, wire.REDUCED))
                require("NMI watchdog" in grant.text, grant.text)
                vcpu.loop(LOOP)
                equal("the VM's counters", vcpu.read()[:grant.gp], [LOOP] * grant.gp)
        with checks.check("row 3: with the watchdog off there is one more"):
            kvm.watchdog(False)
            arbiter.reload()
            equal("observed", arbiter.observed(), {})
            with arbiter.vm("web1") as vm:
                equal("granted", vm.acquire(COUNTERS).gp, COUNTERS)
    kvm.watchdog(False)


def barred(checks):
    """Rows 8 and 11: kvm.enable_pmu=N."""
    kvm.watchdog(False)
    kvm.load(kvm="enable_pmu=0")
    with Arbiter() as arbiter, arbiter.vm("web1") as vm, arbiter.profiler() as perf:
        with checks.check("rows 8 and 11: a VM on a host with kvm.enable_pmu=N is refused, and told why"):
            refusal(lambda: vm.acquire(1), "enable_pmu")
        with checks.check("row 8: a profiler is not"):
            equal("granted", perf.acquire(COUNTERS).gp, COUNTERS)
        with checks.check("row 8: after kvm has been loaded anew the VM is admitted"):
            perf.close()
            kvm.load()
            arbiter.reload()
            equal("granted", vm.acquire(1).gp, 1)
    kvm.load()


def mediated(checks):
    """Rows 12 and 13: beside a mediated vPMU either VMs or host events that count guests."""
    kvm.load()
    if kvm.parameter("kvm_amd", "enable_mediated_pmu") is None:
        raise Skipped("this kernel has no mediated vPMU")
    fresh(mediated=True)
    with Arbiter() as arbiter:
        with checks.check("row 12: a VM has the whole PMU; events that count guests are refused by its name"):
            with managed_vm(arbiter, "web1", COUNTERS) as (_, grant, vcpu), arbiter.profiler() as perf:
                refusal(lambda: perf.acquire(1), "web1")
                equal("events that exclude guests", perf.acquire(COUNTERS, flags=wire.EXCLUDES_GUESTS).gp, COUNTERS)
                with Pinned(COUNTERS, "exclude-guest") as agent:
                    require(agent.first.startswith("held"), agent.first)
                    vcpu.loop(LOOP)
                equal("the VM's counters", vcpu.read(), [LOOP] * grant.gp)
        with checks.check("row 12: a VM beside events that count guests is refused by their name"):
            eventually(lambda: not arbiter.leases("live"), "closed connections give back")
            with arbiter.profiler("perf") as perf, arbiter.vm("web1") as vm:
                perf.acquire(1)
                refusal(lambda: vm.acquire(1), "perf")
        with checks.check("row 13: the NMI watchdog beside a mediated vPMU keeps VMs out, by its name"):
            require(kvm.watchdog(True), "L1 has no NMI watchdog")
            arbiter.reload()
            with arbiter.vm("web1") as vm:
                refusal(lambda: vm.acquire(1), "NMI watchdog")
            kvm.watchdog(False)
            arbiter.reload()
            with managed_vm(arbiter, "web1", COUNTERS) as (_, grant, vcpu):
                vcpu.loop(LOOP)
                equal("the VM's counters", vcpu.read(), [LOOP] * grant.gp)
    kvm.load()


SCENARIOS = {
    f"vpmud-{function.__name__.replace('_', '-')}": function
    for function in (under_leases, unmanaged, watched, not_measured, hotplug, watchdog, barred, mediated)
}


def register(scenarios, checks: Checks):
    """Adds these to the table of scenarios, with the checks that print their results."""
    for name, function in SCENARIOS.items():
        scenarios[name] = lambda function=function: function(checks)
