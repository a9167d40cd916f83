# SPDX-License-Identifier: BSD-3-Clause
"""Migration, snapshots, and streams that are not what they should be."""

import os
import random
import socket
import tempfile
import time

from machine import (
    ON,
    Broken,
    Machine,
    check_guest,
    create_disk,
    hmp_silent,
    make_live,
    migrate_in,
    migrate_out,
    object_of,
    wait_migration,
)

GP8 = f"{ON},pmu-gp=8"
V5 = f"{ON},pmu-version=5,pmu-gp=8,pmu-fixed=4"
INCOMING = ("-S", "-incoming", "defer")
ROUNDS = 20
SNAPSHOT_ROUNDS = 8
LIVE_ROUNDS = 100
MOMENT_S = 0.15
FLIPS = 25
HALT_S = 0.3


class Travel:
    """One guest that goes from process to process."""

    def __init__(self, folder, cpu, append, cpus, options=(), image="worker"):
        self.uri = "file:" + os.path.join(folder, "state")
        self.make = lambda more=(): Machine(
            cpu, append, cpus=cpus, options=(*options, *more), name=image
        )
        self.machine = self.make()
        self.unequal = []

    def move(self):
        """Into a new process, where it stands until it is continued."""
        old = self.machine
        status = migrate_out(old, self.uri)
        if status != "completed":
            raise Broken(f"the migration's end is {status}")
        before = old.registers()
        new = self.make(INCOMING)
        try:
            status = migrate_in(new, self.uri)
            if status != "completed":
                raise Broken(f"the incoming migration's end is {status}")
            after = new.registers()
        except Broken:
            new.__exit__()
            raise
        if before != after:
            self.unequal.append((before, after))
        old.__exit__()
        new.printed = old.printed + new.printed
        self.machine = new

    def go_on(self):
        self.machine.qmp("cont")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.machine.__exit__()


def first_difference(unequal):
    for before, after in unequal:
        for old, new in zip(before, after):
            for c, d in zip(old["counters"], new["counters"]):
                if c != d:
                    return f"vCPU {old['cpu-index']}: {c} became {d}"
    return "not the same vCPUs"


def travel(results, seed, cpu, append, cpus, rounds, options=(), image="worker"):
    moments = random.Random(seed)
    phase = append.split()[0]
    what = f"{append}, {cpus} vCPU"
    with tempfile.TemporaryDirectory() as folder:
        with Travel(folder, cpu, append, cpus, options, image) as guest:
            guest.machine.begin(phase)
            for _round in range(rounds):
                time.sleep(moments.random() * MOMENT_S)
                guest.move()
                guest.go_on()
            results.check(
                f"{what}: in {rounds} moves all counters stay as they are",
                not guest.unequal,
                f"{len(guest.unequal)} moves, {first_difference(guest.unequal)}",
            )
            guest.machine.wait_counting()
            guest.machine.end(phase)
            check_guest(results, what, guest.machine)


def user(results, seed):
    """Moved while ring 3 counts and interrupts every 100,003 instructions."""
    travel(results, seed, GP8, "user", 1, ROUNDS)


def user_smp(results, seed):
    travel(results, seed, V5, "user", 4, 6)


def kernel(results, seed):
    travel(results, seed, ON, "kernel", 2, 6)


def icount(results, seed):
    travel(results, seed, GP8, "user", 1, 4, ("-icount", "0"))


def amd(results, seed):
    """AMD's PMU, with the modes that EFER.SVME has a say in; IRPERF counts, too."""
    for version in (1, 2):
        cpu = f"EPYC-v4,pmu=on,pmu-version={version},pmu-fixed=1"
        travel(results, seed, cpu, "user", 2, 4, image="amd")


def often(results, seed):
    """An interrupt every 97 instructions, so that most moves fall near one."""
    travel(results, seed, GP8, "user period=97", 1, 6)


