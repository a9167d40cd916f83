# SPDX-License-Identifier: BSD-3-Clause
"""Guests of the real KVM under -object vpmu,socket=: admitted by vpmud, and watched while they run.

Each row of the table of silent failures that a KVM guest can meet is provoked as in scenarios.py;
what became of it is recorded, and tests/lab/run sets it beside what the same host does today.
"""

import json
import os
import re
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import kvm
import scenarios
from checks import Checks, equal, require
from kvm import Pinned
from machine import Broken, Machine, make_live, wait_migration
from scenarios_vpmu import (
    BRANCHES, CONDITIONAL, COUNTERS, GLOBAL, HYPERV, INSTRUCTIONS, PERFMON_V2, boot, check_counts, check_gate,
    check_refusal, events, need_mediated)
from vpmud import PATIENCE_S, ROOT_MAY_ALL, Vpmud
from wire import Refused

CYCLES = 0x76
LEGACY_COUNTERS = 4
MOST_UNSEEN_NS = 2_000_000_000  # for which a guest runs before it is told that it is starved
# Times mean nothing here, so what looking costs is counted: a thousandth of a slow processor's 10^9.
MOST_INSTRUCTIONS = 1_000_000  # in a second, of the vCPU's thread in the host
WATCHED_S = int(os.environ.get("WATCHED_S", "20"))
MEASURED_S = 10
MOVES = 5
PERF_COMMANDS = (
    "sleep 5",
    "perf stat -e instructions,cycles,branches,branch-misses,r00d1,r00c3,r0076,r00c4 mix",
    "perf record -c 100003 -e instructions -o recorded loop",
    "perf stat -a -e instructions:u,cycles:k sleep 5",
)
STATUS_DEVICE, PAGES_BAR, PAGE = (0x1234, 0x5650), 2, 4096
STATES = ("absent", "granted", "backed", "starved", "filtered", "unsupported", "revoked")


class Host(Vpmud):
    """vpmud, on L1 itself."""

    def __init__(self):
        super().__init__(sections={"watch": {"interval_ms": 500, "name_holders": "yes"}, **ROOT_MAY_ALL})

    def arguments(self):
        return "--config", str(self.config)

    def said(self, event):
        """The lines of its log about an event."""
        return [line for line in self.read_log().splitlines() if f"event={event} " in line]


class Guest(Machine):
    """tests/qemu/images/grant.c on L1's KVM, with vpmud's counters."""

    def __init__(self, host, name, append, vpmu="", vcpus=1, options=(), incoming=False):
        self.vm_name = name
        more = ("-incoming", "defer") if incoming else ()
        super().__init__(
            "host", append, cpus=vcpus, name="grant",
            options=("-accel", "kvm", "-name", f"guest={name}", *object_of(host, vpmu), "-device", "vpmu-status",
                     *options, *more))
        if not incoming:
            self.wait_line("READY")

    def states(self):
        """{state: how many counters of all vCPUs are in it}"""
        counters = [c for vcpu in self.vpmu() for c in vcpu["counters"]]
        return {c["state"]: sum(d["state"] == c["state"] for d in counters) for c in counters}

    def page(self):
        """The first vCPU's counters as its guest is told them: [(state, enabled ns, backed ns)] of hv/include/vpmu/status.h."""
        device = next(device for bus in self.qmp("query-pci") for device in bus["devices"]
                      if (device["id"]["vendor"], device["id"]["device"]) == STATUS_DEVICE)
        address = next(region["address"] for region in device["regions"] if region["bar"] == PAGES_BAR)
        with tempfile.NamedTemporaryFile() as file:
            self.qmp("pmemsave", val=address, size=PAGE, filename=file.name)
            raw = file.read()
        (count,) = struct.unpack_from("<I", raw, 12)
        records = [struct.unpack_from("<IIQQQ", raw, 64 + 32 * n) for n in range(count)]
        return [(STATES[state], enabled, backed) for _, state, _, enabled, backed in records]

    def page_states(self):
        """{state: how many counters of the first vCPU are in it}, as its guest is told."""
        found = [state for state, _, _ in self.page()]
        return {state: found.count(state) for state in found}

    def ran_ns(self):
        return sum(vcpu["ran-ns"] for vcpu in self.vpmu())

    def wait_state(self, state, before=None):
        """The event that says so of a counter."""
        return self.wait_event(
            lambda event: event["event"] == "VPMU_COUNTER_STATE" and event["data"]["state"] == state
            and before in (None, event["data"]["before"]))["data"]

    def troubles(self):
        """The states that events have told of so far."""
        self.qmp("query-status")  # events come before the answer
        return [event["data"] for event in self.events if event["event"] == "VPMU_COUNTER_STATE"]


