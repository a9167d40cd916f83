# SPDX-License-Identifier: BSD-3-Clause
"""vpmuctl's questions to a real vpmud."""

import subprocess

from vpmud import BINARY, PATIENCE_S, Vpmud


def vpmuctl(daemon, command, *words):
    return subprocess.run([BINARY.parent / "vpmuctl", command, "--control", daemon.control, *words],
                          capture_output=True, text=True, timeout=PATIENCE_S)


def leases(results):
    """leases says who holds what; revoke takes it; what cannot be has a status of its own."""
    with Vpmud() as daemon, daemon.vm("vm é") as vm:
        vm.acquire(4)
        run = vpmuctl(daemon, "leases")
        row = run.stdout.splitlines()[1].split()
        results.equal("the row", row[1:4], ["granted", "vm", "4"])
        results.check("80 columns", "vm é" in run.stdout and max(map(len, run.stdout.splitlines())) <= 80)
        results.equal("revoke", vpmuctl(daemon, "revoke", row[0]).returncode, 0)
        results.equal("it is revoked", [v["revoked"] for v in daemon.leases().values()], [True])
        run = vpmuctl(daemon, "revoke", "none")
        results.check("no such lease", run.returncode == 1 and run.stderr.count("\n") == 1, run.stderr)
        results.equal("no word", vpmuctl(daemon, "revoke").returncode, 64)
    run = vpmuctl(daemon, "leases")
    results.check("no daemon", run.returncode == 69 and "vpmud running" in run.stderr, run.stderr)


CASES = (leases,)
