# SPDX-License-Identifier: BSD-3-Clause
"""A domain's life, and vpmud's books after each step of it."""

from host import Host
from vpmud import eventually, machine

NAMESPACE = "urn:vpmu:domain:1"
LIBVIRT_SCHEMA = "/usr/share/libvirt/schemas/domain.rng"
LIVE = {"web": ("live", 4)}
HYPERV = "<hyperv><relaxed state='on'/><vapic state='on'/></hyperv>"
NOTE = "<metadata><note:note xmlns:note='urn:note'> keep &amp; see </note:note></metadata>"


def settle(host, results, what, want):
    """The books, once vpmud has seen that a connection is closed."""
    eventually(lambda: host.books() == want, f"{what}: {host.books()}, want {want}")
    results.equal(f"{what}: the books", host.books(), want)


def enable(host, results):
    """A dry run changes nothing and shows what would be; enable is idempotent."""
    before = host.inactive_xml("web")
    code, shown, said = host.vpmuctl("enable", "web", "--dry-run", "--counters", "4", "--fixed", "3")
    added = [line for line in shown.splitlines() if line.startswith("+") and "vpmu" in line]
    results.check("a dry run shows the difference", code == 0 and len(added) >= 2, shown + said)
    results.equal("a dry run changes nothing", host.inactive_xml("web"), before)
    options = ("--counters", "4", "--fixed", "3", "--class", "standard", "--deny", "branch-misses")
    host.enable("web", *options)
    enabled = host.inactive_xml("web")
    host.enable("web", *options)
    results.equal("enable is idempotent", host.inactive_xml("web"), enabled)
    results.check("libvirt's schema still holds", not host.run("xmllint", "--noout", "--relaxng", LIBVIRT_SCHEMA, "-",
                                                              input=enabled).returncode)
    code, shown, _ = host.vpmuctl("show", "web")
    results.check("show", "4 general-purpose and 3 fixed" in shown and "branch-misses" in shown, shown)
    code, shown, _ = host.vpmuctl("list")
    results.check("list", shown.splitlines()[1].split() == ["web", "off", "4", "3", "standard", "refuse"], shown)
    code, shown, said = host.vpmuctl("check", "web")
    results.check("check", code == 0 and "4 general-purpose" in shown, shown + said)
    results.equal("check leaves nothing reserved", host.books(), {})
    return before


def edit_live(host, results):
    host.virsh("metadata", "web", NAMESPACE, "--live", "--key", "vpmu", "--set", "<pmu counters='1'/>")
    results.check("live metadata has changed", 'counters="1"' in host.virsh("dumpxml", "web").replace("'", '"'))
    results.equal("live metadata: the books", host.books(), LIVE)
    results.equal("live metadata: the grant", host.monitor("web", "query-vpmu-grant")["gp"], 4)


def life(results):
    """Enable, start, live metadata, save, restore, libvirtd's restart, destroy, crash, disable."""
    with Host(machine(gp=8)) as host:
        host.define("web")
        before = enable(host, results)
        host.virsh("start", "web")
        results.equal("start: the books", host.books(), LIVE)
        results.equal("start: the grant", host.monitor("web", "query-vpmu-grant")["lease"], "granted")
        edit_live(host, results)
        host.virsh("save", "web", "/run/shared/saved")
        settle(host, results, "save", {})
        host.virsh("restore", "/run/shared/saved")
        results.equal("restore: the books", host.books(), LIVE)
        pid = host.qemu_pid("web")
        host.restart_libvirtd()
        results.equal("libvirtd restarts: the domain runs on", (host.state("web"), host.qemu_pid("web")), ("running", pid))
        results.equal("libvirtd restarts: the books", host.books("live"), LIVE)
        host.virsh("destroy", "web")
        settle(host, results, "destroy", {})
        host.virsh("start", "web")
        host.kill_qemu("web")
        settle(host, results, "kill -9", {})
        eventually(lambda: host.state("web") == "shut off", "libvirt has seen the end")
        disable(host, results, before)


def disable(host, results, before):
    results.equal("disable", host.vpmuctl("disable", "web")[0], 0)
    results.equal("the XML after disable is that before enable", host.inactive_xml("web"), before)
    results.equal("disable is idempotent", host.vpmuctl("disable", "web")[0], 0)
    results.equal("disable twice: the XML", host.inactive_xml("web"), before)
    host.virsh("start", "web")
    results.equal("without counters vpmud is not asked", host.books(), {})
    host.virsh("destroy", "web")


def others(results):
    """What else is in a definition stays; Windows' enlightenments get their counters' bit by QEMU."""
    with Host(machine(gp=8)) as host:
        for name, features, metadata in (("hyperv", HYPERV, ""), ("others", "<pmu state='off'/>", NOTE)):
            host.define(name, features, metadata)
            before = host.inactive_xml(name)
            host.enable(name)
            enabled = host.inactive_xml(name)
            host.virsh("start", name)
            results.equal(f"{name}: the books", host.books(), {name: ("live", 4)})
            host.virsh("destroy", name)
            results.check(f"{name}: all else is kept", lines_of(before) <= lines_of(enabled) | {"<pmu state='off'/>"})
            host.vpmuctl("disable", name)
            results.equal(f"{name}: the XML after disable", host.inactive_xml(name), before)
            eventually(lambda: not host.books(), "the books are empty")


def lines_of(xml):
    return {line.strip() for line in xml.splitlines()} - {"<domain type='qemu'>"}


def vpmud_restarts(results):
    """With a domain that runs: vpmud comes back, and the domain has its lease again."""
    with Host(machine(gp=8)) as host:
        host.define("web")
        host.enable("web")
        host.virsh("start", "web")
        host.vpmud.kill()
        results.equal("vpmud has gone: the domain runs on", host.state("web"), "running")
        host.start_vpmud()
        settle(host, results, "vpmud is back", LIVE)
        host.virsh("destroy", "web")
        settle(host, results, "destroy", {})


CASES = (life, others, vpmud_restarts)
