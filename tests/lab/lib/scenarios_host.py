# SPDX-License-Identifier: BSD-3-Clause
"""vpmuctl doctor on the real kernel: what it sees, whom it names, and that its probe harms nobody."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import kvm
from checks import Checks, Skipped, equal, require
from kvm import BRANCHES, Pinned, Vcpu

COUNTERS = 6  # of L1's processors
LOOP = 1_000_000
PROBES = 20
VPMUCTL = Path(os.environ["BUILD"]) / "bin/vpmuctl"


class Doctor(NamedTuple):
    """One run of vpmuctl doctor: its exit status, and {check: what it found}."""

    status: int
    findings: dict
    holders: list

    def expect(self, check, verdict, *says):
        """The check has this verdict, and each text of says in what it says."""
        found = self.findings[check]
        equal(f"{check} ({found['is']})", found["verdict"], verdict)
        for text in says:
            require(text in found["is"], f"{check} says \"{found['is']}\", not \"{text}\"")


def doctor(*arguments):
    done = subprocess.run([VPMUCTL, "doctor", "--json", *arguments], capture_output=True, text=True, check=False)
    require(done.returncode in (0, 1, 2), f"vpmuctl: status {done.returncode}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    return Doctor(done.returncode, {row["check"]: row for row in said["findings"]}, said["holders"])


def looks(checks):
    """A host on which all is well; then with its NMI watchdog."""
    kvm.load()
    kvm.watchdog(False)
    with checks.check("doctor: all is well"):
        found = doctor()
        equal("not ok", {name: row["is"] for name, row in found.findings.items() if row["verdict"] != "ok"}, {})
        equal("its exit status", found.status, 0)
        found.expect("counters", "ok", f"at least {COUNTERS} counters")
        found.expect("left", "ok", f"{COUNTERS} of {COUNTERS}")
    with checks.check("doctor, row 3: the NMI watchdog, and what it leaves"):
        require(kvm.watchdog(True), "L1 has no NMI watchdog")
        found = doctor()
        kvm.watchdog(False)
        found.expect("watchdog", "warning", f"has 1 of {COUNTERS} counters")
        found.expect("left", "warning", f"{COUNTERS - 1} of {COUNTERS}")
        equal("its exit status", found.status, 1)
    with checks.check("doctor: a table of 80 columns"):
        lines = subprocess.run([VPMUCTL, "doctor"], capture_output=True, text=True, check=False).stdout.splitlines()
        equal("lines of more than 80 columns", [line for line in lines if len(line) > 80], [])
        require(not any("\033" in line for line in lines), "colours, though it is no terminal")


def agent(checks):
    """Rows 2 and 4: an agent that pins five of six counters is named, and what it leaves is measured."""
    kvm.load()
    kvm.watchdog(False)
    events, taken = (COUNTERS - 1) * os.cpu_count(), COUNTERS - 1
    with Pinned(taken) as pinned:
        require(pinned.first.startswith(f"held {events} of"), pinned.first)
        name = f"pin (pid {pinned.pid})"
        with checks.check("doctor, row 4: an agent is named, and not disturbed"):
            found = doctor()
            found.expect("holders", "warning", f"{name} has {events} perf events", f"{taken} on each")
            found.expect("left", "unknown", name)
            equal("its exit status", found.status, 1)
        with checks.check("doctor, row 2: what the agent leaves is measured, without taking from it"):
            for _ in range(PROBES):
                found = doctor("--measure")
                found.expect("left", "failure", f"1 of {COUNTERS} counters are left", f"{name} has {taken}")
                equal("its exit status", found.status, 2)
    with checks.check("doctor: after the agent"):
        equal("its exit status", doctor().status, 0)


def probe(checks):
    """Row 20: a guest whose counters are all in use counts exactly while its host is measured."""
    kvm.load()
    kvm.watchdog(False)
    with checks.check("row 20: a guest keeps its counters while the host is measured"):
        with Vcpu() as vcpu:
            counters = len(vcpu.counters())
            vcpu.start(BRANCHES)
            loops = 0
            with tempfile.TemporaryFile("w+") as output:
                probes = subprocess.Popen(
                    ["sh", "-c", f"for i in $(seq {PROBES}); do {VPMUCTL} doctor --measure --json; done"], stdout=output)
                while probes.poll() is None:
                    vcpu.loop(LOOP)
                    loops += 1
                output.seek(0)
                said = output.read()
            values = vcpu.read()
        require(loops > 1, "the guest did not run beside the probes")
        require(said.count(f"{COUNTERS} of {COUNTERS} counters") == PROBES, "not every probe finds all counters")
        equal("the guest's counters", values, [loops * LOOP] * counters)


def switched_off(checks):
    """Rows 8 and 11: kvm.enable_pmu=N."""
    kvm.watchdog(False)
    kvm.load(kvm="enable_pmu=0")
    with checks.check("doctor, row 8: kvm.enable_pmu=N"):
        found = doctor()
        found.expect("kvm-pmu", "failure", "kvm.enable_pmu=N")
        found.expect("legacy-msrs", "warning", "read 0")
        equal("its exit status", found.status, 2)
    kvm.load()


def mediated(checks):
    """Rows 12 and 13: the mediated vPMU, and who keeps a guest from starting."""
    kvm.load()
    kvm.watchdog(False)
    if kvm.parameter("kvm_amd", "enable_mediated_pmu") is None:
        raise Skipped("this kernel has no mediated vPMU")
    kvm.load(kvm_amd="enable_mediated_pmu=1")
    with checks.check("doctor: mediated vPMU"):
        found = doctor()
        found.expect("mediated", "ok", "on: ")
        found.expect("guest-events", "ok", "nobody")
        found.expect("left", "ok", f"{COUNTERS} of {COUNTERS}")
    with checks.check("doctor, row 13: the NMI watchdog beside a mediated vPMU"):
        require(kvm.watchdog(True), "L1 has no NMI watchdog")
        found = doctor()
        kvm.watchdog(False)
        found.expect("guest-events", "failure", "NMI watchdog counts guests", "EBUSY")
    with Pinned(1) as pinned, checks.check("doctor, row 12: an event that may count guests"):
        doctor().expect("guest-events", "warning", f"pin (pid {pinned.pid})", "EBUSY")
    with checks.check("row 20: measured while a guest has a mediated vPMU"):
        with Vcpu() as vcpu:
            equal("the vCPU", vcpu.first, "ok")
            vcpu.start(BRANCHES)
            vcpu.loop(LOOP)
            doctor("--measure").expect("left", "ok", f"{COUNTERS} of {COUNTERS}")
            vcpu.loop(LOOP)
            equal("the guest's counters", vcpu.read(), [2 * LOOP] * COUNTERS)
    kvm.load()


SCENARIOS = {
    f"host-{function.__name__.replace('_', '-')}": function
    for function in (looks, agent, probe, switched_off, mediated)
}


def register(scenarios, checks: Checks):
    """Adds these to the table of scenarios, with the checks that print their results."""
    for name, function in SCENARIOS.items():
        scenarios[name] = lambda function=function: function(checks)
