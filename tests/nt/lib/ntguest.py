# SPDX-License-Identifier: BSD-3-Clause
"""One boot of the NT test guest, and what its lines say."""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

TIMEOUT_S = 120
PASSED_STATUS = 1  # isa-debug-exit: 2 * 0 + 1
SUMMARY = re.compile(r"SUMMARY (\d+) passed, (\d+) failed, (\d+) skipped")
RESULT = re.compile(r"(PASS|FAIL|SKIP) (.*)")


class Row(NamedTuple):
    """scenario: of tests/nt/scenarios.c; append: the HAL's options, see tests/nt/main.c."""

    scenario: str
    cpu: str
    cpus: int = 1
    append: str = ""
    qemu: str = "QEMU"
    note: str = ""
    options: tuple = ()

    @property
    def name(self):
        parts = [self.scenario, *self.append.replace("=", "-").split()]
        return "-".join(parts + [self.note] * bool(self.note)) + f"-smp{self.cpus}"


def command(row):
    build = Path(os.environ["BUILD"])
    drivers = [*(build / "tests/nt").glob("*.sys"), *(build / "guest-drivers").glob("*.sys")]
    argv = [os.environ[row.qemu]]
    for folder in os.environ.get("QEMU_DATA", "").split():
        argv += ["-L", folder]
    argv += "-accel tcg -machine q35 -m 64 -nodefaults -display none -serial stdio -no-reboot".split()
    argv += "-device isa-debug-exit,iobase=0xf4,iosize=4".split()
    argv += ["-smp", str(row.cpus), "-cpu", row.cpu, *row.options]
    argv += ["-kernel", str(build / "tests/nt/ntguest.elf")]
    argv += ["-append", f"scenario={row.scenario} {row.append}".strip()]
    return argv + ["-initrd", ",".join(map(str, sorted(drivers)))]


def boot(row):
    """The guest's lines, and what went wrong with QEMU or None."""
    try:
        done = subprocess.run(
            command(row),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
        )
        output, status = done.stdout, done.returncode
        why = None if status in (PASSED_STATUS, 3) else f"QEMU ended with {status}"
    except subprocess.TimeoutExpired as late:
        output, why = late.stdout or b"", f"no end after {TIMEOUT_S} s"
    lines = output.decode(errors="replace").replace("\r", "").splitlines()
    return lines, why


def judge(row, lines, why):
    """Lines to print, and the numbers of passed, failed and skipped checks."""
    told, counts = [], [0, 0, 0]
    for line in lines:
        if result := RESULT.fullmatch(line):
            told.append(f"{result[1]} {row.name}: {result[2].strip()}")
            counts[("PASS", "FAIL", "SKIP").index(result[1])] += 1
        elif line.startswith("PANIC"):
            why = why or line
    summary = [SUMMARY.fullmatch(line) for line in lines if line.startswith("SUMMARY")]
    if not why and (len(summary) != 1 or [int(n) for n in summary[0].groups()] != counts):
        why = "no summary, or one that does not match the lines"
    if why:
        told.append(f"FAIL {row.name}: {why}")
        counts[1] += 1
    return told, counts
