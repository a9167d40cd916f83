# SPDX-License-Identifier: BSD-3-Clause
"""From reservation to release: connections, yielding, restarts."""

import random
import time

import wire
from silent import refused
from vpmud import Vpmud, eventually, machine, new_uuid


def reservation(results):
    """A hook reserves, the VM with that uuid claims."""
    uuid = new_uuid()
    with Vpmud(machine(gp=8)) as daemon, daemon.profiler() as perf:
        with daemon.client(wire.HOOK, "hook") as hook:
            lease = hook.reserve(uuid, "web1", 8, binding=wire.VCPU).lease
        results.equal("it survives the hook", daemon.leases()["web1"]["state"], "reserved")
        refused(results, "its room is kept", lambda: perf.acquire(1), wire.INSUFFICIENT_RESOURCES, "web1")
        with daemon.vm("web1", uuid) as vm:
            results.equal("the VM gets it", vm.acquire(8).lease, lease)
            results.equal("now it is live", daemon.leases()["web1"]["state"], "live")
        eventually(lambda: not daemon.leases(), "the VM's end gives it back")
        with daemon.client(wire.HOOK, "hook") as hook:
            hook.reserve(uuid, "web1", 4, binding=wire.VCPU)
            hook.reserve(uuid, "web1", 6, binding=wire.VCPU)
            results.equal("a second one replaces the first", daemon.leases()["web1"]["granted"]["gp"], 6)
            refused(results, "and stays if it cannot", lambda: hook.reserve(uuid, "web1", 9, binding=wire.VCPU),
                    wire.INSUFFICIENT_RESOURCES)
            results.equal("as it was", daemon.leases()["web1"]["granted"]["gp"], 6)
            hook.unreserve(uuid)
            results.equal("unreserve frees it", daemon.leases(), {})
            hook.unreserve(uuid)
            hook.reserve(uuid, "web1", 6, timeout_s=1, binding=wire.VCPU)
            eventually(lambda: not daemon.leases(), "a reservation that nobody claims expires")
        results.equal("which is counted", daemon.scrape()["vpmud_expirations_total"], 1)


def reservation_is_durable(results):
    """It is on the disk before it is granted; without a disk it is refused, a VM's lease is not."""
    uuid = new_uuid()
    with Vpmud() as daemon:
        with daemon.client(wire.HOOK, "hook") as hook:
            hook.reserve(uuid, "web1", 4, binding=wire.VCPU)
        daemon.kill()
        daemon.start()
        results.equal("it survives a kill", daemon.leases()["web1"]["state"], "reserved")
        with daemon.vm("web1", uuid) as vm:
            results.equal("its VM need not wait for the grace period", vm.acquire(4).gp, 4)
    with Vpmud(daemon={"state": "/dev/full/state"}) as daemon, daemon.vm() as vm:
        results.equal("a lease needs no disk", vm.acquire(2).gp, 2)
        with daemon.client(wire.HOOK, "hook") as hook:
            refused(results, "a reservation that cannot be written",
                    lambda: hook.reserve(uuid, "web1", 4, binding=wire.VCPU), wire.UNSUCCESSFUL, "state")
        eventually(lambda: daemon.scrape()["vpmud_state_errors_total"] >= 2, "errors are counted")
        results.equal("and leaves nothing behind", set(daemon.leases()), {"vm"})


