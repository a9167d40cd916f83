# SPDX-License-Identifier: BSD-3-Clause
"""vpmuctl fleet: what schedulers of fleets are told of a host."""

import json

import yaml
from vpmuctl import vpmuctl

from vpmud import Vpmud, machine

ABSENT = {f"vpmu/gp-{n}" for n in range(1, 33)}


def fleet(daemon, form):
    run = vpmuctl(daemon, "fleet", form)
    return run.stdout if run.returncode == 0 and "a file" in run.stderr else run


def inventories(text):
    """Of Nova's file: {class: the most that one VM can have}, traits."""
    provider, = yaml.safe_load(text)["providers"]
    classes = {}
    for entry in provider.get("inventories", {}).get("additional", ()):
        (name, row), = entry.items()
        classes[name] = row["max_unit"]
        if row["total"] != row["max_unit"] * 65536 or row["reserved"] or row["min_unit"] != 1:
            classes[name] = row
    return classes, provider.get("traits", {}).get("additional", [])


def nova(results):
    """CPU-wide holders are taken off, VMs are not: they do not use each other's counters up."""
    with Vpmud(machine(processors=4, gp=8, fixed=3)) as daemon, daemon.vm("a VM") as vm, daemon.profiler("a profiler") as agent:
        vm.acquire(4)
        fixed = {"CUSTOM_VPMU_FIXED0": 1, "CUSTOM_VPMU_FIXED1": 1, "CUSTOM_VPMU_FIXED2": 1}
        results.equal("with a VM", inventories(fleet(daemon, "nova")), ({"CUSTOM_VPMU_GP": 8} | fixed, ["CUSTOM_VPMU_INTEL"]))
        agent.acquire(3, processors=[1])
        results.equal("with a profiler on one processor", inventories(fleet(daemon, "nova"))[0]["CUSTOM_VPMU_GP"], 5)
        results.equal("the head", yaml.safe_load(fleet(daemon, "nova"))["meta"], {"schema_version": "1.0"})


def kubernetes(results):
    """Labels for affinity, and a resource for each number of counters."""
    with Vpmud(machine(processors=4, gp=4, fixed=1, watchdog=True)) as daemon:
        labels = json.loads(fleet(daemon, "labels"))["metadata"]["labels"]
        results.equal("gp: the watchdog has one of four", labels["vpmu/gp"], "3")
        results.equal("a fixed one that is there", labels["vpmu/fixed0"], "yes")
        results.equal("one that is not is taken back", labels["vpmu/fixed2"], None)
        capacity = json.loads(fleet(daemon, "resources"))["status"]["capacity"]
        results.equal("resources", {n for n, v in capacity.items() if v}, {f"vpmu/gp-{n}" for n in range(1, 4)})
        results.equal("those that are not are taken back", set(capacity), ABSENT)


def none(results):
    """A host whose VMs get no counters offers none; what cannot be asked has a status."""
    with Vpmud(machine(facts={"enable_pmu": False})) as daemon:
        results.equal("nova", inventories(fleet(daemon, "nova")), ({}, []))
        results.equal("labels", json.loads(fleet(daemon, "labels"))["metadata"]["labels"]["vpmu/gp"], "0")
        results.equal("resources", {v for v in json.loads(fleet(daemon, "resources"))["status"]["capacity"].values()}, {None})
        results.equal("no such format", vpmuctl(daemon, "fleet", "csv").returncode, 64)
    run = vpmuctl(daemon, "fleet", "nova")
    results.check("no daemon", run.returncode == 69 and "vpmud running" in run.stderr and not run.stdout, run.stderr)


CASES = (nova, kubernetes, none)
