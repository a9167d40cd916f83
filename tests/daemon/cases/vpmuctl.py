# SPDX-License-Identifier: BSD-3-Clause
"""vpmuctl before a real vpmud, before one that answers oddly, and before none."""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unicodedata
import uuid as uuids
from pathlib import Path

from results import Skipped
from vpmud import BINARY, PATIENCE_S, Vpmud, die_with_parent, eventually, machine, new_uuid

PROGRAM = BINARY.parent / "vpmuctl"
SANITIZED = BINARY.parent / "vpmuctl-asan"
SOURCES = Path(__file__).resolve().parents[3] / "hv"
PLAIN = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
ASKING = ("status", "leases", "top", "explain", "revoke")
BACKED, STARVED = 2, 3


def run(*words, program=PROGRAM, **more):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=PLAIN | more)


def vpmuctl(daemon, command, *words, **more):
    return run(command, "--control", daemon.control, *words, **more)


def profile(daemon, *words):
    return run("run", "--socket", daemon.socket, "--control", daemon.control, *words)


def width(text):
    return max(map(len, text.splitlines()), default=0)


def is_plain(text):
    """No escape sequence and no other control character, whoever chose a name in it."""
    return not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


def leases(results):
    """leases says who holds what; revoke takes it; what cannot be has a status of its own."""
    with Vpmud() as daemon, daemon.vm("vm é") as vm:
        vm.acquire(4)
        said = vpmuctl(daemon, "leases")
        row = said.stdout.splitlines()[1].split()
        results.equal("the row", row[1:4], ["granted", "vm", "4"])
        results.check("80 columns", "vm é" in said.stdout and width(said.stdout) <= 80)
        results.equal("--json is vpmud's answer", list(json.loads(vpmuctl(daemon, "leases", "--json").stdout)),
                      list(daemon.ask("leases")))
        results.equal("revoke", vpmuctl(daemon, "revoke", row[0]).returncode, 0)
        results.equal("it is revoked", [v["revoked"] for v in daemon.leases().values()], [True])
        said = vpmuctl(daemon, "revoke", "none")
        results.check("no such lease", said.returncode == 1 and said.stderr.count("\n") == 1, said.stderr)
        results.equal("no word", vpmuctl(daemon, "revoke").returncode, 64)
    for command in ASKING:
        said = vpmuctl(daemon, command, *["x"] * (command in ("explain", "revoke")))
        results.check(f"{command}: no daemon, and how to start it",
                      said.returncode == 69 and "vpmud running" in said.stderr and "systemctl" in said.stderr, said.stderr)


def words(results):
    """Every command explains itself within 80 columns; a wrong word is named."""
    commands = re.findall(r"^  (\w+)", run("--help").stdout, re.M)
    results.check("all are listed", set(ASKING) | {"run", "doctor", "fleet"} <= set(commands), commands)
    for command in commands:
        if command == "domain":
            continue  # another program's
        said = run(command, "--help")
        results.check(f"{command} --help", said.returncode == 0 and said.stdout.startswith(f"usage: vpmuctl {command}")
                      and width(said.stdout) <= 80, said.stdout + said.stderr)
        said = run(command, "--nonsense")
        results.check(f"{command} --nonsense", said.returncode == 64 and "--nonsense" in said.stderr, said.stderr)
    for word in ("0", "1x", "", "nan", "1e9", "-1"):
        results.equal(f"top -d '{word}'", run("top", "-d", word).returncode, 64)
    for more in (["-n", "33"], ["-n", "x"], ["-n", "1", "--cpus", "0-"], ["-n", "1", "--cpus", ""], ["-f", "17"],
                 ["-f", "0x10000"], ["-n", "1", "--least", "2"], []):
        results.equal(f"run {more}", run("run", *more, "--", "true").returncode, 64)
    results.equal("run without a command", run("run", "-n", "1").returncode, 64)


