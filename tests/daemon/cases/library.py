# SPDX-License-Identifier: BSD-3-Clause
"""hv/client, through client_probe.c."""

import os
import subprocess
from pathlib import Path

from vpmud import Vpmud, die_with_parent, machine

PROBE = Path(os.environ["BUILD"]) / "bin" / "client-probe"


def client_library(results):
    """A lease, a notice that is obeyed, a daemon that dies, and the lease again."""
    with Vpmud(machine(gp=8), daemon={"notice_ms": 60000}) as daemon:
        probe = subprocess.Popen([str(PROBE), str(daemon.socket)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True, preexec_fn=die_with_parent)

        def says(what):
            results.equal(what, probe.stdout.readline().strip(), what)

        with probe:
            says("acquired gp 6 of 8 processors")
            says("status granted of probe")
            with daemon.profiler() as perf:
                results.equal("a profiler gets what the VM gives back", perf.acquire(6).gp, 6)
                says("notice yielding")
                says("answered RESIZE gp 2")
                says("notice granted")
            daemon.kill()
            says("lost")
            daemon.start()
            says("renewed gp 6")
            results.equal("it is live", daemon.leases()["probe"]["state"], "live")
            probe.stdin.close()
            says("released")
            results.equal("nothing is left", daemon.leases(), {})
        results.equal("it ends well", probe.returncode, 0)


CASES = [client_library]
