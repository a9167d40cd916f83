# SPDX-License-Identifier: BSD-3-Clause
"""What PMUs QEMU starts with, what it refuses, and what is there without one."""

import difflib
import os
import subprocess

from machine import (
    INTEL,
    ON,
    PATIENCE_S,
    Machine,
    check_guest,
    command,
    run_image,
    without_warnings,
)

AMD_ON = "EPYC-v4,pmu=on"

# CPU, and what the reason must speak of.
REFUSED = (
    (f"{ON},pmu-version=0", "version"),
    (f"{ON},pmu-version=6", "version"),
    (f"{ON},pmu-version=255", "version"),
    (f"{ON},pmu-version=256", "version"),
    (f"{ON},pmu-version=-2", "version"),
    (f"{ON},pmu-version=two", "pmu-version"),
    (f"{ON},pmu-gp=0", "general-purpose"),
    (f"{ON},pmu-gp=9", "general-purpose"),
    (f"{ON},pmu-fixed=5", "fixed"),
    (f"{ON},pmu-version=1,pmu-fixed=1", "fixed"),
    (f"{ON},pmu-width=31", "wide"),
    (f"{ON},pmu-width=49", "wide"),
    (f"{ON},pmu-width=64", "wide"),
    (f"{INTEL},pmu=maybe", "pmu"),
    (f"{ON},pmu-nonsense=1", "pmu-nonsense"),
    ("qemu32,vendor=GenuineIntel,pmu=on", "leaf 0xA"),
    (f"{INTEL},level=5,pmu=on", "leaf 0xA"),
    (f"{INTEL},level=9,pmu=on", "leaf 0xA"),
    ("EPYC-v4,xlevel=0x80000007,pmu=on", "leaf 0x80000008"),
    (f"{AMD_ON},pmu-version=3", "version"),
    (f"{AMD_ON},pmu-version=0,pmu-gp=6", "general-purpose"),
    (f"{AMD_ON},pmu-version=1,pmu-gp=4", "general-purpose"),
    (f"{AMD_ON},pmu-version=2,pmu-gp=5", "general-purpose"),
    (f"{AMD_ON},pmu-version=2,pmu-gp=9", "general-purpose"),
    (f"{AMD_ON},pmu-fixed=2", "fixed"),
    (f"{AMD_ON},pmu-width=40", "wide"),
    ("max,vendor=CentaurHauls,pmu=on", "vendor"),
)

MODES = (
    ("thread=single", ("-accel", "tcg,thread=single")),
    ("thread=multi", ("-accel", "tcg,thread=multi")),
    ("icount", ("-icount", "0")),
    ("icount-auto", ("-icount", "auto")),
    ("one-insn-per-tb", ("-accel", "tcg,one-insn-per-tb=on")),
)

WITHOUT = (None, "max", INTEL, f"{INTEL},pmu=off", "EPYC", "EPYC,pmu=off", "max,pmu=off", "qemu64")


def start(cpu):
    """(exit status, what it said) of a QEMU that is to end as soon as its machine stands."""
    done = subprocess.run(
        [*command(cpu, options=("-S",)), "-monitor", "stdio"],
        input="quit\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, without_warnings(done.stderr)


def refused(results, _):
    """Impossible PMUs end QEMU with status 1 and the reason in one line."""
    for cpu, about in REFUSED:
        status, said = start(cpu)
        good = status == 1 and len(said) == 1 and about in said[0]
        results.check(cpu, good, f"status {status}, {said}")


def models_of_help():
    """The CPU models of -cpu help, but for those that it calls an alias, and KVM's."""
    done = subprocess.run(
        [os.environ["QEMU"], "-cpu", "help"], capture_output=True, text=True, check=True
    )
    models = done.stdout.split("\n\n")[0].splitlines()[1:]
    names = (line.split()[0] for line in models if "(alias" not in line)
    return [name for name in names if name != "host"]


# The vendors whose PMUs there are, and the leaf that a model must reach to describe it.
LEAVES = {"GenuineIntel": ("level", 0xA), "AuthenticAMD": ("xlevel", 0x80000008)}


def lacking(properties):
    """What QEMU must speak of when it refuses this model a PMU; None if it has all that it needs."""
    if properties["vendor"] not in LEAVES:
        return "vendor"
    level, leaf = LEAVES[properties["vendor"]]
    return f"leaf 0x{leaf:X}" if properties[level] < leaf else None


def reasons_of(models):
    with Machine(None, options=("-S",)) as machine:
        for model in models:
            answer = machine.qmp("query-cpu-model-expansion", type="full", model={"name": model})
            yield model, lacking(answer["model"]["props"])


def models(results, _):
    """Each model of -cpu help starts with pmu=on, or is refused for its vendor or its level."""
    for model, reason in reasons_of(models_of_help()):
        status, said = start(f"{model},pmu=on")
        if reason:
            good = status == 1 and len(said) == 1 and reason in said[0]
        else:
            good = status == 0 and not said
        results.check(model, good, f"status {status}, {said}; lacks {reason}")


def opt_in(results, _):
    """-cpu max has a PMU only where it is asked for."""
    for cpu, has in (
        ("max", False),
        ("max,pmu=on", True),
        ("EPYC", False),
        ("EPYC,pmu=on", True),
        ("max,vendor=GenuineIntel", False),
        ("max,vendor=GenuineIntel,pmu=on", True),
        (INTEL, False),
        (f"{INTEL},pmu-gp=0", False),
        (f"{ON},pmu-version=1", True),
        (ON, True),
    ):
        with Machine(cpu, options=("-S",)) as machine:
            results.equal(f"{cpu} has a PMU", bool(machine.vpmu()), has)


def modes(results, _):
    """A PMU counts in each of TCG's modes of running."""
    for name, options in MODES:
        with Machine(ON, "user kernel", cpus=2, options=options) as machine:
            for phase in ("user", "kernel"):
                machine.begin(phase)
                for _query in range(20):
                    machine.vpmu()
                machine.end(phase)
                if phase == "user":
                    machine.nmi()
            check_guest(results, name, machine)


def probe(qemu, cpu):
    """What software finds on this QEMU's CPU."""
    return run_image("probe", cpu, qemu=os.environ[qemu])[1]


def without_pmu(results, _):
    """Without pmu=on, software finds what it finds on the unpatched QEMU."""
    for cpu in WITHOUT:
        ours = probe("QEMU", cpu)
        stock = probe("QEMU_STOCK", cpu)
        differences = [
            line
            for line in difflib.unified_diff(stock, ours, lineterm="", n=0)
            if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]
        complete = "PASS end" in ours
        why = "; ".join(differences[:4]) or "the probe did not end"
        results.check(f"-cpu {cpu}", complete and not differences, why)


CASES = (refused, models, opt_in, modes, without_pmu)