def object_of(host, vpmu=""):
    socket = f"socket={host.socket}" if host else ""
    return "-object", ",".join(filter(None, ("vpmu,id=vpmu0", socket, vpmu)))


def record(row, what, state, text="", **where):
    """A row of the table of our behaviour: the named state, or "refused", and where it can be seen."""
    print("OURS", json.dumps({"row": row, "kernel": os.uname().release, "what": what, "state": state,
                              "text": text, "where": where}), flush=True)


def fresh(checks, watchdog=False, **parameters):
    kvm.load(**parameters)
    kvm.watchdog(watchdog)
    checks.prefix("")


def refuse(row, what, host, *words, vpmu="", **more):
    """QEMU must not start; its one line speaks of these words, and is what the row records."""
    got = boot("host", ",".join(filter(None, (f"socket={host.socket}", vpmu))), **more)
    check_refusal(got, words)
    if row:
        record(row, what, "refused", got.said.partition("vpmu: ")[2], qemu="no start, exit status 1")


def observed(host, word):
    """Waits until vpmud has seen who takes counters without asking."""
    until(f"vpmud sees {word}", lambda: any(word in name for name in host.leases("observed")))


def nobody(host):
    """Waits until vpmud has seen that they are gone."""
    until("nobody takes counters without asking", lambda: not host.leases("observed"))


def until(what, condition):
    """Waits for what another process does."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        require(time.monotonic() < end, f"never: {what}")
        time.sleep(0.1)
    return answer


def lease(checks):
    """A guest has its lease as long as it lives, and vpmud's restarts do not take it."""
    fresh(checks)
    with Host() as host:
        with checks.check("a guest's lease is in the books, under its name"):
            with Guest(host, "first", f"{events(INSTRUCTIONS)} spin") as guest:
                found = host.leases("live")["first"]
                equal("granted", found["granted"], {"gp": COUNTERS, "fixed": 0})
                equal("query-vpmu-grant", guest.qmp("query-vpmu-grant")["lease"], "granted")
            until("the lease ends with QEMU", lambda: not host.leases("live"))
        with checks.check("it is renewed when vpmud has been killed and started again"):
            with Guest(host, "second", f"{events(INSTRUCTIONS)} spin") as guest:
                before = host.leases("live")["second"]["id"]
                host.kill()
                host.start()
                until("it is renewed", lambda: "second" in host.leases("live"))
                equal("its number", host.leases("live")["second"]["id"], before)
                equal("query-vpmu-grant", guest.qmp("query-vpmu-grant")["lease"], "granted")
        with checks.check("a profiler's lease is named when a guest is refused"), host.profiler("sampler") as other:
            other.acquire(3)
            refuse(None, "", host, "sampler")
            refuse(None, "", host, "sampler", vpmu="policy=reduce")
            got = boot("host", f"socket={host.socket},policy=hide", events(INSTRUCTIONS))
            equal("the counters of a guest whose PMU is hidden", got.counts(), {INSTRUCTIONS: 0})
        with checks.check("policy=reduce: the guest has what is left"), host.profiler("sampler") as other:
            other.acquire(COUNTERS - LEGACY_COUNTERS)
            got = boot("host", f"socket={host.socket},policy=reduce", events(INSTRUCTIONS, BRANCHES))
            equal("the shape", got.shape()[2], LEGACY_COUNTERS)
            require("sampler" in got.said, f"QEMU does not name the profiler: {got.said}")
            check_counts(got)
        with checks.check("no vpmud there: no start, and the reason"):
            got = boot("host", "socket=/nonexistent/vpmud.sock")
            check_refusal(got, ("/nonexistent/vpmud.sock",))