def yielding(results):
    """A VM that yields has notice, gives back, or is revoked; it gets back what it had."""
    with Vpmud(machine(gp=8), daemon={"notice_ms": 1500}) as daemon:
        with daemon.vm("good") as good, daemon.vm("deaf") as deaf, daemon.profiler("perf") as perf:
            for vm in (good, deaf):
                vm.acquire(6, flags=wire.YIELDS)
                vm.subscribe()
            serial = perf.acquire_start(4)
            notice = good.notice()
            results.equal("a VM that yields is told", notice.state, wire.YIELDING)
            results.check("how long, and for whom", 0 < notice.until_ms <= 1500 and "perf" in notice.text, notice)
            results.equal("both are", deaf.notice().state, wire.YIELDING)
            good.resize(good.status().lease, 4)
            results.equal("who has given back is granted as before", good.notice().state, wire.GRANTED)
            grant = perf.grant(perf.answer(serial))
            results.equal("the profiler is granted", grant.gp, 4)
            notice = deaf.notice()
            results.equal("who has not is revoked", (notice.state, notice.gp), (wire.REVOKED, 0))
            results.equal("and knows it", deaf.status().state, wire.REVOKED)
            perf.release(grant.lease)
            notice = deaf.notice()
            results.equal("and has it again", (notice.state, notice.gp), (wire.GRANTED, 6))
        eventually(lambda: not daemon.leases(), "all is given back")
        with daemon.vm("good") as good, daemon.profiler("perf") as perf:
            good.acquire(6, flags=wire.YIELDS)
            good.subscribe()
            perf.acquire_start(4)
            good.notice()
            perf.close()
            results.equal("a profiler that goes away needs nothing", good.notice().state, wire.GRANTED)
            results.equal("nothing is pending", daemon.ask("status")["pending"], 0)


def early_yield(results):
    """When all have given back the profiler does not wait for the notice's end."""
    with Vpmud(machine(gp=8), daemon={"notice_ms": 600000}) as daemon:
        with daemon.vm() as vm, daemon.profiler() as perf:
            lease = vm.acquire(8, flags=wire.YIELDS).lease
            vm.subscribe()
            serial = perf.acquire_start(2)
            vm.notice()
            vm.release(lease)
            results.equal("granted at once", perf.grant(perf.answer(serial)).gp, 2)


def revoke(results):
    """An operator takes a lease away; it stays known, with nothing, and does not come back."""
    with Vpmud() as daemon, daemon.vm("web1") as vm, daemon.client(wire.OBSERVER, "watcher") as watcher:
        lease = vm.acquire(4).lease
        vm.subscribe()
        watcher.subscribe()
        results.equal("revoke", daemon.ask("revoke", lease=lease), {"ok": True})
        results.equal("the VM is told", vm.notice().state, wire.REVOKED)
        results.equal("so is an observer", watcher.notice().lease, lease)
        results.check("explain says who", "operator" in daemon.ask("explain", vm="web1")["lease"]["why"])
        refused(results, "a revoked lease does not grow", lambda: vm.resize(lease, 1), wire.INVALID_PARAMETER)
        vm.release(lease)
        results.equal("a new one is granted", vm.acquire(4).gp, 4)
        results.equal("no such lease", daemon.ask("revoke", lease=99)["ok"], False)


def closed_connections(results):
    """A client's end gives back what it had, whatever it was doing."""
    with Vpmud(machine(gp=8)) as daemon:
        vms = [daemon.vm(f"vm{i}") for i in range(20)]
        for vm in vms:
            vm.acquire(8)
        with daemon.profiler() as perf:
            refused(results, "no room while they live", lambda: perf.acquire(1), wire.INSUFFICIENT_RESOURCES)
            for vm in vms:
                vm.close()
            eventually(lambda: not daemon.leases("live"), "closed connections give back")
            results.equal("room when they have gone", perf.acquire(8).gp, 8)


