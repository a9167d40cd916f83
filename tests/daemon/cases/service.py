# SPDX-License-Identifier: BSD-3-Clause
"""vpmud as a service: configuration, sandbox, metrics, what systemd gives and is given."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import wire
from results import Skipped
from silent import refused
from vpmud import BINARY, PATIENCE_S, ROOT_MAY_ALL, Vpmud, ask_lines, eventually, exchange, machine

SYSTEM = Path("hv/daemon/system")
BUILD = Path(os.environ["BUILD"])

BAD_CONFIGURATIONS = (
    ("no policy", "[daemon]\n", "policy"),
    ("an unknown section", "[deamon]\n", "deamon"),
    ("an unknown key", "[daemon]\nsokcet = /x\n", "sokcet"),
    ("a number out of range", "[daemon]\ngrace_ms = 9999999\n", "600000"),
    ("no number", "[daemon]\nnotice_ms = soon\n", "soon"),
    ("neither yes nor no", "[watch]\nname_holders = maybe\n", "maybe"),
    ("a negative number", "[daemon]\nnotice_ms = -1\n", "-1"),
    ("a relative path", "[daemon]\nstate = state\n", "absolute"),
    ("a socket's path that is too long", "[daemon]\nsocket = /" + "x" * 120 + "\n", "107"),
    ("an unknown user", "[policy a]\nuid = no-such-user\nmay = vm\n", "no-such-user"),
    ("an unknown right", "[policy a]\nuid = 0\nmay = everything\n", "everything"),
    ("a policy for nobody", "[policy a]\nmay = vm\n", "nobody"),
    ("a policy that allows nothing", "[policy a]\nuid = 0\n", "nothing"),
    ("no syntax", "socket /x\n", "socket"),
)


def check_config(path):
    return subprocess.run([BINARY, "--check-config", path], capture_output=True, text=True, timeout=PATIENCE_S)


def configuration(results):
    """--check-config says what is wrong, and that the example is right."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vpmud.conf"
        for what, text, word in BAD_CONFIGURATIONS:
            path.write_text(text)
            run = check_config(path)
            results.check(f"{what} is refused", run.returncode == 1 and word in run.stderr, run.stderr)
        run = check_config(Path(folder) / "none")
        results.check("a file that is not there is refused", run.returncode == 1 and "No such file" in run.stderr,
                      run.stderr)
        # This machine need not have libvirt's groups or ours.
        example = (SYSTEM / "vpmud.conf").read_text().replace("gid = vpmud", "gid = 0").replace("gid = kvm", "gid = 1")
        path.write_text(example)
        run = check_config(path)
        results.check("the example is valid", run.returncode == 0 and "2 policies" in run.stdout, run.stderr)


def reload(results):
    """SIGHUP takes over a valid configuration; a bad one changes nothing, and is said."""
    with Vpmud() as daemon, daemon.vm() as vm:
        lease = vm.acquire(4).lease
        valid = daemon.config.read_text()
        daemon.config.write_text(valid + "[policy more]\nuid = 12345\nmay = everything\n")
        results.equal("a bad one is not taken over", daemon.reload(), False)
        results.check("the log says why", "everything" in daemon.read_log())
        results.equal("the old one is in force", vm.resize(lease, 5).gp, 5)
        daemon.config.write_text(valid.replace(str(daemon.state), str(daemon.state) + "2"))
        results.equal("one that needs a restart is not taken over", daemon.reload(), False)
        results.check("and says which key", "state cannot change" in daemon.read_log())
        daemon.configure(sections={k: v | {"max_gp": 5} for k, v in ROOT_MAY_ALL.items()})
        results.equal("a valid one is", daemon.ask("reload"), {"ok": True})
        refused(results, "it is in force", lambda: vm.resize(lease, 6), wire.DENIED)
        daemon.configure(sections={k: v | {"may": "observer"} for k, v in ROOT_MAY_ALL.items()})
        daemon.reload()
        refused(results, "a right that is taken away", lambda: vm.resize(lease, 4), wire.DENIED, "any more")
        vm.release(lease)
        results.check("giving back is always allowed", True)
        results.equal("reloads are counted", daemon.scrape()["vpmud_reloads_total"], 2)


