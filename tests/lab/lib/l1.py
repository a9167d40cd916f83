# SPDX-License-Identifier: BSD-3-Clause
"""L1: a KVM host under TCG that has this machine's files and runs one command."""

import os
import shlex
import subprocess
import tempfile
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
MODEL = "EPYC-v4,+svm,+npt"
PMU = "pmu=on,pmu-version=2"  # PerfMonV2
MEMORY_MB = 3072
BOOT_TIMEOUT_S = 120
HANDED_ON = ("BUILD", "QEMU", "QEMU_STOCK", "QEMU_DATA", "PYTHON")
UP = "@@lab-up"


class LabError(Exception):
    """L1 or its QEMU did not do what was asked of it; the text says what."""


def kernels():
    """The names of the table ./kernels."""
    rows = (Path(__file__).parents[1] / "kernels").read_text().splitlines()
    return [row.split()[0] for row in rows if row and not row.startswith("#")]


def build():
    return Path(os.environ["BUILD"]) / "lab"


def has_pmu(properties=PMU):
    """Whether this QEMU gives L1's processor a PMU of these properties."""
    done = subprocess.run(
        [os.environ["QEMU"], *firmware(), "-accel", "tcg", "-cpu", f"{MODEL},{properties}",
         "-nodefaults", "-display", "none", "-S", "-monitor", "stdio"],
        input=b"quit\n", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
    return done.returncode == 0


def firmware():
    return [word for path in os.environ["QEMU_DATA"].split() for word in ("-L", path)]


class L1:
    """One boot of L1.

    kernel is a name of ./kernels, cpu what is added to the CPU model (such as PMU), append
    what is added to the kernel's command line.
    """

    def __init__(self, kernel, vcpus=1, cpu="", append="", memory_mb=MEMORY_MB):
        self.kernel = build() / kernel
        self.vcpus = vcpus
        self.cpu = ",".join(filter(None, (MODEL, cpu)))
        self.append = append
        self.memory_mb = memory_mb
        if not (self.kernel / "initrd").exists():
            raise LabError(f"no kernel in {self.kernel}: make lab KERNEL={kernel}")

    def shell(self):
        """A shell in L1 on this terminal; returns when it has powered off."""
        with self._share() as share:
            subprocess.run(self._command(share, "mon:stdio", None), check=False)

    def run(self, command, timeout, on_line=print):
        """Run a command (a list of words) in L1, in the repository's top; its exit status.

        on_line gets each line of its output. timeout is in seconds, from L1's boot on.
        """
        with self._share() as share:
            Path(share, "command").write_text(shlex.join(map(str, command)) + "\n")
            console = Path(share, "console")
            qemu = subprocess.Popen(
                self._command(share, f"file:{console}", "stdio"), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
            watch = _Watch(qemu, timeout)
            for line in qemu.stdout:
                if line.rstrip() == UP:
                    watch.booted()
                else:
                    on_line(line.rstrip("\r\n"))
            errors = qemu.stderr.read()
            qemu.wait()
            watch.stop()
            status = Path(share, "status")
            if watch.expired or not status.exists():
                said = [line for line in errors.splitlines() if ": warning: TCG doesn't" not in line]
                if console.exists():
                    said += console.read_text(errors="replace").splitlines()
                raise LabError(f"{watch.expired or 'L1 ended early'}: {' / '.join(said[-5:])}")
            return int(status.read_text())

    def _share(self):
        """A folder that L1 sees as /run/lab, with the job that it starts."""
        folder = build() / "jobs"
        folder.mkdir(parents=True, exist_ok=True)
        share = tempfile.TemporaryDirectory(dir=folder)
        environment = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
        start = Path(share.name, "start")
        start.write_text("\n".join([
            "#!/bin/sh", *exports, f"export LAB_KERNEL={shlex.quote(str(self.kernel))}",
            f"cd {shlex.quote(str(TOP))}", "exec tests/lab/session", ""]))
        start.chmod(0o755)
        return share

    def _command(self, share, console, second):
        def virtfs(path, tag, *more):
            return "-virtfs", ",".join(
                (f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap", *more))

        serial = ["-serial", console] + (["-serial", second] if second else [])
        return [
            os.environ["QEMU"], *firmware(), "-accel", "tcg", "-cpu", self.cpu,
            "-smp", str(self.vcpus), "-m", str(self.memory_mb),
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *serial,
            *virtfs("/", "host", "readonly=on"), *virtfs(share, "lab"),
            "-kernel", self.kernel / "vmlinuz", "-initrd", self.kernel / "initrd",
            "-append", f"console=ttyS0 panic=-1 quiet {self.append}".strip(),
        ]


class _Watch:
    """Ends a QEMU that does not boot, or does not end, in time; expired then says so."""

    def __init__(self, qemu, timeout):
        self.expired = None
        self._qemu = qemu
        self._start = time.monotonic()
        self._timeout = timeout
        self._timer = None
        self._arm(BOOT_TIMEOUT_S, "L1 is not up")

    def booted(self):
        self.stop()
        self._arm(self._timeout, "L1 is not done")

    def stop(self):
        self._timer.cancel()

    def _arm(self, seconds, what):
        def expire():
            self.expired = f"{what} after {seconds} s"
            self._qemu.kill()

        self._timer = threading.Timer(seconds, expire)
        self._timer.daemon = True
        self._timer.start()
