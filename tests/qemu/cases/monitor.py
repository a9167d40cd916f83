# SPDX-License-Identifier: BSD-3-Clause
"""query-vpmu and info vpmu."""

from machine import ON, Machine, check_guest

GP8 = f"{ON},pmu-gp=8"
COLUMNS = 80

FIELDS = {
    "fixed": bool,
    "index": int,
    "state": str,
    "event": str,
    "code": int,
    "user": bool,
    "kernel": bool,
    "enabled": bool,
    "interrupt": bool,
    "overflowed": bool,
    "rdpmc": int,
    "value": int,
    "enabled-ns": int,
    "backed-ns": int,
}

# What the worker image programs: (fixed, index): event's name, code, state while it counts.
PROGRAMMED = {
    (False, 0): ("branches", 0x00C4, "backed"),
    (False, 1): ("conditional-branches", 0x01C4, "backed"),
    (False, 2): ("instructions", 0x00C0, "backed"),
    (False, 3): ("none", 0x412E, "unsupported"),
    (False, 4): ("near-calls", 0x02C4, "backed"),
    (False, 5): ("near-returns", 0x08C4, "backed"),
    (False, 6): ("far-branches", 0x40C4, "backed"),
    (False, 7): ("none", 0, "granted"),
    (True, 0): ("instructions", 0, "backed"),
    (True, 1): ("cycles", 0, "backed"),
    (True, 2): ("ref-cycles", 0, "granted"),
}


def key(counter):
    return counter["fixed"], counter["index"]


def check_schema(results, vcpus, cpus, gp, fixed):
    """Every counter of every vCPU, each with all its fields."""
    wanted = [(False, i) for i in range(gp)] + [(True, i) for i in range(fixed)]
    results.equal("vCPUs", [v["cpu-index"] for v in vcpus], list(range(cpus)))
    for vcpu in vcpus:
        name = f"vCPU {vcpu['cpu-index']}"
        results.equal(f"{name}: its fields", set(vcpu), {"cpu-index", "version", "ran-ns", "look-ns", "counters"})
        results.equal(f"{name}: counters", [key(c) for c in vcpu["counters"]], wanted)
        odd = [c for c in vcpu["counters"] if {f: type(v) for f, v in c.items()} != FIELDS]
        results.check(f"{name}: the counters' fields", not odd, f"{odd[:1]}")
        selectors = [c["rdpmc"] for c in vcpu["counters"]]
        want = [i | 0x40000000 if is_fixed else i for is_fixed, i in wanted]
        results.equal(f"{name}: selectors of RDPMC", selectors, want)


def check_programmed(results, vcpus, counting):
    """Events, codes and states as the worker programmed them."""
    for vcpu in vcpus:
        for c in vcpu["counters"]:
            event, code, state = PROGRAMMED[key(c)]
            if not counting and state == "backed":
                state = "granted"
            name = f"vCPU {vcpu['cpu-index']}: {'fixed' if c['fixed'] else 'gp'} {c['index']}"
            got = (c["event"], c["code"])
            results.equal(f"{name}: event", got, (event, code))
            results.equal(f"{name}: state", c["state"], state)
            periodic = key(c) == (False, 2)
            results.equal(f"{name}: interrupt", c["interrupt"], periodic)


def check_values(results, what, machine):
    """What the monitor says is what the guest read."""
    said = {
        (v["cpu-index"], i): c["value"]
        for v in machine.vpmu()
        for i, c in enumerate(v["counters"])
    }
    results.check(f"{what}: values are there", len(said) > 0 and any(said.values()))
    results.equal(f"{what}: values", said, machine.values())


