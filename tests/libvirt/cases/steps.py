# SPDX-License-Identifier: BSD-3-Clause
"""The ten steps of docs/operators.md: each command is run here, or it is said where it is."""

import re
from pathlib import Path

from host import BIN, Host, domain_xml
from life import HYPERV
from vpmud import machine

TEXT = Path(__file__).resolve().parents[3] / "docs" / "operators.md"
SECTION = "## From an empty host to a Windows VM with counters\n"

# Commands that another suite runs, or the guest.
ELSEWHERE = {
    "apt-get install ": "make check-deb installs the packages",
    "make qemu": "what this suite needs before it starts",
    "systemctl enable ": "make check-deb verifies the units; vpmud runs here as they start it",
    "bcdedit ": "in Windows",
    "pnputil ": "in Windows",
    "vpmustat": "in Windows; make check-wine runs it",
}

# What is said by a command, once it has been run.
SAYS = {"virsh define": "defined", "vpmuctl domain check": "would get 4", "virsh start": "started", "vpmuctl leases": "win"}


def commands():
    section = TEXT.read_text().split(SECTION, 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^ {7,8}(\S.*)$", section, re.MULTILINE)


def run(host, command):
    """As the operator would, on a host whose programs are those of this build."""
    if command == "systemctl restart libvirtd":
        host.restart_libvirtd()
        return 0, ""
    # What doctor finds, it finds on the machine that vpmud is told of.
    words = command.replace("vpmuctl doctor", "vpmuctl doctor --host /run/vpmud/host.json")
    done = host.run("env", f"PATH={BIN}:/usr/sbin:/usr/bin:/sbin:/bin", f"LIBVIRT_DEFAULT_URI={host.uri}", "sh", "-c",
                    f"cd /run/shared && {words}")
    return done.returncode, done.stdout + done.stderr


def ten_steps(results):
    with Host(machine(gp=8)) as host:
        (host.folder / "shared" / "win.xml").write_text(domain_xml("win", features=HYPERV))
        found = commands()
        results.check("there are some", len(found) >= 12, str(found))
        for command in found:
            reason = [ELSEWHERE[begin] for begin in ELSEWHERE if command.startswith(begin)]
            if reason:
                results.remark(f"not here: {command} ({reason[0]})")
                continue
            status, said = run(host, command)
            want = [word for begin, word in SAYS.items() if command.startswith(begin)]
            # Warnings are what doctor is for.
            good = status == 0 or (command == "vpmuctl doctor" and status == 1)
            results.check(command, good and all(word in said for word in want), f"{status}: {said}")
        results.equal("the books", host.books(), {"win": ("live", 4)})


CASES = (ten_steps,)
