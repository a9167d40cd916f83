# SPDX-License-Identifier: BSD-3-Clause
"""What is tried in L1. A scenario is a function; its name with "-" is how it is called.

Those of the second half do what a host does today, without the arbiter: a guest that the host's
kernel starves reads wrong counts. They assert that it does, and record what it read.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import kvm
import perf
from checks import Checks, Failed, Skipped, equal, require
from guest import Guest
from kvm import BRANCHES, INSTRUCTIONS, Pinned, Vcpu
from program import Program

LOOP = 1_000_000
MOST_WATCHDOG_CYCLES = 5_000_000_000
PROGRAMS = ("loop", "mix", "syscalls", "faults")

# Four events, so that one counter can be missing; see tests/linux/run.
EVENTS = {
    "instructions:u": lambda program: program.instructions,
    "cycles:u": lambda program: program.instructions,
    "branches:u": lambda program: program.branches,
    "r00d1:u": lambda program: program.conditional,
}

checks = Checks()


def record(row, what, executed, reads, said):
    """A row of the table of today's behaviour: what the guest executed, what it reads, who says so."""
    kernel = os.uname().release
    said = " / ".join(re.sub(r"^\[[^]]*\] ", "", line) for line in said) or "nothing"
    print("TODAY", json.dumps({"row": row, "kernel": kernel, "what": what, "executed": executed,
                               "reads": reads, "said": said}), flush=True)


class Said:
    """The lines that the kernel has logged since this was made."""

    def __init__(self):
        self._before = len(kvm.dmesg())

    def lines(self):
        return kvm.dmesg()[self._before:]


def program(name):
    return Program(Path(os.environ["BUILD"]) / "linux/bin" / name)


def debian(name, **more):
    """A Debian guest on L1's KVM."""
    return Guest(os.environ["QEMU"], "host,pmu=on", name, accel="kvm", **more)