def fields(results, _):
    """Schema, events and states, before the guest runs, while it counts and when it stands."""
    with Machine(GP8, "user kernel", cpus=4, options=("-S",)) as machine:
        vcpus = machine.vpmu()
        check_schema(results, vcpus, 4, 8, 3)
        idle = [c for v in vcpus for c in v["counters"] if c["value"] or c["state"] != "granted"]
        results.check("at first nothing counts", not idle, f"{idle[:1]}")
        machine.qmp("cont")
        machine.begin("user")
        vcpus = machine.vpmu()
        check_schema(results, vcpus, 4, 8, 3)
        check_programmed(results, vcpus, True)
        rings = {(c["user"], c["kernel"]) for v in vcpus for c in v["counters"] if c["enabled"]}
        results.equal("counters of ring 3", rings, {(True, False)})
        machine.end("user")
        check_values(results, "after ring 3", machine)
        check_programmed(results, machine.vpmu(), False)
        machine.nmi()
        machine.begin("kernel")
        rings = {
            (c["user"], c["kernel"])
            for v in machine.vpmu()
            for c in v["counters"]
            if c["enabled"]
        }
        results.equal("counters of ring 0", rings, {(False, True)})
        machine.end("kernel")
        check_values(results, "after ring 0", machine)
        check_guest(results, "at its end", machine)


def ask_much(results, cpus, phase, queries):
    """Queries while the worker counts: instructions are cycles, and grow."""
    with Machine(GP8, phase, cpus=cpus) as machine:
        machine.begin(phase)
        last, back, apart = {}, 0, 0
        for _query in range(queries):
            vcpus = machine.vpmu()
            for vcpu in vcpus:
                for c in vcpu["counters"]:
                    if c["event"] == "instructions" and not c["interrupt"]:
                        before = last.get((vcpu["cpu-index"], key(c)), 0)
                        back += c["value"] < before
                        last[vcpu["cpu-index"], key(c)] = c["value"]
                fixed = [c["value"] for c in vcpu["counters"] if c["fixed"]]
                apart += fixed[0] != fixed[1]
        what = f"{cpus} vCPUs, {phase}"
        results.equal(f"{what}: of {queries} queries, values that fell", back, 0)
        results.equal(f"{what}: vCPUs whose counters were of different instants", apart, 0)
        results.equal(f"{what}: vCPUs", len(last), cpus)
        machine.end(phase)
        check_values(results, what, machine)
        check_guest(results, what, machine)


def running_1(results, _):
    """A thousand queries while one vCPU counts: nothing is lost, and none falls back."""
    ask_much(results, 1, "user", 1000)


def running_4(results, _):
    """The same with four vCPUs."""
    ask_much(results, 4, "user", 1000)


def running_kernel(results, _):
    """The same in ring 0."""
    ask_much(results, 2, "kernel", 250)


def columns(results, _):
    """info vpmu: a line for each counter, none wider than a terminal."""
    with Machine(GP8, "hold", cpus=2) as machine:
        machine.wait_line("READY hold")
        machine.wait_until(
            "all vCPUs hold",
            lambda: all(any(c["overflowed"] for c in v["counters"]) for v in machine.vpmu()),
        )
        text = machine.hmp("info vpmu")
        lines = text.splitlines()
        for line in lines:
            results.remark(line)
        wide = [line for line in lines if len(line) > COLUMNS]
        results.check(f"no line of more than {COLUMNS}", not wide, f"{wide[:1]}")
        values = [c["value"] for v in machine.vpmu() for c in v["counters"]]
        shown = [line for line in lines if any(kind in line.split()[0] for kind in ("gp", "fixed"))]
        results.equal("a line for each counter", len(shown), len(values))
        missing = [v for v, line in zip(values, shown) if str(v) not in line.split()]
        results.check("each with its value", not missing, f"{missing[:1]}")
        results.equal("overflows", sum("overflowed" in line for line in lines), 2)
        machine.end("hold")
        check_guest(results, "at its end", machine)
    with Machine("max", options=("-S",)) as machine:
        results.check("without a PMU it says so", "pmu=on" in machine.hmp("info vpmu"))
        results.equal("and the query has none", machine.vpmu(), [])


CASES = (fields, running_1, running_4, running_kernel, columns)