def yielding(checks):
    """A guest that yields loses its counters to a profiler, is told, and has them again afterwards."""
    fresh(checks)
    with Host() as host, Guest(host, "soft", f"{events(INSTRUCTIONS)} spin os", "yields=on") as guest:
        with checks.check("its counters are revoked, with notice"), host.profiler("sampler") as other:
            other.acquire(COUNTERS)  # waits until they have been
            guest.wait_state("revoked")
            equal("all its counters", guest.states(), {"revoked": COUNTERS})
            equal("its status page", guest.page_states(), {"revoked": COUNTERS})
            equal("query-vpmu-grant", guest.qmp("query-vpmu-grant")["lease"], "revoked")
            value = guest.counter("gp", 0)["value"]
            with Pinned(COUNTERS) as agent:
                require(agent.first.startswith("held"), f"the profiler has no room: {agent.first}")
            equal("its counter stands still", guest.counter("gp", 0)["value"], value)
        with checks.check("they come back when the profiler has gone"):
            guest.wait_state("backed", "revoked")
            guest.wait_until("it counts", lambda: guest.counter("gp", 0)["value"] > value)
            equal("query-vpmu-grant", guest.qmp("query-vpmu-grant")["lease"], "granted")


def starved(checks):
    """Rows 1, 2, 4 and 18: pinned events of the host take a running guest's counters; it is told."""
    fresh(checks)
    with Host() as host:
        for row, left, rings in ((2, 0, ""), (4, 1, "os")):
            with checks.check(f"row {row}: the host leaves {left} counters, and the guest is told"):
                starve(host, row, left, rings)


def starve(host, row, left, rings):
    codes = (INSTRUCTIONS, CYCLES, INSTRUCTIONS, CYCLES, INSTRUCTIONS, CYCLES)
    name = f"row{row}"
    with Guest(host, name, f"{events(*codes)} spin {rings}") as guest:
        guest.wait_until("all count", lambda: guest.states() == {"backed": COUNTERS})
        with Pinned(COUNTERS - left) as agent:
            begin = guest.ran_ns()
            require(agent.first.startswith("held"), agent.first)
            guest.wait_state("starved", "backed")
            unseen = guest.ran_ns() - begin
            print(f"row {row}: starved after {unseen / 1e9:.2f} s of the guest's running time", flush=True)
            guest.wait_until("the others", lambda: guest.states().get("starved") == COUNTERS - left)
            require(unseen <= MOST_UNSEEN_NS, f"told after {unseen} ns")
            until("vpmud has its report", lambda: host.said("starved"))
            line = host.said("starved")[-1]
            require("pin" in line, f"vpmud does not name the agent: {line}")
            states = host.leases("live")[name]["report"]["states"]
            lost = [c for c in guest.vpmu()[0]["counters"] if c["state"] == "starved"]
            require(all(c["backed-ns"] < c["enabled-ns"] for c in lost), "enabled and backed time")
            equal("its status page", guest.page_states().get("starved"), len(lost))
            require(all(backed < enabled for state, enabled, backed in guest.page() if state == "starved"), "its times")
            said = [line for line in guest_said(guest) if "is starved" in line]
            require(said, "QEMU's log does not say so")
        record(row, f"an agent pins {COUNTERS - left} of {COUNTERS} counters while the guest runs", "starved",
               qmp=f"VPMU_COUNTER_STATE of {len(lost)} counters", vpmud=line.partition("why=")[2],
               books=f"{states['starved']} starved", page=f"{len(lost)} starved", log=said[0].partition("vpmu: ")[2])
        if row == 2:
            record(18, "what a counter that stands still says of its time", "starved",
                   f"counted for {lost[0]['backed-ns']} of {lost[0]['enabled-ns']} ns", qmp="query-vpmu", page="the same")
        guest.wait_state("backed", "starved")
        guest.wait_until("all count again", lambda: guest.states() == {"backed": COUNTERS})
        equal("its status page, afterwards", guest.page_states(), {"backed": COUNTERS})
        until("vpmud has been told", lambda: host.said("backed"))