def status(results):
    """status: one page, with what is wrong and by whom; marks only on a terminal."""
    agent = {"name": "node-agent", "pid": 812, "gp": 3, "events": 24, "pinned": True}
    with Vpmud(machine(gp=6, watchdog=True)) as daemon, daemon.vm("web1") as vm, daemon.vm("calm") as calm:
        lease = vm.acquire(4).lease
        calm.acquire(1)
        said = vpmuctl(daemon, "status")
        results.check("it is said that the machine is described", "DESCRIBED" in said.stdout)
        results.check("the watchdog is a holder", "NMI watchdog" in said.stdout)
        results.check("all is well", "2 VMs, 2 granted" in said.stdout, said.stdout)
        vm.report(lease, 1, [0, 3, 0, 1, 0, 0, 0, 0], [(0, STARVED, 0x4300C0, 10**9, 10**8)])
        results.check("starved", "1 starved" in vpmuctl(daemon, "status").stdout)
        daemon.describe(machine(gp=6, watchdog=True, holders=[agent]))
        daemon.reload()
        said = vpmuctl(daemon, "status")
        results.check("short, and by whom", re.search(r"short +web1 .*\n.*node-agent", said.stdout), said.stdout)
        results.check("too few are left", "too few" in said.stdout)
        results.check("plain, 80 columns", is_plain(said.stdout) and width(said.stdout) <= 80)
        said = json.loads(vpmuctl(daemon, "status", "--json").stdout)
        results.equal("--json is vpmud's answers", sorted(said), ["host", "leases", "status"])
        results.equal("as they are", said["status"]["processors"], daemon.ask("status")["processors"])
        for more, coloured in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                               ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
            text = on_terminal(daemon, "status", **more)
            results.equal(f"colours with {more}", "\033[1;31m" in text, coloured)
            lines = re.sub(r"\033\[[0-9;]*m", "", text).replace("\r", "")
            results.check(f"80 columns with {more}", width(lines) <= 80, lines)


