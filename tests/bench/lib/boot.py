# SPDX-License-Identifier: BSD-3-Clause
"""A Linux boot as a workload: kernel, busybox, power off; counted from an option ROM on."""

import json
import os
import subprocess
from pathlib import Path

ROM_ARMED = 8  # offset of the ROM's byte that says what to count
FEATURE_ARCH_PERFMON = 99  # X86_FEATURE_ARCH_PERFMON: without it the kernel leaves the counters alone
BOOT_INSNS = 100_000_000  # far fewer than any boot takes


class BootError(Exception):
    """The guest or its QEMU did not do what was asked of it; the text says what."""


def prepare(out):
    """Make the initial RAM file system and both ROMs below `out`."""
    root = out / "root"
    (root / "bin").mkdir(parents=True, exist_ok=True)
    busybox = Path(subprocess.run(["sh", "-c", "command -v busybox"], check=True, capture_output=True,
                                  text=True).stdout.strip())
    (root / "bin" / "busybox").write_bytes(busybox.read_bytes())
    (root / "bin" / "busybox").chmod(0o755)
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root, check=True,
                             input=b".\nbin\nbin/busybox\n", stdout=subprocess.PIPE).stdout
    (out / "initrd").write_bytes(archive)
    for counting, armed in (("insns", 0), ("armed", 1)):
        rom = bytearray((out / "rom.bin").read_bytes())
        rom[ROM_ARMED] = armed
        rom[-1] = -sum(rom[:-1]) & 0xFF
        (out / f"rom-{counting}.bin").write_bytes(rom)


def run(qemu, counting, out):
    """Boot and power off once; (user time in seconds, were the kernel's instructions counted)."""
    rom = [] if counting == "off" else ["-option-rom", out / f"rom-{counting}.bin"]
    append = f"quiet panic=-1 clearcpuid={FEATURE_ARCH_PERFMON} rdinit=/bin/busybox -- poweroff -f"
    process = subprocess.Popen(
        [*qemu, "-m", "256", "-kernel", out.parent / "linux" / "vmlinuz", "-initrd", out / "initrd",
         "-append", append, *rom, "-no-shutdown", "-qmp", "stdio"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        execute(process, "qmp_capabilities")
        wait_for_event(process, "STOP")
        counted = counting != "off" and all_counted(execute(process, "query-vpmu"), counting)
        execute(process, "quit")
    except BootError:
        process.kill()
        raise
    finally:
        _, _, usage = os.wait4(process.pid, 0)
        process.stdin.close()
        process.stdout.close()
    return usage.ru_utime, counted


def all_counted(vcpus, counting):
    """Did the counters that the ROM started count through the boot?"""
    counters = vcpus[0]["counters"][:2 if counting == "armed" else 1]
    return all(c["enabled"] and c["value"] > BOOT_INSNS // 10 for c in counters) and \
        counters[0]["value"] > BOOT_INSNS


def message(process):
    line = process.stdout.readline()
    if not line:
        raise BootError("boot: QEMU ended too early")
    return json.loads(line)


def wait_for_event(process, name):
    while message(process).get("event") != name:
        pass


def execute(process, name):
    """One QMP command; what it returned."""
    try:
        process.stdin.write(json.dumps({"execute": name}).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        raise BootError("boot: QEMU ended too early") from None
    while True:
        answer = message(process)
        if "error" in answer:
            raise BootError(f"boot: {name}: {answer['error']['desc']}")
        if "return" in answer:
            return answer["return"]
