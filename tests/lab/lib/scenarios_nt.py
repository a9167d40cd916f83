# SPDX-License-Identifier: BSD-3-Clause
"""The NT test guest on the real KVM, with vpmu.sys on the status device (tests/nt/status_kvm.c)."""

import contextlib
import os
import re
import subprocess
import threading
from pathlib import Path

import kvm
from checks import Checks, equal, require
from kvm import Pinned
from scenarios_guests import Host, until
from wire import Refused

TIMEOUT_S = 170
COUNTERS = 6
GUEST = "nt"
PASSED_STATUS = 1  # isa-debug-exit: 2 * 0 + 1
SUMMARY = re.compile(r"SUMMARY (\d+) passed, (\d+) failed, 0 skipped")


def command(scenario, vpmu, vcpus):
    build = Path(os.environ["BUILD"])
    data = [word for path in os.environ["QEMU_DATA"].split() for word in ("-L", path)]
    return [
        os.environ["QEMU"], *data, "-accel", "kvm", "-machine", "q35", "-cpu", "host", "-smp", str(vcpus), "-m", "64",
        "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
        "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
        "-object", ",".join(filter(None, ("vpmu,id=vpmu0", vpmu))), "-device", "vpmu-status",
        "-name", f"guest={GUEST}", "-kernel", build / "tests/nt/ntguest.elf", "-append", f"scenario={scenario}",
        "-initrd", build / "guest-drivers/vpmu.sys"]


def run_guest(scenario, vpmu="", vcpus=2, on_line=lambda line: None):
    """Boots it to its end; the guest's lines. Each of them goes to on_line as it comes."""
    lines = []
    guest = subprocess.Popen(command(scenario, vpmu, vcpus), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace")
    late = threading.Timer(TIMEOUT_S, guest.kill)
    late.start()
    try:
        for line in guest.stdout:
            lines.append(line.strip())
            on_line(lines[-1])
        status = guest.wait()
    finally:
        late.cancel()
        guest.kill()
        guest.wait()
    failed = [line for line in lines if line.startswith(("FAIL", "PANIC"))]
    require(not failed, "; ".join(failed[:5]))
    equal("QEMU's status", status, PASSED_STATUS)
    summary = [SUMMARY.fullmatch(line) for line in lines if line.startswith("SUMMARY")]
    require(len(summary) == 1 and summary[0] and int(summary[0][1]) > 0, f"no summary: {lines[-3:]}")
    print(f"{scenario}: {summary[0][0]}", flush=True)
    return lines


def fresh(checks):
    kvm.load()
    kvm.watchdog(False)
    checks.prefix("")


def states(checks):
    """Exact counts where backed; starved, and VERIFY agrees, while a host agent pins all counters."""
    fresh(checks)
    agents = []

    def on_line(line):
        if line == "NT-READY":
            agents.append(Pinned(COUNTERS))
            require(agents[0].first.startswith("held"), agents[0].first)
        elif line == "NT-STARVED":
            agents[0].__exit__()

    with checks.check("vpmu.sys: exact where backed, starved where the host has the counters, and back"):
        lines = run_guest("status-kvm", on_line=on_line)
        require("NT-READY" in lines and "NT-STARVED" in lines, "the host had no part in it")


def denied(checks):
    """A denied event is filtered; another one counts exactly on the same counter."""
    fresh(checks)
    with checks.check("vpmu.sys: a denied event is filtered"):
        run_guest("status-kvm-denied", "deny=branches")


def resize(checks):
    """What a guest gives back a profiler can have; while it does the guest cannot, and afterwards it can."""
    fresh(checks)
    with Host() as host, host.profiler("sampler") as other:

        def has_them():
            with contextlib.suppress(Refused):
                other.acquire(COUNTERS - 1)
                return True
            return False

        def on_line(line):
            if line == "NT-GIVEN":
                until("a profiler gets what the guest has given back", has_them)
            elif line == "NT-REFUSED":
                equal("the guest's lease", host.leases("live")[GUEST]["granted"], {"gp": 1, "fixed": 0})
                other.__exit__()

        with checks.check("vpmu.sys: gives counters back, to a profiler, and has them again when it has gone"):
            lines = run_guest("status-kvm-resize", f"socket={host.socket}", on_line=on_line)
            require("NT-GIVEN" in lines and "NT-REFUSED" in lines, "the host had no part in it")


SCENARIOS = {f"nt-{function.__name__}": function for function in (states, denied, resize)}


def register(scenarios, checks: Checks):
    """Adds these to the table of scenarios, with the checks that print their results."""
    for name, function in SCENARIOS.items():
        scenarios[name] = lambda function=function: function(checks)
