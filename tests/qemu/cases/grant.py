# SPDX-License-Identifier: BSD-3-Clause
"""-object vpmu under TCG: what it grants, refuses, denies, and says. Under KVM: tests/lab."""

import json
import re

from machine import INTEL, ON, Machine, object_of, run_image

AMD = "EPYC-v4"
MANY = ",".join(f"allow=r{n:x}" for n in range(0x8000, 0x812D))

# CPU, object, and what the one line must speak of.
REFUSED = (
    (INTEL, "gp=9", ("9 general-purpose", "TCG has 8 and 4")),
    (INTEL, "gp=255,fixed=255", ("255 general-purpose and 255 fixed",)),
    (INTEL, "fixed=5", ("5 fixed", "has 8 and 4")),
    (INTEL, "gp=0", ("gp", "at least 1")),
    (INTEL, "gp=256", ("gp",)),
    (INTEL, "gp=-1", ("gp",)),
    (INTEL, "class=all", ("class", "all")),
    (INTEL, "policy=no", ("policy", "no")),
    (INTEL, "nonsense=1", ("nonsense",)),
    (INTEL, "allow=cycle", ("allow", "'cycle'", "neither")),
    (INTEL, "deny=r5300c0", ("deny", "'r5300c0'", "unit mask")),
    (INTEL, "deny=r1000000c0", ("deny", "8 bits")),
    (INTEL, MANY, ("allow", "300")),
    (f"{INTEL},pmu-version=1", "fixed=1", ("1 fixed", "has 8 and 0")),
    (f"{INTEL},level=5", "", ("leaf 0xA",)),
    ("max,vendor=CentaurHauls", "", ("vendor",)),
    (AMD, "gp=3", ("3 general-purpose", "4, or 6")),
    (AMD, "gp=5", ("5 general-purpose", "4, or 6")),
    (AMD, "gp=7", ("7 general-purpose", "has 6 and 1")),
    (AMD, "gp=3,policy=reduce", ("3 general-purpose",)),
    (AMD, "deny=slots", ("deny", "'slots'", "vendor")),
)

# CPU, object, and the counters that the guest has: general-purpose, fixed. None: no PMU.
GRANTED = (
    (INTEL, "", (4, 3)),
    (f"{INTEL},pmu=off", "", (4, 3)),
    (f"{INTEL},pmu-gp=6", "", (6, 3)),
    (f"{INTEL},pmu-gp=6", "gp=2", (2, 3)),
    (INTEL, "gp=8,fixed=4", (8, 4)),
    (INTEL, "gp=1,fixed=0", (1, 0)),
    (INTEL, "gp=200,policy=reduce", (8, 3)),
    (INTEL, "gp=9,policy=hide", None),
    (INTEL, "gp=8,policy=hide", (8, 3)),
    (f"{INTEL},pmu-version=5", "fixed=2", (4, 2)),
    (AMD, "", (6, 0)),
    (AMD, "gp=4", (4, 0)),
    (AMD, "gp=5,policy=reduce", (4, 0)),
    (AMD, "fixed=1", (6, 1)),
    (f"{AMD},pmu-version=2", "gp=8", (8, 0)),
)


def refuse(cpu, options):
    """(exit status, lines) of a QEMU that is to refuse its start."""
    status, _, said = run_image("grant", cpu, options=options)
    return status, said


def check_refusal(results, name, answer, words):
    status, said = answer
    good = status == 1 and len(said) == 1 and all(word in said[0] for word in words)
    results.check(name, good, f"status {status}, {said}; must speak of {words}")


def refused(results, _):
    """What cannot be had ends QEMU with status 1 and the reason in one line."""
    for cpu, text, words in REFUSED:
        name = f"{cpu} {text[:40]}"
        check_refusal(results, name, refuse(cpu, object_of(text)), words)
    two = (*object_of(""), "-object", "vpmu,id=other")
    check_refusal(results, "two objects", refuse(INTEL, two), ("one such object",))
    lease = object_of("socket=/nonexistent/vpmud.sock")
    check_refusal(results, "no vpmud", refuse(INTEL, lease), ("/nonexistent/vpmud.sock",))


def granted(results, _):
    """What the monitor says of the grant, and each vCPU's counters, are what was asked for."""
    for cpu, text, counters in GRANTED:
        with Machine(cpu, cpus=2, options=("-S", *object_of(text))) as machine:
            grant = machine.qmp("query-vpmu-grant")
            gp, fixed = counters or (0, 0)
            name = f"{cpu} {text}"
            results.equal(f"{name}: the grant", (grant["gp"], grant["fixed"]), (gp, fixed))
            results.equal(f"{name}: is hidden", "hidden" in grant, counters is None)
            shapes = [
                [sum(c["fixed"] == kind for c in vcpu["counters"]) for kind in (False, True)]
                for vcpu in machine.vpmu()
            ]
            results.equal(f"{name}: the vCPUs", shapes, [[gp, fixed]] * 2 if counters else [])


