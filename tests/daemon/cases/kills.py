# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of the daemon and of its clients, at every step of the protocol, one after the other.

die_at.c ends the daemon before its n-th call of those by which it is seen from outside: n goes from 1
until a script of requests is lived through. Then a daemon without die_at.c starts, who had a lease
renews it, and the books must be those of the clients.
"""

import collections
import itertools
import json
import os
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import wire
from life import check_fits
from vpmud import PATIENCE_S, Vpmud, eventually, machine, new_uuid

DIE_AT = Path(os.environ["BUILD"]) / "bin" / "die-at.so"
GP, PROCESSORS = 8, 4
AT_ONCE = 4


class Holder:
    """A client, and what it knows to have: its lease, of which daemon, and the claim it would renew."""

    def __init__(self, daemon, kind, name):
        self.daemon, self.kind, self.name, self.uuid = daemon, kind, name, new_uuid()
        self.connection = self.lease = self.instance = self.claim = None

    def connect(self):
        self.connection = self.daemon.client(self.kind, self.name, self.uuid)

    def acquire_start(self, **claim):
        self.asked = claim
        self.serial = self.connection.acquire_start(**claim)

    def granted(self):
        """Waits for the answer to acquire_start()."""
        self.has(self.connection.grant(self.connection.answer(self.serial)), self.asked)

    def has(self, grant, claim):
        self.lease, self.claim, self.instance = grant.lease, claim, self.connection.welcome.instance

    def acquire(self, **claim):
        self.acquire_start(**claim)
        self.granted()

    def resize(self, gp):
        self.connection.resize(self.lease, gp)
        self.claim = self.claim | {"gp": gp}

    def release(self):
        lease, self.lease = self.lease, None
        self.connection.release(lease)

    def close(self):
        self.lease = None
        if self.connection:
            self.connection.close()
            self.connection = None

    def come_back(self):
        """As a client does that has lost its daemon."""
        if not self.connection:
            return
        self.connection.close()
        self.connect()
        if self.lease:
            self.has(self.connection.renew(self.instance, self.lease, **self.claim), self.claim)


class Hook(Holder):
    """Reserves for a VM. promised: the daemon has said so; possible: it may have it in its books."""

    def __init__(self, daemon, vm):
        super().__init__(daemon, wire.HOOK, "hook")
        self.vm, self.promised, self.possible = vm, False, False

    def reserve(self, gp):
        self.possible = True
        self.connection.reserve(self.vm.uuid, self.vm.name, gp, binding=wire.VCPU)
        self.promised = True

    def unreserve(self):
        self.promised = False
        self.connection.unreserve(self.vm.uuid)
        self.possible = False


class Play:
    """The script: who asks for what, in this order. Each request waits for its answer."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.soft = Holder(daemon, wire.VM, "soft")
        self.firm = Holder(daemon, wire.VM, "firm")
        self.reserved = Holder(daemon, wire.VM, "reserved")
        self.perf = Holder(daemon, wire.PROFILER, "perf")
        self.hook = Hook(daemon, self.reserved)
        self.holders = [self.soft, self.firm, self.reserved, self.perf]

    def saved(self):
        """What was granted is on the disk: a change of leases is written soon, not at once."""
        mine = {holder.name for holder in self.holders if holder.lease}

        def is_so():
            leases = map(json.loads, self.daemon.state.read_text().splitlines())
            return mine <= {lease["name"] for lease in leases if lease.get("state") == "live"}

        eventually(lambda: self.daemon.process.poll() is not None or is_so(), "the state file")

    def begin(self):
        self.soft.connect()
        self.soft.acquire(gp=6, flags=wire.YIELDS)
        self.soft.connection.subscribe()
        self.firm.connect()
        self.firm.acquire(gp=2, processors=[1, 2])
        self.hook.connect()
        self.hook.reserve(3)
        self.reserved.connect()
        self.reserved.acquire(gp=3)
        self.saved()

    def run(self):
        self.begin()
        self.perf.connect()
        self.perf.acquire_start(gp=4, processors=[0])
        self.soft.connection.notice()
        self.soft.resize(4)
        self.perf.granted()
        self.saved()
        self.firm.connection.report(self.firm.lease, 1, [0, 2, 0, 0, 0, 0, 0, 0])
        self.firm.release()
        self.firm.acquire(gp=1)
        self.reserved.close()
        self.hook.unreserve()
        self.perf.close()
        self.soft.connection.status()

    def come_back(self):
        """Everybody renews; a VM that has only its reservation asks for it."""
        for holder in self.holders:
            holder.come_back()
        self.soft.connection and self.soft.connection.ping()

    def end(self):
        for holder in (*self.holders, self.hook):
            holder.close()


def start_mortal(daemon, call, half):
    daemon.wrap = ["env", f"LD_PRELOAD={DIE_AT}", f"DIE_AT={call}", f"DIE_HALF={int(half)}"]
    daemon.start()


def last_words(daemon):
    """Ends the daemon, if it has not ended. The call before which it died; None: it lived."""
    code = daemon.end_with(signal.SIGTERM)
    found = re.findall(r"^(?:died at \d+: (\w+)|lived through \d+)$", daemon.read_log(), re.MULTILINE)
    if not found or not found[-1] and code:
        raise RuntimeError(f"it ended by itself, {code}: {daemon.read_log()[-600:]}")
    return found[-1]