def guest_said(guest):
    """Everything that QEMU has said, warnings too."""
    guest.log.seek(0)
    return guest.log.read().splitlines()


def healthy(checks):
    """A guest that counts, idles or is halted is never called starved; looking costs little."""
    fresh(checks)
    codes = events(INSTRUCTIONS, CYCLES, INSTRUCTIONS, CYCLES, BRANCHES, BRANCHES)
    guests = [("spin", "os"), ("pulse", "os"), ("pulse", ""), ("halt", "os")]
    with Host() as host:
        running = []
        try:
            for n, (what, rings) in enumerate(guests):
                running.append(Guest(host, f"{what}{n}", f"{codes} {what} {rings}", vcpus=2))
            time.sleep(WATCHED_S)
            for guest in running:
                with checks.check(f"never in trouble: {guest.vm_name}"):
                    equal("events of its counters", guest.troubles(), [])
                    equal("their states", guest.states(), {"backed": 2 * COUNTERS})
            with checks.check("vpmud was told of no starvation"):
                equal("its log", host.said("starved"), [])
        finally:
            for guest in running:
                guest.__exit__()
        with checks.check("what looking costs"):
            with Guest(host, "measured", f"{events(INSTRUCTIONS)} halt") as guest:
                cost = instructions_per_second(guest)
                print(f"looking at a vCPU takes {cost:.0f} instructions of the host in a second", flush=True)
                require(0 < cost <= MOST_INSTRUCTIONS, f"{cost:.0f} instructions in a second")


def debian(checks):
    """Linux's own NMI watchdog, perf that samples, and more events than counters: nothing of it is starvation."""
    fresh(checks)
    with Host() as host, scenarios.debian("watched", append="nmi_watchdog=1", options=object_of(host)) as guest:
        with checks.check("L2's NMI watchdog runs"):
            require("NMI watchdog: Enabled" in guest.dmesg(), "not enabled")
        for command in PERF_COMMANDS:
            with checks.check(f"a watched guest: {command}"):
                guest.output(f"{command} 2>&1")
                equal("what QEMU says", guest.errors(), [])
        with checks.check("what vpmud was told"):
            (lease_of_it,) = host.leases("live").values()
            states = lease_of_it["report"]["states"]
            equal("starved", states["starved"], 0)
            equal("vpmud's log", host.said("starved"), [])


def instructions_per_second(guest):
    """What the thread of a halted guest's vCPU executes in the host: nothing but looks."""
    thread = guest.qmp("query-cpus-fast")[0]["thread-id"]
    with tempfile.NamedTemporaryFile("r") as output:
        subprocess.run(["perf", "stat", "-x,", "-o", output.name, "-e", "instructions:Hku", "-t", str(thread),
                        "sleep", str(MEASURED_S)], check=True)
        row = next(line for line in output if "instructions" in line)
    return int(row.split(",")[0]) / MEASURED_S