def count(cpu, text, codes):
    """(lines of the image, {code: what was counted}, {code: what is right})"""
    append = " ".join(f"e{n}={code:#x}" for n, code in enumerate(codes))
    _, lines, said = run_image("grant", cpu, append=append, options=object_of(text))
    counts = dict(re.findall(r"^COUNT (\S+) (\d+) ", "\n".join(lines), re.MULTILINE))
    counts = {int(code, 0): int(value) for code, value in counts.items()}
    loop = re.search(r"^LOOP instructions (\d+) branches (\d+)$", "\n".join(lines), re.MULTILINE)
    right = [int(value) for value in loop.groups()] if loop else said
    return lines, counts, right


# Object, and what it denies of instructions, branches and conditional branches.
POLICIES = (
    ("", ()),
    ("class=enhanced", ()),
    ("class=standard", ()),
    ("class=architectural", (2,)),
    ("deny=branches", (1,)),
    ("class=architectural,allow=conditional-branches,deny=instructions", (0,)),
    ("allow=branches", (0, 2)),
)


def filtered(results, _):
    """A denied event counts nothing, all others exactly, on both vendors' PMUs."""
    for cpu, codes in ((INTEL, (0xC0, 0xC4, 0x1C4)), (AMD, (0xC0, 0xC2, 0xD1))):
        for text, denied in POLICIES:
            _, counts, right = count(cpu, text, codes)
            want = [0 if n in denied else value for n, value in enumerate((*right, 1000))]
            results.equal(f"{cpu} {text or 'no policy'}", [counts.get(c) for c in codes], want)


def unavailable(results, _):
    """A denied architectural event is unavailable in CPUID, and what no source has stays so."""
    for text, bits in (
        ("", 0x58),
        ("class=architectural", 0x58),
        ("deny=branches", 0x78),
        ("deny=cycles,deny=ref-cycles", 0x5D),
    ):
        lines, _, _ = count(INTEL, text, ())
        shape = [line for line in lines if line.startswith("SHAPE")]
        good = shape and shape[0].endswith(f"unavailable {bits:#x}")
        results.check(text or "no policy", good, f"{shape}")


def states(results, _):
    """The monitor says `filtered` of counters whose event is denied, fixed ones too."""
    text = "gp=8,deny=branches,deny=r01c4,deny=cycles"
    with Machine(ON, "user", options=object_of(text)) as machine:
        machine.begin("user")
        found = {
            (c["fixed"], c["index"]): (c["state"], c["event"], c["code"])
            for c in machine.vpmu()[0]["counters"]
        }
        machine.end("user")
        results.equal("branches", found[False, 0], ("filtered", "none", 0xC4))
        results.equal("conditional branches", found[False, 1], ("filtered", "none", 0x1C4))
        results.equal("instructions", found[False, 2][0], "backed")
        results.equal("fixed instructions", found[True, 0][0], "backed")
        results.equal("fixed cycles", found[True, 1][0], "filtered")


def properties(results, _):
    """As JSON; read back; neither removed nor added while there are vCPUs."""
    asked = {
        "qom-type": "vpmu",
        "id": "vpmu0",
        "gp": 2,
        "fixed": 1,
        "class": "standard",
        "allow": ["r412e", "llc-references"],
        "deny": ["branches"],
        "policy": "reduce",
    }
    with Machine(INTEL, options=("-S", "-object", json.dumps(asked))) as machine:
        for name in asked.keys() - {"id", "qom-type"}:
            value = machine.qmp("qom-get", path="/objects/vpmu0", property=name)
            results.equal(name, value, asked[name])
        for command, arguments in (
            ("object-del", {"id": "vpmu0"}),
            ("object-add", {"qom_type": "vpmu", "id": "other"}),
        ):
            answer = machine.qmp_answer(command, **arguments)
            results.check(f"{command} is refused", "error" in answer, f"{answer}")
        results.equal("the class", machine.qmp("query-vpmu-grant")["class"], "standard")
    with Machine(ON, options=("-S",)) as machine:
        answer = machine.qmp_answer("query-vpmu-grant")
        results.check("no object, no grant", "error" in answer, f"{answer}")
        answer = machine.qmp_answer("object-add", qom_type="vpmu", id="late")
        results.check("an object after the vCPUs is refused", "error" in answer, f"{answer}")


def reset(results, _):
    """A reset brings back what there was at the start."""
    for cpu in (INTEL, f"{AMD},pmu-version=2"):
        append = "e0=0xc0 e1=0xc2 reset"
        options = (*object_of(""), "-action", "reboot=reset")
        _, lines, said = run_image("grant", cpu, append=append, options=options)
        found = [line for line in lines if line.startswith("FOUND")]
        half = len(found) // 2
        results.check(cpu, half > 1 and found[:half] == found[half:], f"{found}, {said}")


CASES = (refused, granted, filtered, unavailable, states, properties, reset)