def hotplug(results):
    """Processors go and come back: those that are not there do not matter, leases for all are for these."""
    def host(*ranges):
        return machine(gp=8, processors=4) | {
            "processors": [{"range": text, "online": online} for text, online in ranges]}

    all_of_them, three = host(("0-3", True)), host(("0-2", True), ("3", False))

    def become(machine_of):
        daemon.describe(machine_of)
        daemon.reload()

    with Vpmud(all_of_them) as daemon, daemon.vm("web1") as vm, daemon.profiler("perf") as perf:
        everywhere = vm.acquire(6)
        refused(results, "a profiler beside the VM", lambda: perf.acquire(3, processors=[2, 3]), wire.INSUFFICIENT_RESOURCES,
                "web1")
        become(three)
        results.equal("the VM has what is online", vm.status(everywhere.lease).processors, [0, 1, 2])
        refused(results, "processors that all are offline", lambda: perf.acquire(1, processors=[3]),
                wire.INVALID_PARAMETER)
        lease = perf.acquire(2, processors=[2, 3]).lease
        vm.release(everywhere.lease)
        large = vm.acquire(8, processors=[0, 3])
        vm.subscribe()
        become(all_of_them)
        notice = vm.notice()
        results.equal("who no longer fits on a processor that is back is short", (notice.state, notice.processor),
                      (wire.SHORT, 3))
        results.check("because of whom", "perf" in notice.text, notice.text)
        perf.release(lease)
        become(host(("0-2", True)))
        results.equal("a processor that is not described any more", vm.notice().state, wire.GRANTED)
        results.equal("the VM keeps its lease", vm.status(large.lease).granted, (8, 0))


def restart(results):
    """In good order: leases are held, renewed under their numbers, and nothing new comes between."""
    with Vpmud(machine(gp=8), daemon={"grace_ms": 3000}) as daemon:
        vms = {f"vm{i}": daemon.vm(f"vm{i}", new_uuid()) for i in range(3)}
        leases = {name: vm.acquire(6).lease for name, vm in vms.items()}
        instance = vms["vm0"].welcome.instance
        results.equal("it ends in good order", daemon.stop(), 0)
        daemon.start()
        results.equal("all are held", set(daemon.leases("held")), set(vms))
        with daemon.profiler("eager") as eager:
            serial = eager.acquire_start(3)
            for name in list(vms):
                again = daemon.vm(name, vms[name].uuid)
                results.check("another instance", again.welcome.instance != instance)
                results.equal(f"{name} renews", again.renew(instance, leases[name], 6).lease, leases[name])
                vms[name] = again
            begin = time.monotonic()
            refused(results, "the new one is decided after the last renewal, and refused", lambda:
                    eager.answer(serial), wire.INSUFFICIENT_RESOURCES, "vm")
            results.check("without waiting for the grace period", time.monotonic() - begin < 2.9)
            results.equal("what is left is granted", eager.acquire(2).gp, 2)
        for vm in vms.values():
            vm.close()


def not_renewed(results):
    """Who does not come back loses the lease when the grace period is over, not before."""
    with Vpmud(machine(gp=8), daemon={"grace_ms": 1500}) as daemon:
        with daemon.vm("gone") as vm:
            lease, instance = vm.acquire(8).lease, vm.welcome.instance
            eventually(lambda: '"gone"' in daemon.state.read_text(), "the lease is written down")
            daemon.kill()
            daemon.start()
            results.equal("it is held", set(daemon.leases("held")), {"gone"})
        with daemon.profiler("thief") as thief:
            serial = thief.renew_start(instance, lease, 8)
            grant = thief.grant(thief.answer(serial))
            results.check("another client's lease is not renewed", grant.lease != lease, grant)
            results.equal("it waited for the holder", daemon.leases("held"), {})
        results.check("the log says whose it was", "event=not-renewed" in daemon.read_log())
        with daemon.vm("late") as late:
            results.equal("a lease that nobody knows is asked for anew", late.renew(instance, lease, 4).gp, 4)


def killed_daemon(results, seed="0"):
    """kill -9 at random moments: after each restart every lease is accounted for, none is granted twice."""
    choose = random.Random(seed)
    results.remark(f"seed {seed}")
    gp = 8
    with Vpmud(machine(processors=4, gp=gp), daemon={"grace_ms": 700, "notice_ms": 50}) as daemon:
        clients = [Survivor(daemon, i, choose) for i in range(8)]
        for _ in range(12):
            for _ in range(choose.randrange(1, 12)):
                choose.choice(clients).step()
            for client in choose.sample(clients, 3):
                client.begin()
            daemon.kill()
            daemon.start()
            for client in choose.sample(clients, len(clients)):
                client.reconnect()
            eventually(lambda: not daemon.ask("status")["grace"], "the grace period ends")
            check_books(results, daemon, clients, gp)
        for client in clients:
            client.close()
        eventually(lambda: not daemon.leases(), "all is given back")
        results.check("12 kills, and in the end nothing is left", True)