def refusals(checks):
    """Rows 2 to 10: what cannot be had ends QEMU with one line that names who has it, or why."""
    fresh(checks)
    with Host() as host:
        with Pinned(COUNTERS), checks.check("row 2: an agent that is there first is named"):
            observed(host, "pin")
            refuse(2, "an agent has all counters before the guest starts", host, "pin")
        nobody(host)
        with Pinned(COUNTERS - 1), checks.check("row 4: one that leaves a counter, too"):
            observed(host, "pin")
            refuse(4, "an agent leaves one counter", host, f"{COUNTERS - 1} of {COUNTERS} taken; most by pin")
        nobody(host)
        with checks.check("row 3: the NMI watchdog is named, and the guest reduced by it counts exactly"):
            require(kvm.watchdog(True), "L1 has no NMI watchdog")
            observed(host, "watchdog")
            refuse(3, "the NMI watchdog has one counter", host, "watchdog")
            got = boot("host", f"socket={host.socket},policy=reduce", events(INSTRUCTIONS, BRANCHES))
            kvm.watchdog(False)
            equal("the shape", got.shape()[2], LEGACY_COUNTERS)
            check_counts(got)
            record(3, "the same, policy=reduce", "reduced", got.said.splitlines()[-1].partition("vpmu: ")[2],
                   guest="every counter that it is told of counts exactly")
            nobody(host)
        with checks.check("row 7: a rule that cannot match"):
            refuse(7, "deny=r5300c0 is no event", host, "r5300c0", vpmu="deny=r5300c0")
        with checks.check("row 10: no APIC of the kernel's"):
            refuse(10, "kernel-irqchip=off", host, "kernel-irqchip is off", accel="kvm,kernel-irqchip=off")
    fresh(checks, kvm="enable_pmu=0")
    with Host() as host:
        with checks.check("row 8: kvm.enable_pmu=N"):
            refuse(8, "kvm.enable_pmu=N", host, "kvm.enable_pmu is N")
        with checks.check("row 11: without a PMU the legacy counters read 0, and QEMU says why there is none"):
            with Guest(host, "hidden", "halt", "policy=hide") as guest:
                grant = guest.qmp("query-vpmu-grant")
                equal("counters of query-vpmu", guest.vpmu(), [])
            require("enable_pmu" in grant["hidden"], f"{grant}")
            record(11, "kvm.enable_pmu=N, policy=hide", "hidden", grant["hidden"].partition("vpmu: ")[2],
                   qmp="query-vpmu-grant", log="a warning")
    kvm.load()


def promises(checks):
    """Rows 6, 14, 16 and 17: what a guest is granted it can use, and what is denied says so."""
    fresh(checks)
    with Host() as host:
        with checks.check("row 6: a denied event counts nothing, and is filtered everywhere"):
            deny(host)
        with checks.check("row 14: Windows is told exactly when there are counters"):
            check_gate(boot(f"host,{HYPERV}", f"socket={host.socket}"), True)
            check_gate(boot(f"host,{HYPERV}", "gp=8,policy=hide"), False)
            record(14, "hv-* enlightenments", "granted", guest="CPUID 40000003H:EDX[2] is set, and clear without a PMU")
        with checks.check("rows 16 and 17: enabled after a reset, and read by RDPMC"):
            got = boot("host", f"socket={host.socket}", events(*(INSTRUCTIONS, BRANCHES, CONDITIONAL)))
            check_counts(got)
            equal("RDPMC", got.rdpmc(), got.counts())
            record(17, "RDPMC of every counter", "granted", guest="as RDMSR")
            if got.shape()[1] == PERFMON_V2:
                require(f"FOUND global {GLOBAL:#x}" in got.lines, "PerfCntrGlobalCtl")
                record(16, "the global enables at the start", "granted", guest=f"{GLOBAL:#x}")


def classes(checks):
    """Of every documented event, KVM has the host count exactly those that the class allows."""
    fresh(checks)
    documented = documented_events()
    require(len(documented) > 40, f"only {len(documented)} events are documented")
    for level, name in enumerate(("architectural", "standard", "enhanced"), start=1):
        with checks.check(f"class={name}: {len(documented)} events, one after the other"):
            got = boot("host", f"class={name}")
            if "masked" in got.said:
                equal("QEMU's status, on a kernel without masked entries", got.status, 1)
                continue
            allowed = {code for _, code, least in documented if least and least <= level}
            found = counted({code for _, code, _ in documented}, f"class={name}")
            wrong = [event for event, code, _ in documented if (code in found) != (code in allowed)]
            equal("events that are not as documented", wrong, [])