def image(name, cpu, append="", vcpus=1, accel="kvm"):
    """Run an image of tests/guest on L1's KVM: (lines, exit status, what QEMU says)."""
    data = [word for path in os.environ["QEMU_DATA"].split() for word in ("-L", path)]
    done = subprocess.run(
        [os.environ["QEMU"], *data, "-accel", accel, "-cpu", cpu, "-smp", str(vcpus), "-m", "64",
         "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
         "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
         "-kernel", Path(os.environ["BUILD"]) / f"tests/guest/{name}.elf", "-append", append],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.splitlines(), done.returncode, done.stderr.strip()


# --- The lab itself: no PMU needed -----------------------------------------------------------------


def starts():
    """KVM loads, with nested paging; a bare vCPU runs."""
    with checks.check("kvm_amd loads, with nested paging"):
        said = "\n".join(kvm.load())
        require("Nested Paging enabled" in said, said)
    with checks.check("a bare vCPU runs"):
        with Vcpu() as vcpu:
            equal("the first answer", vcpu.first, "ok")
            vcpu.loop(LOOP)
            equal("an MSR that there is not", vcpu.ask("rdmsr", 0x12345), "fault")


def test_image():
    """An image of tests/guest as L2."""
    vcpus = os.cpu_count()
    kvm.load()
    with checks.check(f"selftest.elf on {vcpus} vCPUs"):
        lines, _, errors = image("selftest", "host", append=f"cpus={vcpus}", vcpus=vcpus)
        summary = lines[-1] if lines else errors
        require(re.fullmatch(r"SUMMARY [1-9]\d* passed, 0 failed, 0 skipped", summary), summary)


# --- The kernel's vPMU as it should be -------------------------------------------------------------


def vpmu():
    """kvm_amd has a vPMU, and a bare guest gets its counters."""
    with checks.check("kvm_amd has its PMU virtualization enabled"):
        said = "\n".join(kvm.load())
        require("PMU virtualization is disabled" not in said, said)
        equal("kvm.enable_pmu", kvm.parameter("kvm", "enable_pmu"), "Y")
    bare_counts()


def bare_counts():
    kvm.watchdog(False)
    with checks.check("every counter of a bare guest counts exactly"):
        with Vcpu() as vcpu:
            vcpu.start(BRANCHES)
            vcpu.loop(LOOP)
            equal("the counters", vcpu.read(), [LOOP] * len(vcpu.counters()))


def perf_counts(guest, names=PROGRAMS):
    for name in names:
        with checks.check(f"perf stat {name} in L2"):
            counts = perf.stat(guest, EVENTS, name)
            for event, expected in EVENTS.items():
                equal(event, counts[event].value, expected(program(name)))


def exact():
    """perf in L2 counts what L2 executed: L1 without and with its NMI watchdog, and with perf -a."""
    kvm.load()
    kvm.watchdog(False)
    with debian("exact") as guest:
        with checks.check("L2's kernel finds the PMU"):
            require("AMD PMU driver" in guest.dmesg(), "no AMD PMU driver")
        perf_counts(guest)
        checks.prefix("with the NMI watchdog of L1: ")
        with checks.check("it runs"):
            require(kvm.watchdog(True), "it does not")
        perf_counts(guest, ["mix"])
        kvm.watchdog(False)
        checks.prefix("with perf stat -a in L1: ")
        with host_perf(["branches:GHu"]):
            perf_counts(guest, ["mix"])
        checks.prefix("")


class host_perf:
    """`perf stat -a` in L1 while the `with` lasts; counts holds {event: value} after it."""

    def __init__(self, events):
        self.counts = {}
        self._output = "/run/host-perf"
        self._perf = subprocess.Popen(
            ["perf", "stat", "-a", "-x,", "-o", self._output, "-e", ",".join(events), "cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def __enter__(self):
        # perf has set up its events when its child runs and answers.
        self._perf.stdin.write("counting\n")
        equal("perf's child", self._perf.stdout.readline(), "counting\n")
        return self

    def __exit__(self, *_):
        self._perf.stdin.close()
        self._perf.stdout.close()
        self._perf.wait()
        for line in Path(self._output).read_text().splitlines():
            words = line.split(",")
            if len(words) > 3 and words[0].isdigit():
                self.counts[words[2]] = int(words[0])


def host_view():
    """L1's perf -a sees of the guest exactly what the guest executed, and the rest as the host's."""
    kvm.load()
    kvm.watchdog(False)
    events = ["branches:G", "branches:H", "branches:GH"]  # without a letter, perf leaves guests out
    with checks.check("perf stat -a tells guest and host apart"):
        with host_perf(["{" + ",".join(events) + "}"]) as host:
            with Vcpu() as vcpu:
                vcpu.loop(LOOP)
        guest, rest, both = (host.counts.get(event) for event in events)
        equal("branches:G", guest, LOOP)
        equal("branches:GH", both, guest + rest)


def watchdog_in_guest():
    """The guest's own NMI watchdog runs on the vPMU."""
    kvm.load()
    kvm.watchdog(False)
    with debian("watchdog", append="nmi_watchdog=1") as guest:
        with checks.check("L2's NMI watchdog runs"):
            require("NMI watchdog: Enabled" in guest.dmesg(), "not enabled")
            guest.output("echo 1 >/proc/sys/kernel/watchdog_thresh")
            before = nmis(guest)
            # It comes once in a second's worth of cycles, and a cycle is an instruction.
            runs = MOST_WATCHDOG_CYCLES // program("loop").instructions
            require(any(guest.output("loop") or nmis(guest) > before for _ in range(runs)),
                    f"no NMI in {MOST_WATCHDOG_CYCLES} cycles")


def nmis(guest):
    row = re.search(r"^ *NMI:((?: +\d+)+)", guest.output("cat /proc/interrupts"), re.MULTILINE)
    return sum(map(int, row.group(1).split()))


def mediated():
    """Linux 7's mediated vPMU: exact, and back to the other with the parameter off."""
    need_mediated()
    kvm.watchdog(False)
    for value in ("1", "0"):
        kvm.load(kvm_amd=f"enable_mediated_pmu={value}")
        checks.prefix(f"enable_mediated_pmu={value}: ")
        with checks.check("the parameter is what was asked for"):
            equal("enable_mediated_pmu", kvm.parameter("kvm_amd", "enable_mediated_pmu"), "NY"[int(value)])
        bare_counts()
        if value == "1":
            with debian("mediated") as guest:
                perf_counts(guest)
    checks.prefix("")


def need_mediated():
    kvm.load()
    if kvm.parameter("kvm_amd", "enable_mediated_pmu") is None:
        raise Skipped("this kernel has no mediated vPMU")


# --- Today, without the arbiter: rows of the table of silent failures ------------------------------


def starved():
    """Rows 2 and 4: pinned events of the host take a running guest's counters; it is told nothing."""
    kvm.load()
    kvm.watchdog(False)
    for row, left in ((2, 0), (4, 1)):
        with checks.check(f"row {row}: the host leaves {left} counters, the guest reads less than it executed"):
            said = Said()
            with Vcpu() as vcpu:
                counters = len(vcpu.counters())
                vcpu.start(BRANCHES)
                vcpu.loop(LOOP)
                before = vcpu.read()
                with Pinned(counters - left) as agent:
                    require(agent.first.startswith("held"), agent.first)
                    vcpu.loop(9 * LOOP)
                during = vcpu.read()
                vcpu.loop(LOOP)
                after = vcpu.read()
            record(row, f"a host agent pins {counters - left} of {counters} counters of each processor "
                   "while the guest runs nine tenths of its loop; last, what it reads one loop after the agent has gone",
                   10 * LOOP, {"during": during, "after": after}, said.lines())
            equal("the counters before", before, [LOOP] * counters)
            exact_ones = sum(value == 10 * LOOP for value in during)
            equal("counters that are right", exact_ones, left)


def starved_perf():
    """Row 4 as perf in the guest shows it: less than all, and 100 % of the time."""
    kvm.load()
    kvm.watchdog(False)
    with debian("starved") as guest, checks.check("row 4: perf in a starved guest"):
        expected = program("loop").instructions
        said = Said()
        with Pinned(6) as agent:
            require(agent.first.startswith("held"), agent.first)
            count = perf.stat(guest, ["instructions:u"], "loop")["instructions:u"]
        record(4, "perf stat -e instructions:u in the guest while a host agent pins all counters; "
               f"perf says that it counted {count.share:g} % of the time", expected, count.value, said.lines())
        require(isinstance(count.value, int) and count.value < expected, f"it reads {count.value}")


def host_watchdog():
    """Row 3: L1's NMI watchdog holds a counter of every processor; the guest is offered it all the same."""
    kvm.load()
    with checks.check("row 3: one counter fewer than advertised"):
        require(kvm.watchdog(True), "L1 has no NMI watchdog")
        said = Said()
        with Vcpu() as vcpu:
            vcpu.start(BRANCHES)
            vcpu.loop(LOOP)
            reads = vcpu.read()
        kvm.watchdog(False)
        record(3, "the guest uses all the counters that it is offered; L1's NMI watchdog is on", LOOP, reads, said.lines())
        equal("counters that do not count", sum(value != LOOP for value in reads), 1)


def event_filter():
    """Row 6: an event that the host denies reads 0."""
    kvm.load()
    kvm.watchdog(False)
    with checks.check("row 6: a denied event reads 0"):
        said = Said()
        with Vcpu() as vcpu:
            vcpu.must("filter", "deny", BRANCHES)
            first, second = vcpu.counters()[:2]
            vcpu.start(BRANCHES, [first])
            vcpu.start(INSTRUCTIONS, [second])
            vcpu.loop(LOOP)
            denied, allowed = vcpu.read()[:2]
        record(6, "KVM_SET_PMU_EVENT_FILTER denies branches", LOOP, denied, said.lines())
        equal("branches", denied, 0)
        require(allowed >= 2 * LOOP, f"instructions, which are not denied, read {allowed}")


def switched_off():
    """Rows 8 and 11: with kvm.enable_pmu=N, QEMU takes pmu=on, and the legacy MSRs swallow writes."""
    said = Said()
    kvm.load(kvm="enable_pmu=0")
    with checks.check("row 8: QEMU starts with pmu=on"):
        lines, status, errors = image("selftest", "host,pmu=on", append="cpus=1")
        with Vcpu() as vcpu:
            core = bool(vcpu.cpuid(0x80000001)[2] & kvm.PERFCTR_CORE)
        record(8, "-cpu host,pmu=on while kvm.enable_pmu=N", "a PMU was asked for",
               f"{'QEMU starts' if lines else f'exit status {status}'}, PerfCtrExtCore {int(core)}", [*said.lines(), *errors.splitlines()])
        require(lines and lines[-1].startswith("SUMMARY"), f"it does not start: {errors}")
        equal("PerfCtrExtCore", core, False)
    with checks.check("row 11: legacy counters read 0 and drop writes"):
        said = Said()
        with Vcpu() as vcpu:
            written = [vcpu.ask("wrmsr", kvm.K7_CTL, kvm.IN_ALL_RINGS | kvm.ENABLE | BRANCHES),
                       vcpu.ask("wrmsr", kvm.K7_CTR, 1234)]
            vcpu.loop(LOOP)
            reads = [vcpu.ask("rdmsr", kvm.K7_CTL), vcpu.ask("rdmsr", kvm.K7_CTR)]
        record(11, "the guest writes PERF_CTL0 and PERF_CTR0 (K7) while it has no vPMU", LOOP, reads, said.lines())
        equal("the writes", written, ["ok", "ok"])
        equal("PERF_CTL0 and PERF_CTR0", reads, ["0", "0"])


def without_apic():
    """Row 10: without KVM's own APIC a guest's counters count and overflow, and no interrupt comes."""
    kvm.load()
    kvm.watchdog(False)
    with checks.check("with KVM's own APIC, an overflow is an NMI"):
        with Vcpu() as vcpu:
            equal("the local APIC", vcpu.ask("overflow-nmi"), "ok")
            equal("the loop", overflow(vcpu), "nmi")
    with checks.check("row 10: no interrupt without KVM's own APIC"):
        said = Said()
        with Vcpu("no-irqchip") as vcpu:
            apic, loop = vcpu.ask("overflow-nmi"), overflow(vcpu)
            status, value = vcpu.ask("rdmsr", kvm.GLOBAL_STATUS), vcpu.read()[0]
        record(10, "a counter that shall interrupt overflows in the midst of the guest's loop, without KVM's APIC",
               "an NMI", f"none; the counter reads {value}, its status {status}", said.lines())
        require(apic.startswith("error KVM_GET_LAPIC"), apic)
        equal("the loop", loop, "ok")
        equal("the counter", value, LOOP // 2)
        equal("its status", status, "1")
    with checks.check("row 10: QEMU refuses kernel-irqchip=off, for another reason"):
        _, status, errors = image("selftest", "host,pmu=on", accel="kvm,kernel-irqchip=off")
        record(10, "-accel kvm,kernel-irqchip=off -cpu host,pmu=on", "a PMU was asked for",
               f"QEMU's exit status is {status}", errors.splitlines())
        require(status == 1 and "userspace APIC" in errors, errors)


def overflow(vcpu):
    """Let the guest's first counter overflow half-way through a loop; the answer of the loop."""
    first = vcpu.counters()[0]
    vcpu.start(BRANCHES | kvm.INTERRUPT, [first])
    vcpu.must("wrmsr", first[1], 2**kvm.WIDTH - LOOP // 2)
    return vcpu.ask("loop", LOOP)


def mediated_conflicts():
    """Rows 12 and 13: guests with a mediated vPMU and host events that include guests shut each other out."""
    need_mediated()
    kvm.load(kvm_amd="enable_mediated_pmu=1")
    kvm.watchdog(False)
    with checks.check("row 12: no vCPU after a host event"):
        said = Said()
        with Pinned(1) as agent:
            require(agent.first.startswith("held"), agent.first)
            with Vcpu() as vcpu:
                answer = vcpu.first
        record(12, "a guest is started while a host event includes guests", "a start", answer, said.lines())
        require(answer.startswith("error KVM_CREATE_VCPU"), answer)
    with checks.check("row 12: no host event after a vCPU"):
        said = Said()
        with Vcpu() as vcpu:
            equal("the vCPU", vcpu.first, "ok")
            with Pinned(1) as agent:
                answer = agent.first
            with Pinned(1, "exclude-guest") as agent:
                excluded = agent.first
        record(12, "a host event that includes guests is opened while a guest runs", "an event", answer, said.lines())
        equal("the host event", answer, "error EOPNOTSUPP")
        require(excluded.startswith("held"), f"an event that excludes guests: {excluded}")
    with checks.check("row 13: no vCPU with the NMI watchdog"):
        said = Said()
        require(kvm.watchdog(True), "L1 has no NMI watchdog")
        with Vcpu() as vcpu:
            answer = vcpu.first
        kvm.watchdog(False)
        record(13, "a guest is started while the NMI watchdog runs", "a start", answer, said.lines())
        require(answer.startswith("error KVM_CREATE_VCPU"), answer)


def mediated_unsupported():
    """Row 13: on a processor that cannot, the parameter is N though Y was asked for."""
    need_mediated()
    with checks.check("row 13: the parameter changes silently"):
        said = kvm.load(kvm_amd="enable_mediated_pmu=1")
        value = kvm.parameter("kvm_amd", "enable_mediated_pmu")
        about = [line for line in said if "mediated" in line.lower()]
        record(13, "kvm_amd is loaded with enable_mediated_pmu=1 on a processor without PerfMonV2", "Y", value, about)
        equal("enable_mediated_pmu", value, "N")
        require(not about, f"the kernel says: {' / '.join(about)}")


# --- Running ---------------------------------------------------------------------------------------

SCENARIOS = {
    function.__name__.replace("_", "-"): function
    for function in (
        starts, test_image, vpmu, exact, host_view, watchdog_in_guest, mediated,
        starved, starved_perf, host_watchdog, event_filter, switched_off, without_apic,
        mediated_conflicts, mediated_unsupported)
}


def main(names):
    for name in names:
        started = time.monotonic()
        checks.prefix("")
        try:
            SCENARIOS[name]()
        except Skipped as why:
            with checks.check(name):
                raise Skipped(str(why)) from None
        except Exception as why:  # what comes before a check or after it
            checks.prefix("")
            with checks.check(name):
                raise Failed(f"{type(why).__name__}: {why}") from None
        print(f"-- {name}: {time.monotonic() - started:.0f} s", flush=True)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