class Survivor:
    """A client that takes and gives back, and renews what it had after a restart of the daemon."""

    def __init__(self, daemon, number, choose):
        self.daemon, self.choose = daemon, choose
        self.kind = wire.VM if number % 2 else wire.PROFILER
        self.name, self.uuid = f"client{number}", new_uuid()
        self.connection, self.lease, self.claim = None, None, None
        self.connect()

    def connect(self):
        self.connection = self.daemon.client(self.kind, self.name, self.uuid)
        self.instance = self.connection.welcome.instance

    def close(self):
        self.connection.close()

    def new_claim(self):
        return {"gp": self.choose.randrange(1, 5),
                "processors": self.choose.sample(range(4), self.choose.randrange(1, 5))}

    def step(self):
        """One request, with its answer."""
        if self.lease:
            self.connection.release(self.lease)
            self.lease = None
            return
        claim = self.new_claim()
        try:
            self.lease, self.claim = self.connection.acquire(**claim).lease, claim
        except wire.Refused:
            self.lease = None

    def begin(self):
        """A request whose answer is never read."""
        if self.lease:
            self.connection.send(wire.RELEASE, wire.struct.pack("<Q", self.lease))
            self.lease = None
        else:
            self.connection.acquire_start(**self.new_claim())

    def reconnect(self):
        instance = self.instance
        self.close()
        self.connect()
        if self.lease:
            self.lease = self.connection.renew(instance, self.lease, **self.claim).lease


def check_books(results, daemon, clients, gp):
    """The daemon's leases are the clients', and fit."""
    leases = {lease["id"]: lease for lease in daemon.ask("leases")["leases"]}
    mine = {client.lease: client.name for client in clients if client.lease}
    got = {number: lease["name"] for number, lease in leases.items()}
    if got != mine:
        results.check("the books have the clients' leases", False, f"{got}, the clients {mine}")
    check_fits(results, leases.values(), gp)


def check_fits(results, leases, gp):
    """On no processor is a counter granted twice."""
    for p in range(4):
        here = [lease for lease in leases if p in processors_of(lease["processors"])]
        cpu = sum(lease["granted"]["gp"] for lease in here if lease["binding"] == "cpu")
        vcpu = max((lease["granted"]["gp"] for lease in here if lease["binding"] == "vcpu"), default=0)
        if cpu + vcpu > gp:
            results.check("no counter is granted twice", False, f"processor {p}: {here}")


def processors_of(text):
    """A list as the kernel writes it."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def bad_state(results):
    """A state file that is none is put aside, and said."""
    for what, text in (("garbage", b"\0\xffgarbage"), ("cut off", b'{"vpmud":1,"instance":5,"clean":true,"next":2}\n'),
                       ("of another version", b'{"vpmud":9,"instance":5,"next":2}\n{"leases":0}\n')):
        with Vpmud(start=False, daemon={"grace_ms": 300}) as daemon:
            daemon.state.write_bytes(text)
            daemon.start()
            results.check(f"{what}: said", "event=state-not-read" in daemon.read_log(), daemon.read_log())
            results.equal(f"{what}: kept aside", daemon.state.with_name("state.bad").read_bytes(), text)
            with daemon.vm() as vm:
                results.equal(f"{what}: it serves", vm.acquire(2).gp, 2)


CASES = [reservation, reservation_is_durable, yielding, early_yield, revoke, closed_connections, hotplug, restart,
         not_renewed, killed_daemon, bad_state]
