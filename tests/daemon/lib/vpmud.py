# SPDX-License-Identifier: BSD-3-Clause
"""A vpmud of one's own: in a folder of its own, on a described machine."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid as uuids
from pathlib import Path

import wire

BINARY = Path(os.environ["BUILD"]) / "bin" / os.environ.get("VPMUD", "vpmud")
PATIENCE_S = 20

ROOT_MAY_ALL = {"policy test": {"uid": str(os.getuid()), "may": "vm, profiler, hook, observer, revoke"}}


def die_with_parent():
    """In the child: a suite that is stopped leaves no daemon behind (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def machine(processors=8, gp=8, fixed=3, watchdog=False, facts=None, holders=(), **more):
    """A described machine (docs/host.md)."""
    return {
        "vendor": "Intel",
        "core_types": [{"name": "cpu", "version": 5, "gp": gp, "fixed": fixed}],
        "processors": [{"range": f"0-{processors - 1}"}],
        "facts": {"perf": True, "kvm": True, "enable_pmu": True, "watchdog": watchdog} | (facts or {}),
        "holders": list(holders),
    } | more


def new_uuid():
    return uuids.uuid4().bytes


class Vpmud:
    """Starts it; a context ends it. `daemon` and `sections` go to its configuration."""

    def __init__(self, host=None, daemon=None, sections=None, folder=None, wrap=(), start=True):
        self.owned = None if folder else tempfile.TemporaryDirectory(prefix="vpmud-")
        self.folder = Path(folder or self.owned.name)
        self.wrap = list(wrap)
        self.process = None
        self.log = ""
        self.host = self.folder / "host.json"
        self.config = self.folder / "vpmud.conf"
        self.describe(host or machine())
        self.configure(daemon, sections)
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        code, log = self.stop(), self.read_log() if (self.folder / "log").exists() else ""
        if self.owned:
            self.owned.cleanup()
        if code:
            raise RuntimeError(f"vpmud ended with {code}: {log[-600:]}")

    socket = property(lambda self: self.folder / "vpmud.sock")
    control = property(lambda self: self.folder / "control.sock")
    metrics = property(lambda self: self.folder / "metrics.sock")
    state = property(lambda self: self.folder / "state")

    def describe(self, host):
        aside = self.folder / "host.new"
        aside.write_text(json.dumps(host))
        aside.replace(self.host)

    def configure(self, daemon=None, sections=None):
        values = {"socket": self.socket, "control": self.control, "metrics": self.metrics,
                  "state": self.state, "grace_ms": 1000, "notice_ms": 500} | (daemon or {})
        text = "[daemon]\n" + "".join(f"{k} = {v}\n" for k, v in values.items() if v is not None)
        for name, keys in ({"watch": {"interval_ms": 0}} | (sections or ROOT_MAY_ALL)).items():
            text += f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items())
        self.config.write_text(text)

    def arguments(self):
        return "--config", str(self.config), "--host", str(self.host)

    def start(self):
        """Starts it and waits until it serves."""
        self.log_file = open(self.folder / "log", "ab")
        offset = self.log_file.tell()
        self.process = subprocess.Popen([*self.wrap, str(BINARY), *self.arguments()], stdout=subprocess.DEVNULL,
                                        stderr=self.log_file, preexec_fn=die_with_parent)
        self.wait_for_log("event=serving", offset)

    def read_log(self, offset=0):
        return (self.folder / "log").read_bytes()[offset:].decode()

    def wait_for_log(self, text, offset=0):
        """Waits until a line with this text has been written."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.read_log(offset):
            if self.process.poll() is not None and text not in self.read_log(offset):
                raise RuntimeError(f"vpmud ended with {self.process.returncode}: {self.read_log(offset)[-600:]}")
            if time.monotonic() > end:
                raise TimeoutError(f"vpmud did not say {text}: {self.read_log(offset)[-600:]}")
            time.sleep(0.01)

    def end_with(self, number):
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self.log_file.close()
        self.process = None
        return code

    def kill(self):
        return self.end_with(signal.SIGKILL)

    def stop(self):
        """Ends it in good order; its exit status."""
        return self.end_with(signal.SIGTERM) if self.process and self.process.poll() is None else None

    def reload(self):
        """SIGHUP; waits until it has been said what came of it. True: taken over."""
        offset = len((self.folder / "log").read_bytes())
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_log("reloaded", offset)
        return "event=reloaded" in self.read_log(offset)

    # --- Talking to it ---

    def client(self, kind=wire.VM, name="test", uuid=bytes(16), **more):
        return wire.Client(self.socket, kind, name, uuid, **more)

    def vm(self, name="vm", uuid=None):
        return self.client(wire.VM, name, uuid or new_uuid())

    def profiler(self, name="perf"):
        return self.client(wire.PROFILER, name)

    def ask(self, operation, **more):
        """One question to the control socket."""
        return ask_lines(self.control, json.dumps({"op": operation} | more))

    def leases(self, state=None):
        """{name: lease} of the control socket's answer."""
        return {lease["name"]: lease for lease in self.ask("leases")["leases"]
                if state is None or lease["state"] == state}

    def scrape(self):
        """{metric with labels: value}."""
        body = exchange(self.metrics, b"GET /metrics HTTP/1.1\r\nHost: vpmud\r\n\r\n").split("\r\n\r\n", 1)[1]
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in body.splitlines() if line and not line.startswith("#")}

    def rss_kib(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise ValueError("no VmRSS")


def exchange(path, data):
    """Sends data and reads to the end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(str(path))
        connection.sendall(data)
        answer = b""
        while more := connection.recv(65536):
            answer += more
    return answer.decode()


def ask_lines(path, line):
    """A line to a control socket, and the object that comes back."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(str(path))
        connection.sendall(line.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            more = connection.recv(1 << 20)
            if not more:
                raise wire.Closed()
            answer += more
    return json.loads(answer)


def eventually(condition, what):
    """Waits until it is so: only for what the daemon does after its answer."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.01)
