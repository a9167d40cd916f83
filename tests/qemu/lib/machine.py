# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine: its process, its monitor (QMP) and what its guest prints."""

import contextlib
import json
import os
import queue
import socket
import subprocess
import tempfile
import threading
import time

from results import Skipped

# When a QEMU that says nothing has hung. Nothing is expected within any shorter time.
PATIENCE_S = int(os.environ.get("VPMU_PATIENCE_S", "120"))
POLL_S = 0.02

INTEL = "Skylake-Server"
ON = f"{INTEL},pmu=on"


class Broken(Exception):
    """QEMU or its guest did what it must not; the text says what."""


def object_of(text):
    """Options for a vpmu object with these properties."""
    return ("-object", ",".join(filter(None, ("vpmu,id=vpmu0", text))))


def image(name):
    return os.path.join(os.environ["BUILD"], "tests/qemu", f"{name}.elf")


def symbols(name):
    """Addresses of an image's symbols."""
    listing = subprocess.run(["nm", image(name)], capture_output=True, text=True, check=True)
    rows = (line.split() for line in listing.stdout.splitlines())
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def command(cpu, cpus=1, options=(), qemu=None):
    """A machine without a guest or a monitor."""
    firmware = [arg for folder in os.environ["QEMU_DATA"].split() for arg in ("-L", folder)]
    return [
        qemu or os.environ["QEMU"],
        *firmware,
        *("-machine", "q35", "-m", "64", "-smp", str(cpus)),
        *(("-cpu", cpu) if cpu else ()),
        *(() if "-accel" in options else ("-accel", "tcg")),
        *("-nodefaults", "-display", "none", "-no-reboot"),
        *options,
    ]


def without_warnings(text):
    """What QEMU said, but for the features that TCG does not have."""
    return [line for line in text.splitlines() if " warning: " not in line]


def without_times(row):
    return {name: value for name, value in row.items() if not name.endswith("-ns")}