def credentials(results):
    """Who is under no policy, or may not do this, is refused by name."""
    uid = str(os.getuid())
    nobody = {"policy nobody": {"uid": "4294967294", "may": "vm"}}
    with Vpmud(sections=nobody) as daemon:
        refused(results, "under no policy: VM", daemon.vm, wire.DENIED, f"uid {uid}", "no policy")
        results.equal("under no policy: control", daemon.ask("status")["error"]["status"], "denied")
        results.check("under no policy: metrics", exchange(daemon.metrics, b"GET / HTTP/1.1\r\n\r\n").startswith(
            "HTTP/1.1 403"))
    with Vpmud(sections={"policy vms": {"uid": uid, "may": "vm, observer"}}) as daemon:
        refused(results, "a profiler under a policy for VMs", daemon.profiler, wire.DENIED, "policy vms")
        with daemon.vm() as vm:
            results.equal("a VM under it", vm.acquire(1).gp, 1)
            results.equal("no right to revoke", daemon.ask("revoke", lease=1)["error"]["status"], "denied")
    if os.getuid():
        raise Skipped("other users can only be tried by root")
    with Vpmud(sections={"policy group": {"gid": "12345", "may": "vm"}}) as daemon:
        os.chmod(daemon.folder, 0o755)
        probe = ("import os, sys; sys.path[:0] = sys.argv[2:]\n"
                 "import wire  # while the clone can be read\n"
                 "os.setgroups([12345]); os.setuid(65534)\n"
                 "print(wire.Client(sys.argv[1], wire.VM).acquire(2).gp)")
        run = subprocess.run([sys.executable, "-c", probe, daemon.socket, *sys.path[:2]], capture_output=True, text=True,
                             env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, timeout=PATIENCE_S)
        results.equal("a supplementary group counts", run.stdout.strip(), "2")


def identity(results):
    """As root it becomes the configured user, with CAP_PERFMON alone, and a filter."""
    with Vpmud() as daemon:
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
        results.check("no new privileges", re.search(r"^NoNewPrivs:\s*1$", status, re.M), status)
        results.check("system calls are filtered", re.search(r"^Seccomp:\s*2$", status, re.M), status)
        perfmon = 1 << 38
        results.check("of all capabilities at most CAP_PERFMON",
                      not int(re.search(r"^CapPrm:\s*(\w+)$", status, re.M)[1], 16) & ~perfmon, status)
    if os.getuid():
        raise Skipped("only root can become somebody else")
    with Vpmud(start=False, daemon={"user": "nobody"}) as daemon:
        shutil.chown(daemon.folder, "nobody")
        for path in (daemon.host, daemon.config):
            shutil.chown(path, "nobody")
        daemon.start()
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
        results.check("it is nobody", re.search(r"^Uid:\s*(\d+)\s+\1\s+\1", status, re.M)[1] == "65534", status)
        for kind in "Inh", "Eff", "Bnd", "Amb":
            value = int(re.search(rf"^Cap{kind}:\s*(\w+)$", status, re.M)[1], 16)
            results.check(f"Cap{kind}", not value & ~(1 << 38), f"{value:#x}")
        results.equal("it reloads", daemon.reload(), True)
        with daemon.vm() as vm:
            results.equal("it serves", vm.acquire(1).gp, 1)
        eventually(daemon.state.exists, "it writes its state")
    looking, mine = 1 << 19 | 1 << 2, permitted(Path("/proc/self/status"))  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
    want = mine & (perfmon | looking) if mine & looking == looking else mine & perfmon
    with Vpmud(sections=ROOT_MAY_ALL | {"watch": {"interval_ms": 0, "name_holders": "yes"}}) as daemon:
        results.equal("with name_holders, two more", permitted(Path(f"/proc/{daemon.process.pid}/status")), want)
        daemon.configure(sections=ROOT_MAY_ALL | {"watch": {"interval_ms": 0}})
        results.equal("which needs a restart to change", daemon.reload(), False)
        results.check("and says so", "[watch] name_holders cannot change" in daemon.read_log(), daemon.read_log())
    with Vpmud(start=False, daemon={"user": "no-such-user"}) as daemon:
        try:
            daemon.start()
            results.check("an unknown user is refused", False)
        except RuntimeError:
            results.check("an unknown user is refused", "no user no-such-user" in daemon.read_log(), daemon.read_log())