def hold(results, _):
    """Frozen, its status set and its interrupt waiting: all registers stay, the interrupt comes."""
    for cpu in (GP8, V5, f"{ON},pmu-version=4,pmu-width=40"):
        with tempfile.TemporaryDirectory() as folder:
            with Travel(folder, cpu, "hold", 2) as guest:
                guest.machine.wait_line("READY hold")
                guest.machine.wait_until(
                    "all vCPUs hold",
                    lambda machine=guest.machine: all(
                        any(c["overflowed"] for c in v["counters"]) for v in machine.vpmu()
                    ),
                )
                for _round in range(2):
                    guest.move()
                    guest.go_on()
                why = first_difference(guest.unequal)
                results.check(f"{cpu}: counters", not guest.unequal, why)
                guest.machine.end("hold")
                check_guest(results, cpu, guest.machine)


def between(results, _):
    """It stands between an overflow and its interrupt, which comes where it goes on: at once, and once."""
    panic = ("-device", "pvpanic", "-action", "panic=pause")
    for accel in ((), ("-accel", "tcg,thread=single")):
        with tempfile.TemporaryDirectory() as folder:
            with Travel(folder, ON, "stop", 1, (*panic, *accel)) as guest:
                guest.machine.wait_event(lambda event: event["event"] == "STOP")
                guest.move()
                guest.go_on()
                guest.machine.end("stop")
                check_guest(results, " ".join(accel) or "by default", guest.machine)


def reference_cycles(machine):
    return machine.counter("fixed", 2)["value"]


def wait_halted(machine):
    def stands():
        before = reference_cycles(machine)
        time.sleep(HALT_S)
        return before and before == reference_cycles(machine)

    machine.wait_until("the vCPU halts", stands)


def halted(results, _):
    """Time that passes while the vCPU is halted is not counted after a move either."""
    with tempfile.TemporaryDirectory() as folder:
        with Travel(folder, GP8, "halt", 1) as guest:
            guest.machine.wait_line("READY halt")
            wait_halted(guest.machine)
            before = reference_cycles(guest.machine)
            guest.move()
            results.equal("moved", reference_cycles(guest.machine), before)
            guest.go_on()
            time.sleep(HALT_S)
            results.equal("halted on", reference_cycles(guest.machine), before)
            guest.machine.end("halt")
            check_guest(results, "halt", guest.machine)


def snapshots(results, seed):
    """Back to a snapshot of a running count, from it, from another count, and from none."""
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Machine(V5, "user kernel", cpus=2) as machine:
        create_disk(machine, os.path.join(folder, "disk"))
        machine.begin("user")

        def back(what):
            machine.qmp("stop")
            hmp_silent(machine, "loadvm counting")
            results.equal(f"{what}: counters", machine.registers(), saved)
            machine.qmp("cont")
            time.sleep(moments.random() * MOMENT_S)

        machine.qmp("stop")
        saved = machine.registers()
        hmp_silent(machine, "savevm counting")
        machine.qmp("cont")
        for _round in range(SNAPSHOT_ROUNDS):
            time.sleep(moments.random() * MOMENT_S)
            back("while it counts")
        machine.end("user")
        standing = machine.registers()
        hmp_silent(machine, "savevm standing")
        back("from counters that stand")
        machine.end("user")
        machine.nmi()
        machine.begin("kernel")
        back("from a count in the other ring")
        hmp_silent(machine, "loadvm standing")
        results.equal("counters that stand, again", machine.registers(), standing)
        machine.nmi()
        machine.begin("kernel")
        machine.end("kernel")
        check_guest(results, "at its end", machine)


# What the other side has that this one has not, and what the reason must speak of.
OTHERS = (
    (f"{ON},pmu-gp=4", "pmu-gp"),
    (f"{GP8},pmu-version=3", "pmu-version"),
    (f"{GP8},pmu-fixed=2", "pmu-fixed"),
    (f"{GP8},pmu-width=40", "pmu-width"),
    (f"{GP8},pmu-full-width=off", "full-width"),
    (f"{GP8.replace('pmu=on', 'pmu=off')}", "pmu"),
)


