# SPDX-License-Identifier: BSD-3-Clause
"""-object vpmu,socket=: QEMU as a client of vpmud. Here under TCG, on a described machine; tests/lab has KVM's."""

import json
import os
import socket
import tempfile
import threading

import wire
from machine import INTEL, Machine, object_of, run_image
from results import Skipped
from vpmud import Vpmud, eventually, machine

UUID = "2f1c9b0e-5d0a-4d7e-9a55-0c3a4f5e6d7c"
GP, FIXED = 8, 3
COUNTS = "e0=0xc0 e1=0xc4 spin"


def start_vpmud():
    if not os.access(os.path.join(os.environ["BUILD"], "bin/vpmud"), os.X_OK):
        raise Skipped("no vpmud: make check-qemu builds it")
    return Vpmud(machine(processors=2, gp=GP, fixed=FIXED))


def guest(daemon, text="", name="vm", append=COUNTS, options=()):
    options = ("-name", f"guest={name}", *object_of(f"socket={daemon.socket},{text}".rstrip(",")), *options)
    return Machine(INTEL, append, options=options, name="grant")


def refusal(path, text=""):
    """(exit status, what it said) of a QEMU that is not to start."""
    status, _, said = run_image("grant", INTEL, options=object_of(f"socket={path},{text}".rstrip(",")))
    return status, said


def granted(results, _):
    """The lease is what the guest has, under its name, until QEMU ends; less of it with policy=reduce."""
    with start_vpmud() as daemon:
        with guest(daemon, "gp=4,fixed=2", options=("-uuid", UUID)) as vm:
            vm.wait_line("READY")
            lease = daemon.leases("live")["vm"]
            results.equal("granted", lease["granted"], {"gp": 4, "fixed": 3})
            results.equal("its UUID", lease["uuid"], UUID)
            results.equal("query-vpmu-grant", vm.qmp("query-vpmu-grant")["lease"], "granted")
        eventually(lambda: not daemon.leases("live"), "the lease outlives QEMU")
        with daemon.profiler("sampler") as other:
            other.acquire(5)
            status, said = refusal(daemon.socket, "gp=4")
            good = status == 1 and len(said) == 1 and "sampler" in said[0]
            results.check("a refusal names the holder", good, f"{status}, {said}")
            with guest(daemon, "gp=4,policy=reduce") as vm:
                grant = vm.qmp("query-vpmu-grant")
                results.equal("policy=reduce", (grant["gp"], grant["fixed"]), (3, FIXED))
                results.equal("the vCPU", len(vm.vpmu()[0]["counters"]), 3 + FIXED)
            with guest(daemon, "gp=4,policy=hide") as vm:
                results.check("policy=hide", "sampler" in vm.qmp("query-vpmu-grant")["hidden"])
                results.equal("and no lease", daemon.leases("live").keys(), {"sampler"})


def reserved(results, _):
    """A reservation under the VM's UUID is claimed by it, and by nobody else."""
    with start_vpmud() as daemon, daemon.client(wire.HOOK, "hook") as hook:
        hook.reserve(bytes.fromhex(UUID.replace("-", "")), "planned", GP)
        number = daemon.leases("reserved")["planned"]["id"]
        with guest(daemon, options=("-uuid", UUID)) as vm:
            vm.wait_line("READY")
            results.equal("the lease's number", daemon.leases("live")["vm"]["id"], number)


def renewed(results, _):
    """vpmud is killed and started again, thrice: the lease is the same, and the guest has run on."""
    with start_vpmud() as daemon, guest(daemon) as vm:
        vm.wait_line("READY")
        number = daemon.leases("live")["vm"]["id"]
        for _round in range(3):
            # What is not written down when vpmud dies is renewed as a new lease.
            eventually(lambda: is_written_down(daemon), "the lease is written down")
            daemon.kill()
            value = vm.counter("gp", 0)["value"]
            daemon.start()
            eventually(lambda: "vm" in daemon.leases("live"), "the lease is not renewed")
            results.equal("its number", daemon.leases("live")["vm"]["id"], number)
            vm.wait_until("it has run on", lambda before=value: vm.counter("gp", 0)["value"] > before)
        results.equal("query-vpmu-grant", vm.qmp("query-vpmu-grant")["lease"], "granted")


def is_written_down(daemon):
    """By this daemon, and as a lease that somebody has, not as one that is held for him."""
    head, *leases = daemon.state.read_text().splitlines()
    return (json.loads(head)["instance"] == daemon.ask("status")["instance"]
            and any('"vm"' in line and '"live"' in line for line in leases))


def yielding(results, _):
    """Revoked for a profiler, restored when it has gone; the counters' states say so, and vpmud is told."""
    with start_vpmud() as daemon, guest(daemon, "yields=on") as vm:
        vm.wait_line("READY")
        with daemon.profiler("sampler") as other:
            other.acquire(GP)
            revoked(results, vm)
            eventually(lambda: reported(daemon).get("revoked"), "vpmud is not told")
        vm.wait_event(lambda event: event["event"] == "VPMU_COUNTER_STATE" and event["data"]["before"] == "revoked")
        results.equal("afterwards", vm.qmp("query-vpmu-grant")["lease"], "granted")
        eventually(lambda: not reported(daemon).get("revoked"), "vpmud is not told of the end")
        results.check("and counts again", reported(daemon)["backed"] > 0)


def revoked(results, vm):
    vm.wait_event(lambda event: event["event"] == "VPMU_COUNTER_STATE" and event["data"]["state"] == "revoked")
    results.equal("the lease", vm.qmp("query-vpmu-grant")["lease"], "revoked")
    results.equal("the counters", {c["state"] for c in vm.vpmu()[0]["counters"]}, {"revoked"})


def reported(daemon):
    """{state: how many counters}, as the VM has reported last."""
    return daemon.leases("live")["vm"].get("report", {}).get("states", {})


def nonsense(results, seed):
    """Whoever listens at the socket and is no vpmud: QEMU ends with the reason."""
    answers = {"it hangs up": b"", "it says nonsense": seed.encode().ljust(4096, b"\xff"), "a header alone": b"\x01" * 16}
    with tempfile.TemporaryDirectory() as folder:
        results.check("nobody there", refusal(os.path.join(folder, "none"))[0] == 1)
        plain = os.path.join(folder, "plain")
        with open(plain, "w", encoding="ascii"):
            results.check("a file", refusal(plain)[0] == 1)
        for name, answer in answers.items():
            path = os.path.join(folder, str(len(name)))
            with listener(path, answer):
                status, said = refusal(path)
            results.check(name, status == 1 and len(said) == 1 and "vpmu: " in said[0], f"{status}, {said}")
    status, said = refusal("/" + "x" * 200)
    results.check("a path that is too long", status == 1 and len(said) == 1, f"{status}, {said}")


class listener:
    """A socket that answers its first connection with some bytes and closes it."""

    def __init__(self, path, answer):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        self.thread = threading.Thread(target=self._answer, args=(answer,))

    def _answer(self, answer):
        connection, _ = self.socket.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.thread.join()
        self.socket.close()


CASES = (granted, reserved, renewed, yielding, nonsense)