def run_image(name, cpu, *, append="", cpus=1, options=(), qemu=None):
    """Runs an image to its end: (exit status, lines that it printed, what QEMU said)."""
    done = subprocess.run(
        [
            *command(cpu, cpus, options, qemu),
            *("-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
            *("-kernel", image(name), "-append", append),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), without_warnings(done.stderr)


class Machine:
    """
    Starts QEMU; with `append`, with an image in it. With a debugger it stands until that has it
    run. Use as a context: leaving it ends QEMU.
    """

    def __init__(self, cpu=ON, append=None, *, cpus=1, options=(), name="worker", debugger=False):
        self.log = tempfile.TemporaryFile("w+")
        self.lines = queue.Queue()
        self.printed = []
        self.events = []
        mine, its = socket.socketpair()
        passed = [its]
        arguments = command(cpu, cpus, options)
        arguments += ["-chardev", f"socket,id=monitor,fd={its.fileno()}"]
        arguments += ["-mon", "chardev=monitor,mode=control", "-serial", "stdio"]
        arguments += ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
        if append is not None:
            arguments += ["-kernel", image(name), "-append", append]
        if debugger:
            self.debugger, other = socket.socketpair()
            passed.append(other)
            arguments += ["-chardev", f"socket,id=debugger,fd={other.fileno()}"]
            arguments += ["-gdb", "chardev:debugger", "-S"]
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            errors="replace",
            pass_fds=[end.fileno() for end in passed],
        )
        for end in passed:
            end.close()
        threading.Thread(target=self._read_lines, daemon=True).start()
        mine.settimeout(PATIENCE_S)
        self.monitor = mine.makefile("rw")
        self._receive()  # the greeting
        self.qmp("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.monitor.close()
        self.log.close()

    def _read_lines(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def said(self):
        """What QEMU said on its standard error, warnings aside."""
        self.log.seek(0)
        return without_warnings(self.log.read())

    def _dead(self):
        status = self.process.wait(PATIENCE_S)
        return Broken(f"QEMU ended with status {status}: {(self.said() or ['no word'])[-1]}")

    # The monitor

    def _receive(self):
        try:
            line = self.monitor.readline()
        except TimeoutError:
            raise Broken("QEMU's monitor does not answer") from None
        except OSError:
            line = ""
        if not line:
            raise self._dead()
        return json.loads(line)

    def _send(self, name, arguments):
        request = {"execute": name, "arguments": arguments}
        try:
            self.monitor.write(json.dumps(request) + "\n")
            self.monitor.flush()
        except OSError:
            raise self._dead() from None

    def qmp_answer(self, name, **arguments):
        """The whole answer, which may be an error."""
        self._send(name, {key.replace("_", "-"): value for key, value in arguments.items()})
        while True:
            answer = self._receive()
            if "event" not in answer:
                return answer
            self.events.append(answer)

    def qmp(self, name, **arguments):
        """What a command returns."""
        answer = self.qmp_answer(name, **arguments)
        if "error" in answer:
            raise Broken(f"{name}: {answer['error']['desc']}")
        return answer["return"]

    def hmp(self, line):
        return self.qmp("human-monitor-command", command_line=line)

    def wait_event(self, wanted):
        """The first event, of those not waited for yet, for which wanted(event) holds."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if wanted(event):
                    return event
            self.events.append(self._receive())

    # The guest

    def next_line(self):
        """The guest's next line; None at the end of QEMU."""
        try:
            line = self.lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Broken("the guest says nothing more") from None
        if line is not None:
            self.printed.append(line)
        return line

    def wait_line(self, wanted):
        while (line := self.next_line()) != wanted:
            if line is None:
                raise self._dead()
            if line.startswith("PANIC"):
                raise Broken(line)

    def nmi(self):
        """What the worker image waits for."""
        self.qmp("inject-nmi")

    def vpmu(self):
        return self.qmp("query-vpmu")

    def registers(self):
        """query-vpmu without the times, which are those of one process and not of the guest."""
        return [
            {**without_times(vcpu), "counters": [without_times(c) for c in vcpu["counters"]]}
            for vcpu in self.vpmu()
        ]

    def counter(self, kind, index, cpu=0):
        """One counter as the monitor has it; kind is "gp" or "fixed"."""
        for counter in self.vpmu()[cpu]["counters"]:
            if counter["fixed"] == (kind == "fixed") and counter["index"] == index:
                return counter
        raise Broken(f"query-vpmu has no counter {kind} {index}")

    def wait_until(self, what, holds):
        """Asks until holds() is true."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > end:
                raise Broken(f"never: {what}")
            time.sleep(POLL_S)

    def begin(self, phase):
        """Waits until all vCPUs are at work in this phase of the worker."""
        self.wait_line(f"READY {phase}")
        self.wait_counting()

    def wait_counting(self):
        def counting():
            vcpus = self.vpmu()
            fixed = [next(c for c in v["counters"] if c["fixed"]) for v in vcpus]
            return all(c["enabled"] and c["value"] > 0 for c in fixed)

        self.wait_until("all vCPUs count", counting)

    def end(self, phase):
        """Ends the phase; the guest has said its results and stands."""
        self.nmi()
        self.wait_line(f"DONE {phase}")

    def values(self):
        """The last "VALUE cpu counter value" lines, as {(cpu, counter): value}."""
        rows = (line.split() for line in self.printed if line.startswith("VALUE "))
        return {(int(cpu), int(counter)): int(value) for _, cpu, counter, value in rows}

    def finish(self):
        """Lets the guest end; how many of its checks passed and failed."""
        self.nmi()
        while self.next_line() is not None:
            pass
        return self.summary()

    def summary(self):
        """(passed, failures' lines) of all that the guest printed."""
        if not any(line.startswith("SUMMARY ") for line in self.printed):
            raise self._dead()
        failed = [line for line in self.printed if line.startswith("FAIL ")]
        return sum(line.startswith("PASS ") for line in self.printed), failed


def migrate_out(machine, uri):
    """Moves a machine's state out; it stands afterwards. Returns the last status."""
    capabilities = [{"capability": "events", "state": True}]
    machine.qmp("migrate-set-capabilities", capabilities=capabilities)
    machine.qmp("migrate", uri=uri)
    return wait_migration(machine)


def make_live(*machines):
    """With a way back: the source does not end before the other has the guest."""
    capabilities = [
        {"capability": "events", "state": True},
        {"capability": "return-path", "state": True},
    ]
    for machine in machines:
        machine.qmp("migrate-set-capabilities", capabilities=capabilities)


def wait_migration(machine):
    ended = ("completed", "failed", "cancelled")
    event = machine.wait_event(
        lambda event: event["event"] == "MIGRATION" and event["data"]["status"] in ended
    )
    return event["data"]["status"]


def migrate_in(machine, uri):
    """Takes a state into a machine that was started with -incoming defer."""
    capabilities = [{"capability": "events", "state": True}]
    machine.qmp("migrate-set-capabilities", capabilities=capabilities)
    machine.qmp("migrate-incoming", uri=uri)
    return wait_migration(machine)


def check_guest(results, what, machine):
    """All checks of the guest passed."""
    passed, failed = machine.finish()
    failed = failed or ([] if passed else ["it checked nothing"])
    results.check(f"{what}: the guest's {passed} checks", not failed, "; ".join(failed[:3]))


def create_disk(machine, path):
    """A node that takes snapshots."""

    def create(job, options):
        machine.qmp("blockdev-create", job_id=job, options=options)
        machine.wait_event(
            lambda event: event["event"] == "JOB_STATUS_CHANGE"
            and event["data"] == {"status": "concluded", "id": job}
        )
        if "error" in machine.qmp("query-jobs")[0]:
            raise Skipped("this QEMU makes no disk image that takes snapshots")
        machine.qmp("job-dismiss", id=job)

    create("file", {"driver": "file", "filename": path, "size": 0})
    machine.qmp("blockdev-add", driver="file", filename=path, node_name="file")
    create("image", {"driver": "qcow2", "file": "file", "size": 1 << 20})
    machine.qmp("blockdev-add", driver="qcow2", file="file", node_name="disk")


def hmp_silent(machine, line):
    said = machine.hmp(line).strip()
    if said:
        raise Broken(f"{line}: {said}")