def expect(results, what, good, why):
    """One of hundreds: said only if it is not so."""
    if not good:
        results.check(what, False, why)


def check_after(results, daemon, play, what):
    """A new daemon has the leases of those who know of one, and nothing else."""
    play.come_back()
    eventually(lambda: not daemon.ask("status")["grace"], "the grace period ends")
    if play.hook.promised and play.reserved.connection and not play.reserved.lease:
        play.reserved.acquire(gp=3)
    leases = daemon.ask("leases")["leases"]
    got = {lease["id"]: lease["name"] for lease in leases if lease["state"] != "reserved"}
    mine = {holder.lease: holder.name for holder in play.holders if holder.lease}
    expect(results, f"{what}: the books have the clients' leases", got == mine, f"{got}, the clients {mine}")
    kept = sum(lease["state"] == "reserved" for lease in leases)
    waits = play.hook.possible and not play.reserved.lease
    expect(results, f"{what}: reservations", kept == waits or kept == 0 and not play.hook.promised, f"{leases}")
    check_fits(results, leases, GP)
    play.end()
    if kept:
        with daemon.client(wire.HOOK, "hook") as hook:
            hook.unreserve(play.reserved.uuid)
    with daemon.profiler("all") as everything:
        eventually(lambda: len(daemon.ask("leases")["leases"]) == 0, f"{what}: nothing is left")
        expect(results, f"{what}: every counter is free", everything.acquire(GP).gp == GP, "")


def one_death(results, call, half, before, during):
    """A life that ends before a call, and the next one; before which call. None: it was lived through."""
    with Vpmud(machine(processors=PROCESSORS, gp=GP), daemon={"grace_ms": 400, "notice_ms": 60000},
              start=False) as daemon:
        play = Play(daemon)
        if before:
            daemon.start()
            before(play)
            daemon.kill()
        try:
            start_mortal(daemon, call, half)
            during(play)
        except (RuntimeError, wire.Closed, OSError):
            daemon.process.wait(PATIENCE_S)
        died = last_words(daemon)
        daemon.wrap = []
        daemon.start()
        check_after(results, daemon, play, f"call {call}, {died or 'lived through'}")
        return died


def every_death(results, before, during):
    """Deaths before the first call, the second, ... until the script is lived through."""
    deaths, calls = {}, itertools.count(1)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while True:
            some = list(itertools.islice(calls, AT_ONCE))
            died = dict(zip(some, pool.map(lambda n: one_death(results, n, False, before, during), some)))
            deaths |= {n: call for n, call in died.items() if call}
            if not any(died.values()):
                break
        halves = [n for n, call in deaths.items() if call in ("write", "send")]
        list(pool.map(lambda n: one_death(results, n, True, before, during), halves))
    kinds = collections.Counter(deaths.values())
    results.remark(f"{len(deaths)} calls, {len(halves)} of them half done: {dict(kinds)}")
    results.check("every call that writes or sends is among them", {"write", "send", "fsync", "rename"} <= set(kinds), kinds)


def daemon_serves(results):
    """The daemon dies at every step from its start to its end in good order."""
    every_death(results, None, Play.run)


def daemon_comes_back(results):
    """It has died once, and dies again at every step of the renewals."""
    every_death(results, Play.begin, Play.come_back)


def clients(results):
    """A client dies after every byte of what it says, having read every answer, or none."""
    with Vpmud(machine(gp=GP)) as daemon:
        sent = record(daemon)
        eventually(lambda: not daemon.leases(), "the script's own lease")
        script = b"".join(sent)
        for cut in range(len(script) + 1):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(str(daemon.socket))
                client.sendall(script[:cut])
        eventually(lambda: not daemon.leases() and not daemon.ask("status")["connections"], "nothing is left")
        results.check(f"{len(script) + 1} clients that read nothing leave nothing", True)
        cuts = 0
        for n, message in enumerate(sent):
            for cut in range(len(message)):
                with wire.Client(daemon.socket) as client:
                    for whole in sent[:n]:
                        client.raw(whole)
                        client.message()
                    client.raw(message[:cut])
                cuts += 1
        eventually(lambda: not daemon.leases() and not daemon.ask("status")["connections"], "nothing is left")
        results.check(f"{cuts} clients that read every answer leave nothing", True)
        with daemon.profiler() as perf:
            results.equal("every counter is free", perf.acquire(GP).gp, GP)


def record(daemon):
    """What a client says, message by message, that uses every request of a VM's."""
    sent = []
    with wire.Client(daemon.socket) as vm:
        send = vm.raw
        vm.raw = lambda data: (sent.append(data), send(data))
        vm.hello(wire.VM)
        lease = vm.acquire(4, processors=[0, 3]).lease
        vm.subscribe(0)
        vm.resize(lease, 2)
        vm.report(lease, 1, [0, 2, 0, 0, 0, 0, 0, 0], [(0, 1, 0xC0, 5, 5)])
        vm.status()
        vm.ping()
        vm.release(lease)
        vm.renew(1, lease, 3)
    return sent


CASES = [clients, daemon_serves, daemon_comes_back]
