# SPDX-License-Identifier: BSD-3-Clause
"""In L1: the kernel's KVM, a bare vCPU on it, and who else holds its counters."""

import os
import subprocess
from pathlib import Path

BIN = Path(os.environ["BUILD"]) / "lab/bin"

# Event selects of AMD (APM Vol. 2, 13.2.1): the event, and what a PERF_CTL holds besides.
CYCLES, INSTRUCTIONS, BRANCHES = 0x76, 0xC0, 0xC2
IN_ALL_RINGS, INTERRUPT, ENABLE = 3 << 16, 1 << 20, 1 << 22
WIDTH = 48

PERFCTR_CORE = 1 << 23  # CPUID 80000001 ECX
PERFMON_V2 = 1 << 0  # CPUID 80000022 EAX
K7_CTL, K7_CTR = 0xC0010000, 0xC0010004
CORE_CTL, CORE_CTR = 0xC0010200, 0xC0010201
GLOBAL_STATUS, GLOBAL_CTL = 0xC0000300, 0xC0000301


class KvmError(Exception):
    """KVM or the kernel refused something; the text says what."""


def load(kvm="", kvm_amd=""):
    """Load KVM anew, with these parameters of its two modules; what the kernel said about it."""
    run("modprobe", "-r", "kvm_amd", "kvm")
    before = dmesg()
    run("modprobe", "kvm", *kvm.split())
    run("modprobe", "kvm_amd", *kvm_amd.split())
    return dmesg()[len(before):]


def parameter(module, name):
    """A module's parameter, or None where this kernel has no such."""
    path = Path("/sys/module", module, "parameters", name)
    return path.read_text().strip() if path.exists() else None


def watchdog(on):
    """Turn L1's NMI watchdog on or off; whether it is on now."""
    path = Path("/proc/sys/kernel/nmi_watchdog")
    path.write_text("1" if on else "0")
    return path.read_text().strip() == "1"


def dmesg():
    """The lines of the kernel's log."""
    return run("dmesg").splitlines()


def run(*command):
    """What a command that must succeed prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KvmError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class _Program:
    """One of ../programs that talks over lines, ended with its standard input."""

    def __init__(self, name, *arguments):
        self._process = subprocess.Popen(
            [BIN / name, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)
        self.pid = self._process.pid
        self.first = self._line()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _line(self):
        line = self._process.stdout.readline().strip()
        if not line:
            raise KvmError(f"{self._process.args[0].name} has ended, status {self._process.wait()}")
        return line


class Pinned(_Program):
    """A host agent with `count` pinned events on every processor, while the `with` lasts.

    first is what it got: "held N of M", or "error ERRNO".
    """

    def __init__(self, count, *arguments):
        super().__init__("pin", count, *arguments)


class Vcpu(_Program):
    """A guest that executes what it is told. first is "ok", or "error CALL ERRNO" as KVM says."""

    def __init__(self, *arguments):
        super().__init__("vcpu", *arguments)

    def ask(self, *words):
        """One line of programs/vcpu.c, and its answer."""
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        return self._line()

    def must(self, *words):
        answer = self.ask(*words)
        if answer == "fault" or answer.startswith("error"):
            raise KvmError(f"the guest's {' '.join(map(str, words))}: {answer}")
        return answer

    def cpuid(self, leaf):
        """EAX, EBX, ECX, EDX."""
        return [int(word, 0) for word in self.must("cpuid", leaf).split()]

    def counters(self):
        """The guest's counters: (PERF_CTL, PERF_CTR) of each, the legacy ones where no others are."""
        if not self.cpuid(0x80000001)[2] & PERFCTR_CORE:
            return [(K7_CTL + n, K7_CTR + n) for n in range(4)]
        eax, ebx, _, _ = self.cpuid(0x80000022)
        count = ebx & 0xF if eax & PERFMON_V2 else 6
        return [(CORE_CTL + 2 * n, CORE_CTR + 2 * n) for n in range(count)]

    def start(self, event, counters=None):
        """Let counters (all, unless said) count an event in all rings, from 0 on."""
        counters = self.counters() if counters is None else counters
        for ctl, ctr in counters:
            self.must("wrmsr", ctr, 0)
            self.must("wrmsr", ctl, IN_ALL_RINGS | ENABLE | event)
        if self.cpuid(0x80000022)[0] & PERFMON_V2:
            self.must("wrmsr", GLOBAL_CTL, (1 << len(self.counters())) - 1)

    def loop(self, times):
        """Execute `times` conditional branches and no other."""
        self.must("loop", times)

    def read(self):
        """The values of all counters."""
        return [int(self.must("rdmsr", ctr)) for _, ctr in self.counters()]