def refuse(results, folder, cpu, about, own=(), its=()):
    """own and its: more options of the source and of the other machine."""
    uri = "unix:" + os.path.join(folder, "socket")
    with Machine(GP8, "user", options=own) as source:
        source.begin("user")
        with Machine(cpu, "user", options=("-incoming", "defer", *its)) as other:
            make_live(source, other)
            other.qmp("migrate-incoming", uri=uri)
            source.qmp("migrate", uri=uri)
            status = wait_migration(source)
            if status != "failed":
                raise Broken(f"the source's migration is {status}")
            try:
                other.wait_event(lambda event: False)
            except Broken:
                pass
            said = other.said()
            results.check(f"to {cpu}: the reason", any(about in line for line in said), f"{said}")
            results.equal(f"to {cpu}: status", other.process.returncode, 1)
        if own:
            stopped = [event for event in source.events if event["event"] == "STOP"]
            results.equal(f"to {cpu} {its}: the source is never stopped", stopped, [])
        source.wait_until(
            "the source runs on", lambda: source.qmp("query-status")["status"] == "running"
        )
        source.end("user")
        check_guest(results, f"to {cpu}: the source", source)


def refused(results, _):
    """A machine with another PMU does not take the guest, says why, and the source runs on."""
    for cpu, about in OTHERS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                refuse(results, folder, cpu, about)
            except Broken as error:
                results.check(f"to {cpu}", False, str(error))


# The source's object, the other machine's, and what its refusal speaks of.
CONTRACTS = (
    ("gp=4", "gp=3", "4 general-purpose"),
    ("gp=5", "gp=6", "another number"),
    ("class=standard", "class=enhanced", "another class"),
    ("", "deny=branches", "other events"),
    ("", "gp=9,policy=hide", "hidden"),
    ("", None, "vpmu-grant"),
)


def contracts(results, _):
    """What an object was granted goes ahead: who cannot go on with it refuses at once."""
    for own, its, about in CONTRACTS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                options = () if its is None else object_of(its)
                refuse(results, folder, GP8, about, object_of(own), options)
            except Broken as error:
                results.check(f"{own} to {its}", False, str(error))


class LiveTravel(Travel):
    """It goes while it runs, over a socket; the new process is there before the old one stops."""

    def move(self):
        old, new = self.machine, self.make(("-incoming", "defer"))
        try:
            make_live(old, new)
            new.qmp("migrate-incoming", uri=self.uri)
            old.qmp("migrate", uri=self.uri)
            for machine in (old, new):
                if (status := wait_migration(machine)) != "completed":
                    raise Broken(f"the migration's end is {status}")
            new.wait_until("it runs", lambda: new.qmp("query-status")["status"] == "running")
        except Broken:
            new.__exit__()
            raise
        old.__exit__()
        new.printed = old.printed + new.printed
        self.machine = new


def hundred(results, seed):
    """A guest under load is moved a hundred times, and counts to the instruction."""
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        options = object_of("gp=8,class=any")
        with LiveTravel(folder, ON, "user", 1, options) as guest:
            guest.uri = "unix:" + os.path.join(folder, "socket")
            guest.machine.begin("user")
            for _round in range(LIVE_ROUNDS):
                time.sleep(moments.random() * MOMENT_S)
                guest.move()
            guest.machine.wait_counting()
            guest.machine.end("user")
            check_guest(results, f"moved {LIVE_ROUNDS} times", guest.machine)


def to_defaults_without(results, _):
    """The same, where the source's PMU is that of the properties' defaults."""
    with tempfile.TemporaryDirectory() as folder:
        saved = save(os.path.join(folder, "saved"), ON)
        status, said = load(saved, f"{ON.replace('pmu=on', 'pmu=off')}")
        results.equal("status", status, 1)
        results.check("the reason", any("pmu" in line for line in said), f"{said}")