def on_terminal(daemon, command, *words, **more):
    """What it writes to a terminal of 80 columns."""
    line = f"stty cols 80 rows 24; exec {PROGRAM} {command} --control {daemon.control} {' '.join(words)}"
    if not shutil.which("script"):
        raise Skipped("there is no script(1)")
    return subprocess.run(["script", "-qec", line, "/dev/null"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, timeout=PATIENCE_S, env=PLAIN | more).stdout


def explain(results):
    """explain: by number, name and uuid; counters, neighbours."""
    uuid = new_uuid()
    with Vpmud() as daemon, daemon.vm("web1", uuid) as vm, daemon.profiler("perf") as perf:
        lease = vm.acquire(4).lease
        perf.acquire(2)
        vm.report(lease, 2, [0, 3, 1, 1, 0, 0, 0, 0], [(1, BACKED, 0x4300C0, 10**9, 10**9),
                                                       (33, STARVED, 2, 2 * 10**9, 10**9)])
        said = vpmuctl(daemon, "explain", "web1")
        results.check("the counters", re.search(r"gp 1 .*100% +backed\nfixed 1 .*50% +starved", said.stdout), said.stdout)
        results.check("the neighbour", re.search(r"CPU-wide.*\n.*\n.* perf\n", said.stdout), said.stdout)
        results.check("80 columns", is_plain(said.stdout) and width(said.stdout) <= 80)
        number = str(daemon.leases()["web1"]["id"])
        for name in (number, str(uuids.UUID(bytes=uuid))):
            results.equal("another name of it", vpmuctl(daemon, "explain", name).stdout.split()[1:3], ["web1", "reports"])
        results.equal("--json", json.loads(vpmuctl(daemon, "explain", "web1", "--json").stdout)["lease"]["name"], "web1")
        results.equal("nobody", vpmuctl(daemon, "explain", "nobody").returncode, 1)


def top(results):
    """top: shares of what lies between reports, the worst first; redrawn on a terminal only."""
    with Vpmud() as daemon, daemon.vm("web1") as vm, daemon.vm("web2") as idle:
        lease = vm.acquire(4).lease
        idle.acquire(1)
        vm.report(lease, 2, [0, 2, 1, 1, 0, 0, 0, 0],
                  [(0, BACKED, 0xC0, 10**9, 10**9), (1, STARVED, 0x3C, 10**9, 10**8), (2, 1, 0, 0, 0)])
        said = vpmuctl(daemon, "top", "--once")
        rows = [line.split() for line in said.stdout.splitlines() if line.startswith("web")]
        results.equal("the worst first", [row[0:4] + row[-2:] for row in rows[:2]],
                      [["web1", "starved", "gp", "1", "10%", "starved"],
                       ["web1", "starved", "gp", "0", "100%", "backed"]])
        results.equal("no report", rows[2][:2] + rows[2][-2:], ["web2", "granted", "no", "report"])
        results.equal("--all shows what is not enabled", len(re.findall("^web1", vpmuctl(daemon, "top", "-1a").stdout, re.M)), 3)
        results.check("plain, 80 columns", is_plain(said.stdout) and width(said.stdout) <= 80)
        live = subprocess.Popen([PROGRAM, "top", "-d", "0.1", "--control", daemon.control], stdout=subprocess.PIPE,
                                text=True, env=PLAIN, preexec_fn=die_with_parent)
        with live:
            results.check("the first block", live.stdout.readline().endswith("1 counter that stands still\n"))
            vm.report(lease, 2, [0, 3, 1, 0, 0, 0, 0, 0], [(0, BACKED, 0xC0, 2 * 10**9, 15 * 10**8)])
            for line in live.stdout:
                if " 50% " in line:
                    break
            results.check("the share between the last two reports", " 50%  backed" in line, line)
            daemon.kill()
            for line in live.stdout:
                if "trying again" in line:
                    break
            daemon.start()
            for line in live.stdout:
                if "VM" in line:
                    break
            live.send_signal(signal.SIGTERM)
            live.stdout.read()
        results.equal("it ends in good order", live.returncode, 0)


def pages(results):
    """10,000 VMs, and 4,096 processors of which every second one is used otherwise: still a page."""
    many = {"ok": True, "leases": [
        {"id": i, "state": "live", "kind": "vm", "name": f"vm{i}", "binding": "vcpu", "lease_state": "granted",
         "need": {"gp": 4, "fixed": 7}, "granted": {"gp": 4, "fixed": 7}, "processors": "0-511", "short": i % 10 == 0,
         "why": "processor 17: 4 GP wanted, 3 of 6 taken; most by node-agent (pid 812)" if i % 10 == 0 else "",
         "report": {"reported_ms": 2000, "vcpus": 64, "states": {"backed": 64}, "counters": [
             {"index": 0, "state": "backed", "selector": 192, "enabled_ns": 10**9, "backed_ns": 10**9}]}}
        for i in range(10000)]}
    rows = [{"first": p, "last": p, "online": True, "capacity": {"gp": 6, "fixed": 7}, "cpu_wide": {"gp": p % 2, "fixed": 0},
             "vcpu": {"gp": 4, "fixed": 7}, "vms": 10000} for p in range(4096)]
    host = {"ok": True, "started_ms": 0, "processors": rows, "model": "AMD EPYC " * 20, "connections": 10000}
    answers = {"status": host, "host": host, "leases": many, "top": many}
    with FakeControl(lambda question: json.dumps(answers[question["op"]])) as fake:
        said = vpmuctl(fake, "status")
        results.check("status", len(said.stdout.splitlines()) < 60 and width(said.stdout) <= 80
                      and "10000 VMs, 9000 granted, 1000 short" in said.stdout and "988 more" in said.stdout, said.stdout[-900:])
        results.check("two kinds of processors", len(re.findall(r"^[01],.*\+ +6\+3", said.stdout, re.M)) == 2, said.stdout[:900])
        said = vpmuctl(fake, "status", "--all")
        results.equal("--all", said.stdout.count(" short "), 1000)
        said = vpmuctl(fake, "leases")
        results.check("leases", len(said.stdout.splitlines()) == 10001 and width(said.stdout) <= 80, said.stdout[:200])
        said = vpmuctl(fake, "top", "--once")
        results.check("top", said.stdout.count(" gp 0 ") == 10000 and width(said.stdout) <= 80, said.stdout[:200])


# --- A daemon that answers oddly ---

class FakeControl:
    """A control socket whose answers are another's: answer(question) -> line."""

    def __init__(self, answer):
        self.folder = tempfile.TemporaryDirectory(prefix="vpmuctl-")
        self.control = Path(self.folder.name) / "control.sock"
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.control))
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.folder.cleanup()

    def serve(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            with connection, connection.makefile("r") as lines:
                try:
                    for line in lines:
                        connection.sendall(self.answer(json.loads(line)).encode("utf-8", "surrogateescape") + b"\n")
                except OSError:
                    pass


ODD = (None, True, -1, 2**64, 1.5, "", "\u001b[2Jevil\u202e\u0007", "x" * 3000, "日本" * 50, [], [None, 7, {}], {},
       {"gp": -1, "fixed": 2**40})


def odd_version(value, choice):
    """A copy in which something is something else, or missing."""
    if choice.random() < 0.08:
        return choice.choice(ODD)
    if isinstance(value, dict):
        return {k: odd_version(v, choice) for k, v in value.items() if choice.random() > 0.05}
    if isinstance(value, list):
        return [odd_version(v, choice) for v in value]
    return value


def odd_answers(results, seed):
    """Whatever vpmud says, and whatever VMs are called: no crash, no escape sequence, 80 columns."""
    agent = {"name": "agent", "pid": 812, "gp": 3, "events": 24, "pinned": True}
    with Vpmud(machine(gp=6, watchdog=True, holders=[agent])) as daemon, daemon.vm("web1") as vm, daemon.vm("two") as two:
        lease = vm.acquire(2).lease
        two.acquire(1)
        vm.report(lease, 2, [0, 3, 1, 1, 0, 0, 0, 0], [(1, BACKED, 0x4300C0, 10**9, 10**9), (33, STARVED, 2, 10**9, 1)])
        real = {op: daemon.ask(op) for op in ("status", "host", "leases", "top")}
        real |= {"explain": daemon.ask("explain", vm="web1"), "revoke": {"error": {"text": "a\x1b[1mb"}}}
    choice = random.Random(seed)
    wrong = []

    def answer(question):
        odd = odd_version(real[question["op"]], choice)
        if isinstance(odd, dict) and choice.random() < 0.9:
            odd["ok"] = True
        return json.dumps(odd)
    with FakeControl(answer) as fake:
        for _ in range(12):
            for ask in (["status"], ["status", "-a"], ["leases"], ["top", "-1a"], ["explain", "web1"], ["revoke", "web1"]):
                said = run(ask[0], "--control", fake.control, *ask[1:], program=SANITIZED)
                if said.returncode not in (0, 1, 69, 77) or not is_plain(said.stdout + said.stderr) or \
                        max(map(columns_of, said.stdout.splitlines()), default=0) > 80:
                    wrong.append((ask, said.returncode, said.stdout[-300:], said.stderr[-600:]))
    results.equal("72 odd answers are borne", wrong[:1], [])
    for line, code in (("hello", 69), ('{"ok": tru', 69), ("[]", 1), ("{}", 1), ('{"ok": false}', 1),
                       ('{"ok": false, "error": {"status": "denied", "text": "uid 7 may not"}}', 77),
                       ('{"ok": false, "error": {"status": null, "text": null}}', 1)):
        with FakeControl(lambda _, line=line: line) as fake:
            said = run("leases", "--control", fake.control, program=SANITIZED)
            results.equal(f"exit status for {line}", said.returncode, code)


def columns_of(line):
    """Columns of a terminal: wide characters have two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def denied(results):
    """Another user has no right: 77, by the socket's mode and by vpmud's policy."""
    if os.getuid():
        raise Skipped("only root can be somebody else")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with Vpmud() as daemon:
        daemon.folder.chmod(0o711)

        def ask(*words):
            return subprocess.run([*nobody, PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S)
        for mode, text in ((0o600, "be root"), (0o666, "may not")):
            daemon.control.chmod(mode)
            daemon.socket.chmod(mode)
            for command in ASKING:
                said = ask(command, "--control", daemon.control, *["x"] * (command in ("explain", "revoke")))
                results.check(f"{command}, mode {mode:o}", said.returncode == 77 and text in said.stderr, said.stderr)
            said = ask("run", "--socket", daemon.socket, "-n", "1", "--", "true")
            results.equal(f"run, mode {mode:o}", said.returncode, 77)


# --- run ---

def as_from_a_terminal():
    """In the child: no signal is ignored, as for what nohup or a shell's & has started."""
    die_with_parent()
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def started(daemon, *words):
    """A `run` in the background, when its lease is there."""
    process = subprocess.Popen([PROGRAM, "run", "--socket", daemon.socket, "--name", "prof", *words], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN,
                               preexec_fn=as_from_a_terminal)
    eventually(lambda: "prof" in daemon.leases(), "no lease")
    return process


def says(process, text):
    """Reads its standard error up to a line with this text."""
    for line in process.stderr:
        if text in line:
            return True
    return False


def run_statuses(results):
    """run: what is granted and left; the command's exit status, or why there is none."""
    with Vpmud(machine(gp=6)) as daemon, daemon.vm("web1") as vm:
        vm.acquire(4)
        said = profile(daemon, "-n", 1, "-f", 2, "--", "sh", "-c", "echo $VPMU_COUNTERS $VPMU_FIXED; exit 7")
        results.equal("the command's exit status", said.returncode, 7)
        results.equal("it is told what it has", said.stdout, "1 0x3\n")
        results.check("granted, left", "granted 1+2" in said.stderr and "left beside it: 1+1" in said.stderr, said.stderr)
        results.equal("quiet", profile(daemon, "-qn", 1, "--", "true").stderr, "")
        results.equal("a signal", profile(daemon, "-n", 1, "--", "sh", "-c", "kill -9 $$").returncode, 137)
        results.equal("no such command", profile(daemon, "-n", 1, "--", "/nonexistent").returncode, 127)
        results.equal("not to be executed", profile(daemon, "-n", 1, "--", "/").returncode, 126)
        said = profile(daemon, "-n", 3, "--", "echo", "counted")
        results.check("refused: by whom; nothing runs", said.returncode == 75 and "web1" in said.stderr and not said.stdout,
                      said.stderr)
        said = profile(daemon, "-n", 3, "--least", 1, "--", "sh", "-c", "echo $VPMU_COUNTERS")
        results.check("reduced: by whom", said.stdout == "2\n" and "web1" in said.stderr, said.stderr)
        said = profile(daemon, "-n", 1, "--cpus", "99", "--", "true")
        results.check("no such processor", said.returncode == 64 and "99" in said.stderr, said.stderr)
        eventually(lambda: list(daemon.leases()) == ["web1"], "a lease is left")
        results.equal("nothing is left", list(daemon.leases()), ["web1"])
    said = profile(daemon, "-n", 1, "--", "true")
    results.check("no daemon", said.returncode == 69 and "systemctl" in said.stderr, said.stderr)


def run_signals(results):
    """run: what is sent to it reaches the command; the lease lasts as long as the command."""
    trap = "trap 'echo got; exit 3' %s; echo ready; while :; do sleep 0.05; done"
    with Vpmud() as daemon:
        for name in ("TERM", "INT", "HUP", "USR1"):
            with started(daemon, "-n", "2", "--", "sh", "-c", trap % name) as process:
                process.stdout.readline()
                process.send_signal(getattr(signal, f"SIG{name}"))
                results.equal(f"SIG{name}", (process.stdout.read(), process.wait(PATIENCE_S)), ("got\n", 3))
        with started(daemon, "-n", "2", "--", "sh", "-c", "echo $$; exec sleep 1000") as process:
            pid = int(process.stdout.readline())
            process.kill()
            process.wait(PATIENCE_S)
            eventually(lambda: not Path(f"/proc/{pid}/fd").exists() or not os.listdir(f"/proc/{pid}/fd"), "it lives on")
            results.check("the command does not outlive it", True)
        eventually(lambda: not daemon.leases(), "a lease is left")


def run_revoked(results):
    """run: a revocation is told; with --stop the command is ended; a VM that yields gives way."""
    with Vpmud(machine(gp=6), daemon={"notice_ms": 200}) as daemon, daemon.vm("web1") as vm:
        vm.acquire(5, flags=1)
        with started(daemon, "-n", "3", "--", "sleep", "1000") as process:
            results.check("a VM that yields gives way", says(process, "granted 3+0"))
            daemon.ask("revoke", lease="prof")
            results.check("told, by whom", says(process, "the lease is revoked: revoked by an operator"))
            results.equal("the command goes on", process.poll(), None)
            process.terminate()
            results.equal("until it is ended", process.wait(PATIENCE_S), 128 + signal.SIGTERM)
        with started(daemon, "-n", "1", "--stop", "--", "sleep", "1000") as process:
            daemon.ask("revoke", lease="prof")
            results.check("told that it is ended", says(process, "the command is ended"))
            results.equal("--stop", process.wait(PATIENCE_S), 128 + signal.SIGTERM)


def run_restart(results):
    """run: vpmud is killed and comes back: the lease is renewed, or it is told that it is lost."""
    with Vpmud() as daemon:
        with started(daemon, "-n", "2", "--", "sleep", "1000") as process:
            daemon.kill()
            results.check("gone", says(process, "vpmud is gone"))
            daemon.start()
            results.check("back", says(process, "the lease is renewed"))
            results.equal("the lease is live", daemon.leases()["prof"]["state"], "live")
            daemon.kill()
            daemon.state.unlink()
            daemon.describe(machine(gp=1))
            daemon.start()
            results.check("a machine without so many", says(process, "the lease is lost"))
            process.terminate()
            results.equal("the command went on", process.wait(PATIENCE_S), 128 + signal.SIGTERM)


# --- Manuals and completion ---

def manuals(results):
    """mandoc finds nothing to say of the manuals; each command and option is in vpmuctl(8)."""
    if not shutil.which("mandoc"):
        raise Skipped("there is no mandoc")
    pages = sorted(SOURCES.glob("*/*.[1-8]"))
    results.check("there are some", {p.name for p in pages} >= {"vpmuctl.8", "vpmuctl-doctor.8", "vpmud.8", "vpmud.conf.5"}, pages)
    for page in pages:
        said = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
        results.equal(page.name, (said.stdout, said.returncode), ("", 0))
    text = subprocess.run(["mandoc", "-T", "utf8", SOURCES / "cli/vpmuctl.8"], capture_output=True, text=True).stdout
    text = re.sub(r".\x08", "", text)
    for command in re.findall(r"^  (\w+)", run("--help").stdout, re.M):
        results.check(f"vpmuctl(8) has {command}", re.search(rf"vpmuctl {command}\b", text))
        if command not in ("domain", "doctor"):
            options = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", run(command, "--help").stdout.split("usage:")[1]))
            results.check(f"and the options of {command}", all(o in text for o in options - {"--help"}),
                          {o for o in options if o not in text})


def complete(line):
    """What bash offers after this line."""
    script = f"""source {SOURCES}/cli/vpmuctl.bash
        COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; read -ra COMP_WORDS <<<"$COMP_LINE"
        [[ $COMP_LINE != *' ' ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _vpmuctl vpmuctl "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"; complete -p vpmuctl"""
    said = subprocess.run(["bash", "-u", "-c", script], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=PLAIN | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"})
    return said.stdout.split("\n")[:-2], said.stdout.split("\n")[-2], said.stderr


def completion(results):
    """bash's completion: commands, options, leases of a vpmud that answers."""
    commands = re.findall(r"^  (\w+)", run("--help").stdout, re.M)
    offered, registered, errors = complete("vpmuctl ")
    results.equal("commands", sorted(offered), sorted(commands))
    results.check("registered, no error", "_vpmuctl vpmuctl" in registered and not errors, errors)
    results.equal("a beginning", complete("vpmuctl st")[0], ["status"])
    for command in commands:
        if command == "domain":
            continue
        options = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", run(command, "--help").stdout))
        results.check(f"options of {command}", options <= set(complete(f"vpmuctl {command} --")[0]),
                      options - set(complete(f"vpmuctl {command} --")[0]))
    results.check("formats", "nova" in complete("vpmuctl fleet ")[0])
    with Vpmud() as daemon, daemon.vm("web1") as vm, daemon.vm("two words") as two:
        vm.acquire(1)
        two.acquire(1)
        results.equal("leases", complete(f"vpmuctl explain --control {daemon.control} w")[0], ["web1"])
        results.check("by number, too", "1" in complete(f"vpmuctl revoke --control {daemon.control} ")[0])
    results.equal("no daemon, no noise", complete(f"vpmuctl explain --control {daemon.control} w")[0::2], ([""], ""))


CASES = (leases, words, status, explain, top, pages, odd_answers, denied, run_statuses, run_signals, run_revoked,
         run_restart, manuals, completion)