def documented_events():
    """[(name, PERF_CTL's event, the lowest class that has it, 0: none)] of AMD's, from tests/unit/filter_classes.c."""
    text = Path(__file__).parents[2].joinpath("unit/filter_classes.c").read_text()
    rows = text[text.index("documented amd[]"):]
    rows = rows[:rows.index("};")]
    order = ("NEVER", "ARCHITECTURAL", "STANDARD", "ENHANCED")
    found = re.findall(r'\{"([^"]+)", (?:0x(\w+)|AMD_HIGH\(0x(\w+), (\w+)\)), (\w+)\}', rows)
    return [(name, int(plain, 16) if plain else control_of(int(select, 16), int(mask, 0)), order.index(least))
            for name, plain, select, mask, least in found]


def control_of(select, mask):
    """The event's bits of a PERF_CTL (APM Vol. 2, 13.2.1)."""
    return select & 0xFF | mask << 8 | select >> 8 << 32


def counted(codes, vpmu):
    """Those of the events that a guest programs for which KVM opens an event of the host."""
    tracing = Path("/sys/kernel/tracing")
    # struct perf_event_attr: type, size, config.
    tracing.joinpath("kprobe_events").write_text("p:vpmu perf_event_create_kernel_counter config=+8(%di):x64\n")
    probe = tracing / "events/kprobes/vpmu/enable"
    try:
        tracing.joinpath("trace").write_text("")
        probe.write_text("1")
        with tempfile.NamedTemporaryFile("w") as listed:
            listed.write("\n".join(f"{kvm.IN_ALL_RINGS | kvm.ENABLE | code:x}" for code in sorted(codes)))
            listed.flush()
            boot("host", vpmu, options=("-initrd", listed.name))
        trace = tracing.joinpath("trace").read_text()
    finally:
        probe.write_text("0")
        tracing.joinpath("kprobe_events").write_text("")
    return {int(code, 16) for code in re.findall(r"config=0x(\w+)", trace)} & codes


def deny(host):
    with Guest(host, "denied", f"{events(BRANCHES, INSTRUCTIONS, CONDITIONAL)} spin", "deny=branches") as guest:
        guest.wait_state("filtered")
        guest.wait_until("the others count", lambda: guest.states().get("backed") == 2)
        first, second, third = guest.vpmu()[0]["counters"][:3]
        equal("the states", [c["state"] for c in (first, second, third)], ["filtered", "backed", "backed"])
        equal("the denied counter, and for how long it counted", (first["value"], first["backed-ns"]), (0, 0))
        require(second["value"] > third["value"] > 0, "the others do not count")
        states = until("vpmud is told", lambda: host.leases("live")["denied"].get("report", {}).get("states"))
        equal("vpmud's books", states["filtered"], 1)
        equal("its status page", guest.page_states()["filtered"], 1)
    record(6, "deny=branches", "filtered", qmp="VPMU_COUNTER_STATE, query-vpmu", vpmud="1 filtered",
           page="1 filtered", guest="the counter stands still at 0")


