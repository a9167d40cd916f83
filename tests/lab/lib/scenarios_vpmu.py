# SPDX-License-Identifier: BSD-3-Clause
"""-object vpmu on the real KVM: what a guest is granted, denied, told, and refused.

The guest is tests/qemu/images/grant.c, which prints what it finds.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import kvm
from checks import Checks, Skipped, equal, require

TIMEOUT_S = 120
COUNTERS = 6  # of L1's processor
GLOBAL = (1 << COUNTERS) - 1
PERFMON_V2, EXT_CORE, LEGACY = 2, 1, 0
INSTRUCTIONS, BRANCHES, CONDITIONAL, L2_PREFETCHES_MISS_L3 = 0xC0, 0xC2, 0xD1, 0xFF72
HYPERV = "hv-relaxed,hv-vapic,hv-time"
PERF_MONITOR_AVAILABLE = 1 << 2  # CPUID 40000003H:EDX
COUNTERS_IN_USE = 1 << 2  # CPUID 40000006H:EAX
HARDWARE_LEAF = 0x40000006
OLD_MACHINE = ("-machine", "pc-q35-9.2")


class Granted(NamedTuple):
    """What the guest of one boot printed; said is what QEMU did. status is QEMU's."""

    lines: list
    said: str
    status: int

    def one(self, word):
        """The rest of the only line that begins with the word."""
        found = [line[len(word) + 1:] for line in self.lines if line.startswith(word + " ")]
        require(len(found) == 1, f"{len(found)} lines of {word}: {self.said or self.lines[-3:]}")
        return found[0]

    def shape(self):
        """(vendor, version, counters)"""
        found = re.match(r"(\w+) version (\d+) gp (\d+) ", self.one("SHAPE"))
        return found[1], int(found[2]), int(found[3])

    def counts(self):
        """{event's code: what was counted}, and under 0 what is right for instructions."""
        return {code: value for code, value, _ in self._counters()}

    def rdpmc(self):
        """The same as RDPMC reads them."""
        return {code: value for code, _, value in self._counters()}

    def _counters(self):
        return [tuple(int(word, 0) for word in re.fullmatch(r"COUNT (\S+) (\d+) RDPMC (\d+)", line).groups())
                for line in self.lines if line.startswith("COUNT ")]

    def expected(self):
        """{event's code: what the loop executed}"""
        found = re.fullmatch(r"instructions (\d+) branches (\d+)", self.one("LOOP"))
        return {INSTRUCTIONS: int(found[1]), BRANCHES: int(found[2]), CONDITIONAL: 1000}

    def hyperv(self):
        """{name of a leaf: its register}, empty without Hyper-V's interface."""
        words = self.one("HYPERV").split()
        return {name: int(value, 0) for name, value in zip(words[::2], words[1::2])}