def save(path, cpu):
    """A guest's state while it counts in ring 3."""
    with Machine(cpu, "user") as machine:
        machine.begin("user")
        if migrate_out(machine, f"file:{path}") != "completed":
            raise Broken("the state cannot be saved")
    return path


def load(path, cpu):
    """(exit status, what it said): 0 if the machine takes the state and works with it."""
    try:
        with Machine(cpu, "user", options=INCOMING) as machine:
            try:
                migrate_in(machine, f"file:{path}")
                machine.vpmu()
                machine.qmp("cont")
                machine.nmi()
                machine.wait_line("DONE user")
                machine.vpmu()
                machine.finish()
                return 0, machine.said()
            except Broken as error:
                status = machine.process.poll()
                if status is None:
                    raise
                return status, machine.said() or [str(error)]
    except OSError as error:
        raise Broken(f"QEMU died: {error}") from None


SECTION = b"\x05\x08cpu/vpmu"
VERSION_SIZE = 4
# Vendor, version, general-purpose and fixed counters, width, full width.
SHAPE = bytes((0, 2, 8, 3, 48, 1))
# Values and selectors of 8 counters, values of 4, and four registers more, big-endian.
REGISTER_SIZE = 8
REGISTERS = range(VERSION_SIZE + len(SHAPE), VERSION_SIZE + len(SHAPE) + 24 * 8, REGISTER_SIZE)


def hostile_bodies(body, seed):
    """(name, body): registers of all ones, one of the low bits of a register, any bits."""
    choices = random.Random(seed)
    for number, start in enumerate(REGISTERS):
        changed = bytearray(body)
        changed[start : start + REGISTER_SIZE] = b"\xff" * REGISTER_SIZE
        yield f"register {number} all ones", changed
    for flip in range(FLIPS):
        bit = choices.randrange(32)
        changed = bytearray(body)
        changed[choices.choice(REGISTERS) + REGISTER_SIZE - 1 - bit // 8] ^= 1 << bit % 8
        yield f"low bit {flip}", changed
    for flip in range(FLIPS):
        changed = bytearray(body)
        for _bit in range(choices.randint(1, 6)):
            changed[choices.randrange(len(body))] ^= 1 << choices.randrange(8)
        yield f"flip {flip}", changed


def hostile(results, seed):
    """A stream with a bad PMU in it is refused, or taken by a machine that works; never a crash."""
    with tempfile.TemporaryDirectory() as folder:
        path = save(os.path.join(folder, "saved"), GP8)
        with open(path, "rb") as file:
            stream = file.read()
        start = stream.index(SECTION) + len(SECTION)
        end = start + REGISTERS.stop - REGISTERS.start + VERSION_SIZE + len(SHAPE)
        head, body, tail = stream[:start], stream[start:end], stream[end:]
        results.equal("its shape", body[VERSION_SIZE:][: len(SHAPE)], SHAPE)
        results.equal("as it is", load(path, GP8), (0, []))
        taken, refused_with_reason, crashes = 0, 0, []
        for name, bad in hostile_bodies(body, seed):
            with open(path, "wb") as file:
                file.write(head + bad + tail)
            status, said = load(path, GP8)
            if status == 0:
                taken += 1
            elif status == 1 and said:
                refused_with_reason += 1
            else:
                crashes.append(f"{name}: status {status}, {said}: {bad.hex()}")
        results.check("no stream ends QEMU otherwise", not crashes, "; ".join(crashes[:2]))
        results.check("some are taken, some refused", taken and refused_with_reason)
        results.remark(f"{taken} taken, {refused_with_reason} refused")


CASES = (
    user,
    user_smp,
    kernel,
    icount,
    amd,
    often,
    hold,
    between,
    halted,
    snapshots,
    refused,
    contracts,
    hundred,
    to_defaults_without,
    hostile,
)