def permitted(status):
    return int(re.search(r"^CapPrm:\s*(\w+)$", status.read_text(), re.M)[1], 16)


def forbidden(results):
    """What the filter forbids, tried in a program that has vpmud's filter."""
    program = BUILD / "bin" / "sandbox-probe"
    names = subprocess.run([program], capture_output=True, text=True).stdout.split()
    results.check("there is something to try", len(names) > 8, names)
    for name in names:
        run = subprocess.run([program, name], capture_output=True, text=True, timeout=PATIENCE_S)
        want = (-signal.SIGSYS, "") if name.startswith("!") else (0, "refused")
        results.equal(f"{name.lstrip('!')} " + ("ends the program" if name.startswith("!") else "is refused"),
                      (run.returncode, run.stdout.strip()), want)
    *survived, tried = subprocess.run([program, "--every"], capture_output=True, text=True).stdout.splitlines()
    results.equal(f"{tried.split()[1]} system calls that no file needs: those that do not end it", survived, [])


def metrics(results):
    """OpenMetrics on the socket, and in the textfile."""
    with Vpmud(start=False) as daemon:
        textfile = daemon.folder / "vpmud.prom"
        daemon.configure({"textfile": textfile})
        daemon.start()
        with daemon.vm('web"1\\') as vm:
            lease = vm.acquire(4, processors=[0, 1]).lease
            vm.report(lease, 2, [0, 6, 2, 0, 0, 0, 0, 0], [(0, 2, 0x4300C0, 2 * 10**9, 10**9)])
            refused(results, "a claim that makes no sense", lambda: vm.acquire(1, least=(2, 0)), wire.INVALID_PARAMETER)
            text = exchange(daemon.metrics, b"GET /metrics HTTP/1.1\r\n\r\n")
            head, body = text.split("\r\n\r\n", 1)
            results.check("HTTP", "200 OK" in head and f"Content-Length: {len(body)}" in head, head)
            problems = openmetrics_problems(body)
            results.check("OpenMetrics", not problems, problems[:3])
            values = daemon.scrape()
            label = f'lease="{lease}",vm="web\\"1\\\\"'
            results.equal("seconds enabled", values[f"vpmud_vm_enabled_seconds_total{{{label}}}"], 2)
            results.equal("seconds backed", values[f"vpmud_vm_backed_seconds_total{{{label}}}"], 1)
            results.equal("counters by state", values[f'vpmud_vm_counters{{{label},state="backed"}}'], 2)
            results.equal("counters granted", values['vpmud_gp_counters{of="vcpu"}'], 8)
            results.equal("refusals", values['vpmud_refusals_total{reason="bad_claim"}'], 1)
            results.equal("leases", values['vpmud_leases{state="live"}'], 1)
        results.check("the textfile is there, whole", textfile.read_text().endswith("# EOF\n"))


def openmetrics_problems(text):
    """What is wrong with it: https://prometheus.io/docs/specs/om/open_metrics_spec/."""
    problems, family, kind, seen = [], None, None, set()
    sample = re.compile(r'^(\w+)(\{(\w+="([^"\\\n]|\\["\\n])*",?)*\})? (\S+)$')
    lines = text.split("\n")
    if lines[-2:] != ["# EOF", ""]:
        problems.append("no EOF at the end")
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            problems += [f"{family} twice"] if family in seen else []
            seen.add(family)
        elif not line.startswith("# HELP "):
            match = sample.match(line)
            suffix = "_total" if kind == "counter" else ""
            if not match or match[1] != family + suffix:
                problems.append(line)
    return problems


