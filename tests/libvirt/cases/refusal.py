# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be had keeps a domain from starting, and virsh says why; or not, as its policy has it."""

from host import Host, Refused
from vpmud import eventually, machine


def start(host, name):
    """What virsh complains of; empty: it has started."""
    try:
        host.virsh("start", name)
    except Refused as said:
        return str(said)
    return ""


def agent(gp):
    return {"name": "collector", "pid": 812, "events": 8 * gp, "gp": gp, "pinned": True}


def check_refusal(results, name, said, words):
    missing = [word for word in words if word not in said]
    results.check(name, said and not missing, f"{said!r} lacks {missing}")


def taken(results):
    """A host's agent has the counters."""
    with Host(machine(gp=8, holders=[agent(6)])) as host:
        for name, options in (("refuse", ()), ("reduce", ("--policy", "reduce")),
                              ("least", ("--policy", "reduce", "--least", "3")), ("hide", ("--policy", "hide"))):
            host.define(name)
            host.enable(name, "--counters", "4", "--fixed", "0", *options)
        for name in ("refuse", "least"):
            check_refusal(results, name, start(host, name),
                          (name, "asked:", "4 general-purpose", "collector", "to do:", "vpmuctl leases"))
            results.equal(f"{name}: it is off", host.state(name), "shut off")
            code, shown, _ = host.vpmuctl("check", name)
            results.check(f"{name}: check says it, too", code == 1 and "collector" in shown, shown)
        results.equal("refused: the books", host.books(), {})
        results.equal("reduce: it starts", start(host, "reduce"), "")
        results.equal("reduce: the books", host.books(), {"reduce": ("live", 2)})
        results.equal("reduce: the grant", host.monitor("reduce", "query-vpmu-grant")["gp"], 2)
        results.equal("hide: it starts", start(host, "hide"), "")
        results.equal("hide: the grant", host.monitor("hide", "query-vpmu-grant")["gp"], 0)
        results.equal("hide: the books", host.books(), {"reduce": ("live", 2)})
        host.virsh("destroy", "reduce")
        host.vpmud.describe(machine(gp=8))
        host.vpmud.reload()
        eventually(lambda: not host.vpmud.leases("observed"), "the agent has gone")
        results.equal("the agent has gone: it starts", start(host, "refuse"), "")
        results.equal("the agent has gone: the books", host.books(), {"refuse": ("live", 4)})


def absent(results):
    """More than the host has; and a host on which no vpmud answers."""
    with Host(machine(gp=2)) as host:
        host.define("web")
        host.enable("web")
        host.define("hide")
        host.enable("hide", "--policy", "hide")
        check_refusal(results, "more than there is", start(host, "web"), ("asked:", "4 general-purpose", "--counters"))
        host.vpmud.stop()
        check_refusal(results, "no vpmud", start(host, "web"), ("/run/vpmud/vpmud.sock", "systemctl start vpmud"))
        results.equal("no vpmud, policy hide: it starts", start(host, "hide"), "")
        results.equal("and has no PMU", host.monitor("hide", "query-vpmu-grant")["gp"], 0)


def bad_metadata(results):
    """Whoever edits the metadata by hand hears of it at the start."""
    with Host(machine(gp=8)) as host:
        host.define("web")
        for element, word in (("<pmu counters='99'/>", "1 to 32"), ("<pmu policy='hope'/>", "refuse, reduce, hide"),
                              ("<pmu><allow event='luck'/></pmu>", "luck")):
            host.virsh("metadata", "web", "urn:vpmu:domain:1", "--config", "--key", "vpmu", "--set", element)
            check_refusal(results, element, start(host, "web"), (word, "web"))
            code, _, said = host.vpmuctl("show", "web")
            results.check(f"show {element}", code == 1 and word in said, said)
        results.equal("the books", host.books(), {})
        code, _, said = host.vpmuctl("show", "nobody")
        results.check("no such domain", code == 66 and said.count("\n") == 1, said)


CASES = (taken, absent, bad_metadata)