def boot(cpu, vpmu=None, append="", options=(), accel="kvm", image="tests/qemu/grant", vcpus=1):
    """One boot of an image on L1's KVM. vpmu is what follows "vpmu,id=vpmu0" of the object."""
    data = [word for path in os.environ["QEMU_DATA"].split() for word in ("-L", path)]
    objects = () if vpmu is None else ("-object", ",".join(filter(None, ("vpmu,id=vpmu0", vpmu))))
    done = subprocess.run(
        [os.environ["QEMU"], *data, "-accel", accel, "-cpu", cpu, "-smp", str(vcpus), "-m", "64",
         "-nodefaults", "-display", "none", "-serial", "stdio",
         "-device", "isa-debug-exit,iobase=0xf4,iosize=4", *objects, *options,
         "-kernel", Path(os.environ["BUILD"]) / f"{image}.elf", "-append", append],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return Granted(done.stdout.splitlines(), done.stderr.strip(), done.returncode)


def events(*codes):
    return " ".join(f"e{n}={code:#x}" for n, code in enumerate(codes))


def fresh(checks, enable_pmu=True):
    kvm.load(kvm="" if enable_pmu else "enable_pmu=0")
    kvm.watchdog(False)
    checks.prefix("")


def check_counts(granted, *denied):
    """Every event that was asked for counts exactly, and those that are denied nothing."""
    counts, expected = granted.counts(), granted.expected()
    require(counts, f"nothing was counted: {granted.said}")
    for code, count in counts.items():
        equal(f"event {code:#x}", count, 0 if code in denied else expected[code])


def granted(checks):
    """The guest's CPUID is what was granted, and all of it counts."""
    fresh(checks)
    has_v2 = boot("host,pmu=on").shape()[1] == PERFMON_V2
    whole = ("amd", PERFMON_V2 if has_v2 else EXT_CORE, COUNTERS)
    for cpu, vpmu, shape in (
            ("host", "", whole),
            ("host,pmu=off", "", whole),
            ("EPYC-v4", f"gp={COUNTERS},fixed=0", whole),
            ("host", "gp=4", ("amd", LEGACY, 4)),
            ("host", "gp=5,policy=reduce", ("amd", LEGACY, 4)),
            ("host", "gp=8,policy=reduce", whole)):
        with checks.check(f"-cpu {cpu} -object vpmu,{vpmu or 'all defaults'}"):
            got = boot(cpu, vpmu, events(INSTRUCTIONS, BRANCHES, CONDITIONAL))
            equal("the shape", got.shape(), shape)
            equal("QEMU warns of a reduction", "policy=reduce" in got.said, "reduce" in vpmu)
            check_counts(got)
            if shape[1] == PERFMON_V2:
                require(f"FOUND global {GLOBAL:#x}" in got.lines, "PerfCntrGlobalCtl at the start")


def filtered(checks):
    """A denied event counts nothing, an allowed one exactly."""
    fresh(checks)
    all_of_them = (INSTRUCTIONS, BRANCHES, CONDITIONAL)
    for vpmu, denied in (
            ("deny=branches", {BRANCHES}),
            ("deny=r00c2,deny=r00d1", {BRANCHES, CONDITIONAL}),
            ("allow=instructions", {BRANCHES, CONDITIONAL}),
            ("class=architectural", {CONDITIONAL}),
            ("class=architectural,allow=r00d1", set()),
            ("class=architectural,allow=r00d1,deny=instructions", {INSTRUCTIONS})):
        with checks.check(vpmu):
            check_counts(boot("host", vpmu, events(*all_of_them)), *denied)
    for name in ("standard", "enhanced"):
        with checks.check(f"class={name}"):
            got = boot("host", f"class={name},deny=branches", events(*all_of_them))
            if "masked" in got.said:
                equal("QEMU's status, on a kernel without masked entries", got.status, 1)
            else:
                check_counts(got, BRANCHES)


def hidden(checks):
    """A hidden PMU is none for the guest, and for whoever does not ask CPUID."""
    fresh(checks)
    with checks.check("policy=hide"):
        got = boot("host", "gp=8,policy=hide", events(INSTRUCTIONS))
        equal("the shape", got.shape(), ("amd", LEGACY, 4))
        equal("the K7 counters", got.counts(), {INSTRUCTIONS: 0})
        require("policy=hide" in got.said, f"QEMU says {got.said!r}")


# What is asked for, what QEMU's one line must speak of, and other options.
REFUSED = (
    ("gp=7", ("7 general-purpose", f"has {COUNTERS}"), {}),
    ("fixed=1", ("1 fixed", "and 0"), {}),
    ("gp=5", ("5 general-purpose", "4, or 6"), {}),
    ("gp=3,policy=reduce", ("3 general-purpose", "4, or 6"), {}),
    ("class=architectural," + ",".join(f"allow=r{n:x}" for n in range(0x8000, 0x812C)), ("300",), {}),
    (",".join(f"deny=r{n:x}" for n in range(0x8000, 0x812D)), ("300",), {}),
    ("deny=slots", ("deny", "slots"), {}),
    ("", ("kernel-irqchip is off",), {"accel": "kvm,kernel-irqchip=off"}),
    ("policy=reduce", ("kernel-irqchip is off",), {"accel": "kvm,kernel-irqchip=off"}),
)


def refused(checks):
    """What cannot be had ends QEMU with one line that says why."""
    fresh(checks)
    for vpmu, words, more in REFUSED:
        name = vpmu if len(vpmu) < 40 else f"{vpmu[:37]}..."
        with checks.check(f"vpmu,{name}"):
            check_refusal(boot("host", vpmu, **more), words)
    fresh(checks, enable_pmu=False)
    with checks.check("kvm.enable_pmu=N"):
        check_refusal(boot("host", ""), ("kvm.enable_pmu is N",))
    with checks.check("kvm.enable_pmu=N, policy=hide"):
        got = boot("host", "policy=hide", events(INSTRUCTIONS))
        equal("the K7 counters", got.counts(), {INSTRUCTIONS: 0})
        require("kvm.enable_pmu is N" in got.said, f"QEMU says {got.said!r}")


def check_refusal(got, words):
    equal("QEMU's status", got.status, 1)
    equal("the lines that it says", len(got.said.splitlines()), 1)
    for word in words:
        require(word in got.said, f"{got.said!r} does not say {word!r}")


# CPU, vpmu, other options, and whether the guest is told that it may use counters.
GATES = (
    (HYPERV, "", (), True),
    (HYPERV, "gp=8,policy=hide", (), False),
    (HYPERV, "gp=4", (), True),
    (HYPERV, "", OLD_MACHINE, True),
    (f"{HYPERV},hv-perfmon=off", "", (), False),
    (f"{HYPERV},hv-perfmon=on", "gp=8,policy=hide", (), True),
    (f"pmu=on,{HYPERV}", None, (), True),
    (f"pmu=on,{HYPERV}", None, OLD_MACHINE, False),
    (f"pmu=off,{HYPERV}", None, (), False),
    (f"hv-emsr-bitmap,{HYPERV}", "", (), True),
    (f"hv-emsr-bitmap,{HYPERV}", "gp=8,policy=hide", (), False),
)


def hyperv_gate(checks):
    """Hyper-V's leaves say that there are counters exactly when there are, and Windows then boots."""
    fresh(checks)
    with checks.check("without hv-* there is no Hyper-V interface"):
        equal("the leaves", boot("host", "").one("HYPERV"), "none")
    for cpu, vpmu, options, told in GATES:
        with checks.check(" ".join(("-cpu", f"host,{cpu}", f"vpmu: {vpmu}", *options))):
            check_gate(boot(f"host,{cpu}", vpmu, options=options), told)
    for name, vpmu in (("on", ""), ("off", "gp=8,policy=hide"), ("reduced", "gp=4")):
        with checks.check(f"Windows's boot sequence with the PMU {name}"):
            got = boot(f"host,{HYPERV}", vpmu, "off", image="tests/guest/winboot", vcpus=2)
            summary = got.lines[-1] if got.lines else got.said
            require(re.fullmatch(r"SUMMARY [1-9]\d* passed, 0 failed, 0 skipped", summary), summary)
    fresh(checks, enable_pmu=False)
    with checks.check("kvm.enable_pmu=N, pmu=on"):
        check_gate(boot(f"host,pmu=on,{HYPERV}"), False)


def check_gate(got, told):
    leaves = got.hyperv()
    require(leaves, f"no Hyper-V interface: {got.said}")
    equal("40000003H:EDX[2]", bool(leaves["features"] & PERF_MONITOR_AVAILABLE), told)
    has_leaf = leaves["last"] >= HARDWARE_LEAF
    equal("40000006H:EAX[2]", bool(leaves["hardware"] & COUNTERS_IN_USE), told and has_leaf)


def reset(checks):
    """A reset of the machine stops the counters, clears them, and enables all of them globally."""
    fresh(checks)
    with checks.check("the counters after a reset"):
        got = boot("host", "", f"{events(INSTRUCTIONS, BRANCHES, CONDITIONAL)} reset")
        found = [line for line in got.lines if line.startswith("FOUND ")]
        half = len(found) // 2
        require(half > 0 and found[:half] == found[half:], f"{found}")
        selects = [line for line in found if "select" in line]
        equal("registers that are 0", sum(line.endswith("select 0 value 0") for line in selects),
              2 * COUNTERS)


def need_mediated():
    if kvm.parameter("kvm_amd", "enable_mediated_pmu") is None:
        raise Skipped("this kernel has no mediated vPMU")


def mediated(checks):
    """With a mediated vPMU: as without; and whoever holds it on the host is what a refusal names."""
    fresh(checks)
    need_mediated()
    kvm.load(kvm_amd="enable_mediated_pmu=1")
    for vpmu, denied in (("", set()), ("class=standard,deny=branches", {BRANCHES})):
        with checks.check(f"-object vpmu,{vpmu or 'all defaults'}"):
            check_counts(boot("host", vpmu, events(INSTRUCTIONS, BRANCHES, CONDITIONAL)), *denied)
    with kvm.Pinned(1), checks.check("row 12: a host event that counts guests"):
        check_refusal(boot("host", ""), ("counts guests",))
    with checks.check("row 13: the host's NMI watchdog"):
        require(kvm.watchdog(True), "L1 has no NMI watchdog")
        check_refusal(boot("host", ""), ("watchdog",))
        got = boot("host", "policy=hide", events(INSTRUCTIONS))
        kvm.watchdog(False)
        equal("the K7 counters of a guest without a PMU", got.counts(), {INSTRUCTIONS: 0})
    with checks.check("after both"):
        check_counts(boot("host", "", events(INSTRUCTIONS)))


SCENARIOS = {
    f"vpmu-{function.__name__.replace('_', '-')}": function
    for function in (granted, filtered, hidden, refused, hyperv_gate, reset, mediated)
}


def register(scenarios, checks: Checks):
    """Adds these to the table of scenarios, with the checks that print their results."""
    for name, function in SCENARIOS.items():
        scenarios[name] = lambda function=function: function(checks)