def activation(results):
    """Sockets of a service manager; what it passes and nobody wants is closed."""
    if not shutil.which("systemd-socket-activate"):
        raise Skipped("systemd-socket-activate is not there")
    with Vpmud(start=False) as daemon:
        sockets = [f"--listen={daemon.folder / name}" for name in ("vpmud.sock", "control.sock", "other.sock")]
        daemon.log_file = open(daemon.folder / "log", "ab")
        daemon.process = subprocess.Popen(
            ["systemd-socket-activate", *sockets, str(BINARY), "--config", daemon.config, "--host", daemon.host],
            stderr=daemon.log_file)
        eventually(lambda: daemon.socket.exists(), "systemd-socket-activate listens")
        with daemon.vm() as vm:
            results.equal("the first connection starts it", vm.acquire(2).gp, 2)
            results.equal("the control socket is passed, too", daemon.ask("status")["ok"], True)
            results.check("the other one is closed, and said", "event=socket-not-used" in daemon.read_log())
        daemon.end_with(signal.SIGTERM)
        results.check("sockets that it was passed stay", daemon.socket.exists())
        results.check("a socket of its own is removed", not daemon.metrics.exists())


def notification(results):
    """sd_notify: ready, reloading, stopping."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{folder}/notify")
        manager.settimeout(PATIENCE_S)
        os.environ["NOTIFY_SOCKET"] = f"{folder}/notify"
        try:
            with Vpmud() as daemon:
                results.check("ready", b"READY=1" in manager.recv(4096))
                daemon.reload()
                results.check("reloading", b"RELOADING=1\nMONOTONIC_USEC=" in manager.recv(4096))
                results.check("ready again", b"READY=1" in manager.recv(4096))
                daemon.stop()
                results.check("stopping", b"STOPPING=1" in manager.recv(4096))
        finally:
            del os.environ["NOTIFY_SOCKET"]


def second_one(results):
    """Two cannot listen at one path; what a killed one has left behind is no hindrance."""
    with Vpmud() as daemon:
        other = subprocess.run([BINARY, "--config", daemon.config, "--host", daemon.host], capture_output=True, text=True,
                               timeout=PATIENCE_S)
        results.check("a second one says why", other.returncode == 1 and "Address already in use" in other.stderr,
                      other.stderr)
        daemon.kill()
        daemon.start()
        results.check("after a kill it starts", True)


def units(results):
    """Units, sysusers and tmpfiles snippets are what systemd understands."""
    if not shutil.which("systemd-analyze"):
        raise Skipped("systemd-analyze is not there")
    with tempfile.TemporaryDirectory() as folder:
        for path in SYSTEM.iterdir():
            text = path.read_text().replace("/usr/sbin/vpmud", str(BINARY))
            (Path(folder) / path.name).write_text(text)
        names = [f"{folder}/{name}" for name in ("vpmud.service", "vpmud.socket", "vpmud-control.socket")]
        run = subprocess.run(["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True)
        results.check("verify", run.returncode == 0 and "vpmud" not in run.stderr, run.stderr)
        run = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", names[0]],
                             capture_output=True, text=True)
        results.check("exposure is at most 2.0 of 10", run.returncode == 0, run.stdout[-200:])
        root = Path(folder) / "root"
        (root / "etc").mkdir(parents=True)
        for program, name in (("systemd-sysusers", "vpmud.sysusers"), ("systemd-tmpfiles", "vpmud.tmpfiles")):
            extra = ["--create"] if program.endswith("tmpfiles") else []
            run = subprocess.run([program, f"--root={root}", *extra, f"{folder}/{name}"], capture_output=True, text=True)
            results.check(f"{program} takes {name}", run.returncode == 0, run.stderr)
        results.check("the user is made", "vpmud:" in (root / "etc/passwd").read_text())


def described(results):
    """A described machine is said loudly."""
    with Vpmud(machine(processors=4096)) as daemon:
        results.check("in the log", "level=warning event=described-host" in daemon.read_log())
        results.equal("in status", daemon.ask("status")["described"], True)
        results.equal("in the metrics", daemon.scrape()["vpmud_described_host"], 1)
        rows = daemon.ask("status")["processors"]
        results.equal("4,096 equal processors are one row", [(r["first"], r["last"]) for r in rows], [(0, 4095)])


CASES = [configuration, reload, credentials, identity, forbidden, metrics, activation, notification, second_one, units,
         described]