def mediated(checks):
    """Rows 12 and 13: a mediated vPMU is one side's as a whole; the later one is refused, the earlier named."""
    fresh(checks)
    need_mediated()
    kvm.load(kvm_amd="enable_mediated_pmu=1")
    with Host() as host:
        with checks.check("row 12: the host's event first"), Pinned(1):
            observed(host, "pin")
            refuse(12, "a host event that counts guests is there first", host, "counts guests")
        nobody(host)
        with checks.check("row 12: the guest first, then the host's profiler"):
            with Guest(host, "holder", f"{events(INSTRUCTIONS)} spin"), host.profiler("sampler") as other:
                try:
                    other.acquire(1)
                except Refused as why:
                    said = why.text
            require("holder" in said, f"the guest is not named: {said}")
            record(12, "a profiler asks while a guest runs", "refused", said, vpmud="its answer")
        with checks.check("row 13: the NMI watchdog"):
            require(kvm.watchdog(True), "L1 has no NMI watchdog")
            refuse(13, "the NMI watchdog beside a mediated vPMU", host, "watchdog")
            kvm.watchdog(False)
        nobody(host)
        with checks.check("a guest that counts exactly, is watched and never starved"):
            with Guest(host, "mediated", f"{events(INSTRUCTIONS, CYCLES)} spin os") as guest:
                time.sleep(5)
                equal("its troubles", guest.troubles(), [])
                equal("its states", guest.states(), {"backed": 2, "granted": COUNTERS - 2})


def migrated(checks):
    """Row 19: a guest goes on counting where it has the same, and stays where it is if it would not."""
    fresh(checks)
    codes = events(INSTRUCTIONS, CONDITIONAL)
    with Host() as host, tempfile.TemporaryDirectory() as folder:
        uri = f"unix:{folder}/socket"
        guest = Guest(host, "traveller", f"{codes} spin")
        try:
            with checks.check(f"{MOVES} moves, and no count is lost"):
                for _move in range(MOVES):
                    guest = move(guest, Guest(host, "traveller", f"{codes} spin", incoming=True), uri)
                guest.qmp("stop")
                instructions, branches = (c["value"] for c in guest.vpmu()[0]["counters"][:2])
                guest.qmp("cont")
                # A round of the loop is two instructions, the second a conditional branch.
                require(branches > 0 and abs(instructions - 2 * branches) <= 2, f"{instructions}, {branches}")
            with checks.check("row 19: to fewer counters it does not go, and runs on"):
                with Guest(host, "smaller", f"{codes} spin", "gp=4", incoming=True) as other:
                    equal("the migration", start_move(guest, other, uri), "failed")
                    said = wait_end(other)
                equal("the source", guest.qmp("query-status")["status"], "running")
                require("4 and 0 here" in said, f"{said}")
                record(19, "migration to a host that grants 4 of 6 counters", "refused", said.partition("vpmu: ")[2],
                       qmp="query-migrate: failed; the source runs on")
            with checks.check("row 19: where the counters are taken, there is nothing that it could go to"):
                with Host() as there, there.profiler("sampler") as other:
                    other.acquire(3)
                    refuse(19, "migration to a host whose profiler has 3 of 6 counters", there, "sampler",
                           options=("-incoming", "defer"))
                equal("the source", guest.qmp("query-status")["status"], "running")
        finally:
            guest.__exit__()


def start_move(guest, other, uri):
    make_live(guest, other)
    other.qmp("migrate-incoming", uri=uri)
    guest.qmp("migrate", uri=uri)
    return wait_migration(guest)


def move(guest, other, uri):
    try:
        equal("the migration", start_move(guest, other, uri), "completed")
        equal("its other end", wait_migration(other), "completed")
    except Exception:
        other.__exit__()
        raise
    require(not guest.troubles(), "the source's counters were in trouble")
    guest.__exit__()
    other.wait_until("it counts", lambda: other.states().get("backed") == 2)
    return other


def wait_end(machine):
    """What a QEMU that ends says last."""
    try:
        machine.wait_event(lambda event: False)
    except Broken:
        pass
    return next(line for line in guest_said(machine) if "vpmu: a guest" in line)


SCENARIOS = {f"guest-{function.__name__.replace('_', '-')}": function
             for function in (
                 lease, yielding, starved, healthy, refusals, promises, classes, debian, mediated, migrated)}


def register(scenarios, checks: Checks):
    """Adds these to the table of scenarios, with the checks that print their results."""
    for name, function in SCENARIOS.items():
        scenarios[name] = lambda function=function: function(checks)
