# SPDX-License-Identifier: BSD-3-Clause
"""Live migration between two hosts, each with a libvirtd and a vpmud of its own."""

import os
import subprocess
import tempfile
from pathlib import Path

from host import BIN, Host, Refused
from vpmud import eventually, machine


def migrate(source, destination, name):
    source.virsh("migrate", "--live", "--persistent", "--undefinesource", name, destination.uri,
                 "--migrateuri", "unix:///run/shared/migration.sock")


def migration(results):
    """The lease goes along; a destination without the counters refuses, and the source runs on."""
    with tempfile.TemporaryDirectory(prefix="libvirt-") as shared, \
            Host(machine(gp=8), "a", shared) as source, Host(machine(gp=8), "b", shared) as destination:
        source.define("web")
        source.enable("web", "--counters", "4", "--fixed", "3")
        source.virsh("start", "web")
        ssh = Path(shared) / "ssh"
        ssh.write_text(f"#!/bin/sh\nshift 2\nexec {' '.join(destination.enter)} {BIN}/\"$@\"\n")
        ssh.chmod(0o755)
        run = subprocess.run([BIN / "vpmuctl", "domain", "-c", source.outside_uri(), "migrate-check", "web", "b"],
                             env=os.environ | {"VPMU_SSH": str(ssh)}, capture_output=True, text=True, check=False)
        results.check("migrate-check", run.returncode == 0 and "4 general-purpose" in run.stdout, run.stdout + run.stderr)
        migrate(source, destination, "web")
        eventually(lambda: not source.books(), "the source is empty")
        results.equal("the source's books", source.books(), {})
        results.equal("the destination's books", destination.books(), {"web": ("live", 4)})
        results.equal("it runs there", destination.state("web"), "running")
        source.vpmud.describe(machine(gp=2))
        source.vpmud.stop()
        source.start_vpmud()
        try:
            migrate(destination, source, "web")
            results.check("a host without the counters refuses", False, "it did not")
        except Refused as said:
            results.check("a host without the counters refuses", "4 general-purpose" in str(said), str(said))
        results.equal("it runs on", destination.state("web"), "running")
        results.equal("the books", (source.books(), destination.books()), ({}, {"web": ("live", 4)}))


CASES = (migration,)
