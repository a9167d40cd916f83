# SPDX-License-Identifier: BSD-3-Clause
"""A Debian guest that runs commands, one after the other."""

import os
import re
import select
import shlex
import subprocess
import tempfile
import time
from pathlib import Path


class GuestError(Exception):
    """The guest or its QEMU did not do what was asked of it; the text says what."""


class Guest:
    """One boot. Use it in a `with`; the guest ends with it.

    qemu is the emulator's path, cpu the value of -cpu, name what its console's log is called,
    accel what runs its code, append what is added to the kernel's command line.
    """

    def __init__(self, qemu, cpu, name, vcpus=1, options=(), accel="tcg", append=""):
        self.console = build() / f"guest-{name}.console"
        data = [word for path in os.environ["QEMU_DATA"].split() for word in ("-L", path)]
        self._errors = tempfile.TemporaryFile()
        self._qemu = subprocess.Popen(
            [qemu, "-accel", accel, "-cpu", cpu, "-smp", str(vcpus), "-m", "1024", *data,
             "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
             "-kernel", build() / "vmlinuz", "-initrd", build() / "initrd",
             "-append", f"console=ttyS0 panic=-1 quiet {append}".strip(),
             "-serial", f"file:{self.console}", "-serial", "stdio", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0)
        self._pending = b""

    def __enter__(self):
        try:
            self._answer("boot", timeout=180)
        except GuestError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._qemu.kill()
        self._qemu.wait()
        self._qemu.stdin.close()
        self._qemu.stdout.close()

    def run(self, command, timeout=120):
        """Run a shell command; (exit status, what it wrote to stdout and stderr)."""
        self._qemu.stdin.write(command.encode() + b"\n")
        return self._answer(command, timeout)

    def output(self, command, timeout=120):
        """What a command that must succeed wrote."""
        status, text = self.run(command, timeout)
        if status != 0:
            raise GuestError(f"`{command}` exits with {status}: {text.strip()[-300:]}")
        return text

    def dmesg(self):
        """The kernel's log so far."""
        return self.output("dmesg")

    def _answer(self, what, timeout):
        deadline = time.monotonic() + timeout
        while not (end := re.search(rb"(?:^|\n)@@ (\d+)\n", self._pending)):
            ready, _, _ = select.select([self._qemu.stdout], [], [], max(0, deadline - time.monotonic()))
            block = os.read(self._qemu.stdout.fileno(), 65536) if ready else b""
            if not block:
                raise GuestError(f"{what}: {'QEMU has ended' if ready else 'no answer'}: {self._last_words()}")
            self._pending += block
        text = self._pending[: end.start()].decode(errors="replace")
        self._pending = self._pending[end.end():]
        return int(end.group(1)), text

    def errors(self):
        """The lines that QEMU has said so far."""
        # Not seek(): QEMU writes at the same place.
        said = os.pread(self._errors.fileno(), 1 << 20, 0)
        return said.decode(errors="replace").splitlines()

    def _last_words(self):
        lines = self.errors()
        if self.console.exists():
            lines += self.console.read_text(errors="replace").splitlines()
        return " / ".join([line for line in lines if ": warning: TCG doesn't" not in line][-5:])


def build():
    """The folder of the kernel, the initial RAM file system and the programs."""
    return Path(os.environ["BUILD"]) / "linux"


def version(qemu):
    """The first line of `qemu --version`."""
    return subprocess.run([qemu, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]


def quote(*words):
    """A shell command of these words."""
    return shlex.join(map(str, words))
