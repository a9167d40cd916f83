# SPDX-License-Identifier: BSD-3-Clause
"""The hook alone: hostile XML, an ordinary user, no vpmud."""

import os
import shutil
import subprocess
import tempfile
import uuid as uuids

from host import BIN
from vpmud import Vpmud, machine

HEAD = "<domain type='kvm'><name>web</name><uuid>{uuid}</uuid><metadata>"
TAIL = "</metadata></domain>"
PMU = "<vpmu:pmu xmlns:vpmu='urn:vpmu:domain:1' counters='{counters}' policy='{policy}' socket='{socket}'/>"
LAUGHS = "<!DOCTYPE d [" + "".join(f"<!ENTITY e{i + 1} '{f'&e{i};' * 10}'>" for i in range(20)) + "]>"


HOOK = BIN / "vpmu-libvirt-hook"


def call(operation, xml, words=(HOOK,)):
    """(exit status, stderr); what goes to stdout would change the domain."""
    run = subprocess.run([*words, "web", operation, "begin", "-"], input=xml.encode(),
                         capture_output=True, timeout=60, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, check=False)
    return run.returncode, run.stderr.decode() + run.stdout.decode()


def domain(socket, counters=4, policy="refuse", uuid=None):
    pmu = PMU.format(counters=counters, policy=policy, socket=socket)
    return HEAD.format(uuid=uuid or uuids.uuid4()) + pmu + TAIL


def operations(results):
    """prepare, restore and migrate reserve, release frees; the rest is nobody's business."""
    with Vpmud(machine(gp=8)) as daemon:
        xml = domain(daemon.socket)
        for operation in ("prepare", "restore", "migrate", "reconnect"):
            results.equal(operation, call(operation, xml), (0, ""))
            results.equal(f"{operation}: the books", {n: l["state"] for n, l in daemon.leases().items()}, {"web": "reserved"})
            results.equal(f"{operation}, release", call("release", xml), (0, ""))
            results.equal(f"{operation}, release: the books", daemon.leases(), {})
        for operation in ("start", "started", "stopped", "attach", "nonsense"):
            results.equal(operation, (call(operation, xml), daemon.leases()), ((0, ""), {}))
        status, said = call("prepare", domain(daemon.socket, counters=9))
        results.check("a refusal", status == 1 and "asked:" in said and "to do:" in said, said)
        results.check("80 columns, but for the daemon's answer",
                      all(len(line) <= 80 for line in said.splitlines() if "answer:" not in line), said)
        status, said = call("reconnect", domain(daemon.socket, counters=9))
        results.check("reconnect never fails", status == 0 and "asked:" in said, said)


def without_vpmud(results):
    """Refused by policy; reconnect and release never fail; an ordinary user's QEMU asks itself."""
    xml = domain("/nonexistent/vpmud.sock")
    status, said = call("prepare", xml)
    results.check("prepare", status == 1 and "systemctl start vpmud" in said, said)
    for operation in ("reconnect", "release"):
        results.equal(operation, call(operation, xml)[0], 0)
    results.equal("policy hide", call("prepare", domain("/nonexistent/vpmud.sock", policy="hide"))[0], 0)
    with Vpmud(machine(gp=8)) as daemon, tempfile.TemporaryDirectory() as folder:
        daemon.folder.chmod(0o700)
        # Where that user may go; BUILD may be in somebody's home.
        os.chmod(folder, 0o755)
        session = ["setpriv", "--reuid", "nobody", "--clear-groups", "--", shutil.copy(HOOK, folder)]
        results.equal("session mode, without rights", call("prepare", domain(daemon.socket), session)[0], 0)


HOSTILE = (
    ("entities", LAUGHS + "<domain>&e20;urn:vpmu:domain:1</domain>"),
    ("an external entity", "<!DOCTYPE d [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><domain>&e;urn:vpmu:domain:1</domain>"),
    ("an external document type", "<!DOCTYPE d SYSTEM 'http://127.0.0.1:9/d'><domain>urn:vpmu:domain:1</domain>"),
    ("depth", "<domain>" + "<a>" * 100000 + "urn:vpmu:domain:1"),
    ("size", "<domain>urn:vpmu:domain:1" + " " * (5 << 20) + "</domain>"),
    ("no end", "<domain><metadata>urn:vpmu:domain:1"),
    ("nothing of a domain", "<network>urn:vpmu:domain:1</network>"),
    ("a NUL", "<domain>\0urn:vpmu:domain:1</domain>"),
    ("no name", HEAD.replace("<name>web</name>", "") + PMU.format(counters=1, policy="refuse", socket="/s") + TAIL),
    ("no UUID", HEAD.format(uuid="4dea") + PMU.format(counters=1, policy="refuse", socket="/s") + TAIL),
    ("a socket in an argument", HEAD + PMU.format(counters=1, policy="refuse", socket="/a,id=x") + TAIL),
)


def hostile(results):
    """One line says what is wrong; only where nothing can be wrong it is passed."""
    for name, xml in HOSTILE:
        status, said = call("prepare", xml)
        results.check(name, status == 1 and said.count("\n") == 1 and said.startswith("vpmu: "), f"{status} {said[:200]}")
        results.equal(f"{name}, reconnect", call("reconnect", xml)[0], 0)
    for name, xml in (("nothing", ""), ("no metadata of ours", "<domain>" + "<a>" * 1000), ("noise", "\xff\x00\x01")):
        results.equal(name, call("prepare", xml), (0, ""))


CASES = (operations, without_vpmud, hostile)
