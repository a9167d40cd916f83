# SPDX-License-Identifier: BSD-3-Clause
"""The status device from outside. Inside: tests/guest/status.c."""

import os
import random
import signal
import tempfile
import time

from bus import (
    BAR_SIZE,
    INVALID_PARAMETER,
    MSIX,
    OFFSETS,
    PAGE_SIZE,
    PAGES,
    PENDING,
    REGISTERS,
    SUCCESS,
    Bus,
)
from lease import start_vpmud
from machine import INTEL, ON, Broken, create_disk, hmp_silent, migrate_in, migrate_out, object_of, run_image
from vpmud import eventually

DEVICE = ("-device", "vpmu-status")
GUESSES = 4000
ASKED, AT_ONCE, TURN_S = 200, 16, 0.010  # docs/device.md
CONSTANT = ("magic", "version", "vcpus", "source", "event_class", "policy", "shape_gp")
NONE, TCG = 0, 1
GRANTED, ABSENT = 1, 0

# CPU, options, and what the one line must speak of.
REFUSED = (
    (INTEL, DEVICE, "no PMU"),
    (f"{INTEL},pmu=off", DEVICE, "no PMU"),
    (ON, (*DEVICE, *DEVICE), "one vpmu-status"),
)

# Object, and source, class, policy, shape.
TOLD = (
    ("", (TCG, 0, 0, 4, 0x7)),
    ("class=architectural,gp=2", (TCG, 1, 0, 2, 0x7)),
    ("class=enhanced,policy=reduce,gp=20,fixed=1", (TCG, 3, 1, 8, 0x1)),
    ("gp=8,fixed=4,policy=hide", (TCG, 0, 2, 8, 0xF)),
    ("gp=9,policy=hide", (NONE, 0, 2, 0, 0)),
)


def refused(results, _):
    """Without a PMU, or a second time, it ends QEMU with the reason in one line."""
    for cpu, options, about in REFUSED:
        status, _, said = run_image("grant", cpu, options=options)
        good = status == 1 and len(said) == 1 and about in said[0]
        results.check(f"{cpu} {' '.join(options)}", good, f"status {status}, {said}")


def told(results, _):
    """Its registers say what the object was granted; a hidden PMU is none."""
    for text, want in TOLD:
        with tempfile.TemporaryDirectory() as folder:
            with Bus(folder, INTEL, cpus=2, options=object_of(text)) as bus:
                r = bus.place().registers_of_device()
                names = ("source", "event_class", "policy", "shape_gp", "shape_fixed")
                results.equal(text or "no property", tuple(r[name] for name in names), want)
                granted = (r["granted_gp"], r["granted_fixed"])
                results.equal(f"{text}: granted", granted, want[3:])
                counters = want[3] + want[4].bit_count()
                for vcpu in range(2):
                    _, index, apic, _, records = bus.page(vcpu)
                    got = (index, apic, len(records))
                    results.equal(f"{text}: page {vcpu}", got, (vcpu, vcpu, counters))


def set_up(bus):
    """A driver's doings: interrupts on, its vector filled in, two counters given back."""
    bus.place()
    bus.set("interrupt", 1)
    for i, word in enumerate((0xFEE00000, 0, 0x60, 1)):
        bus.write(MSIX + 4 * i, word)
    if bus.resize(2, 1) != SUCCESS:
        raise Broken("it cannot give counters back")
    bus.vpmu()


def state_of(bus):
    vector = [bus.read(MSIX + 4 * i) for i in range(4)]
    pages = [bus.page(vcpu) for vcpu in range(2)]
    facts = [(p[1], p[2], [record[:2] for record in p[4]]) for p in pages]
    return bus.registers_of_device(), vector, facts


def check_later(results, what, bus, sequences):
    """No page has a sequence that any has had before."""
    last = max(sequences)
    now = [bus.page(vcpu)[0] for vcpu in range(2)]
    good = all(s > last and s % 2 == 0 for s in now)
    results.check(f"{what}: the pages' sequences", good, f"{now} after {sequences}")


def moved(results, _):
    """Registers, mailbox and vector go with the guest; the pages are written anew."""
    with tempfile.TemporaryDirectory() as folder:
        uri = "file:" + os.path.join(folder, "state")
        with Bus(folder, ON, cpus=2) as bus:
            set_up(bus)
            before = state_of(bus)
            sequences = [bus.page(vcpu)[0] for vcpu in range(2)]
            results.equal("out", migrate_out(bus, uri), "completed")
        with Bus(folder, ON, cpus=2, options=("-incoming", "defer")) as bus:
            results.equal("in", migrate_in(bus, uri), "completed")
            check_later(results, "moved", bus, sequences)
            bus.vpmu()
            registers, vector, pages = state_of(bus)
            results.equal("vector", vector, before[1])
            results.equal("pages", pages, before[2])
            results.equal(
                "registers",
                {name: registers[name] for name in registers if name != "changes"},
                {name: before[0][name] for name in registers if name != "changes"},
            )
            results.check(
                "changes goes on", registers["changes"] >= before[0]["changes"], f"{registers}"
            )


def snapshots(results, _):
    """Back to a snapshot, from what it was not."""
    with tempfile.TemporaryDirectory() as folder, Bus(folder, ON, cpus=2) as bus:
        create_disk(bus, os.path.join(folder, "disk"))
        set_up(bus)
        before = state_of(bus)
        hmp_silent(bus, "savevm one")
        bus.set("interrupt", 0)
        bus.write(MSIX + 8, 0x70)
        results.equal("another size", bus.resize(4, 7), SUCCESS)
        hmp_silent(bus, "loadvm one")
        bus.vpmu()
        registers, vector, pages = state_of(bus)
        results.equal("vector", vector, before[1])
        results.equal("pages", pages, before[2])
        for name in ("interrupt", "request_gp", "request_fixed", "granted_gp", "granted_fixed"):
            results.equal(name, registers[name], before[0][name])


def reset(results, _):
    """A reset ends what the driver has set up; counters that were given back come again."""
    with tempfile.TemporaryDirectory() as folder, Bus(folder, ON, cpus=2) as bus:
        set_up(bus)
        before = bus.registers_of_device()
        results.equal("given back", (before["granted_gp"], before["granted_fixed"]), (2, 1))
        bus.qmp("system_reset")
        bus.place()
        bus.vpmu()
        after = bus.registers_of_device()
        for name in ("interrupt", "request_gp", "request_fixed", "request", "request_status"):
            results.equal(name, after[name], 0)
        results.equal("granted", (after["granted_gp"], after["granted_fixed"]), (4, 7))
        results.check("changes goes on", after["changes"] > before["changes"], f"{after}")
        results.equal("the vector is masked", bus.read(MSIX + 12) & 1, 1)
        states = [record[1] for record in bus.page(0)[4]]
        results.equal("states", states, [GRANTED] * 7)


def plugged(results, _):
    """A vCPU that comes later has its page from the beginning, and counters when it is there."""
    with tempfile.TemporaryDirectory() as folder, Bus(folder, ON, cpus="1,maxcpus=3") as bus:
        bus.place()
        results.equal("vcpus", bus.registers_of_device()["vcpus"], 3)
        vcpus = bus.qmp("query-hotpluggable-cpus")
        free = [vcpu for vcpu in vcpus if "qom-path" not in vcpu]
        results.equal("before", [len(bus.page(i)[4]) for i in range(3)], [7, 0, 0])
        at = min(free, key=lambda vcpu: sorted(vcpu["props"].items()))
        bus.qmp("device_add", driver=at["type"], id="more", **at["props"])
        bus.vpmu()
        results.equal("after", [len(bus.page(i)[4]) for i in range(3)], [7, 7, 0])
        results.equal("its APIC", bus.page(1)[1:3], (1, 1))


def guess(random_numbers):
    """An access: (write, address, size, value)."""
    base, length = random_numbers.choice(
        ((REGISTERS, 80), (REGISTERS, BAR_SIZE), (PAGES, 2 * PAGE_SIZE), (MSIX, BAR_SIZE))
    )
    size = random_numbers.choice((1, 2, 4, 8))
    value = random_numbers.choice((0, 1, 2, 4, 7, 2**64 - 1, random_numbers.getrandbits(64)))
    address = base + random_numbers.randrange(length - size + 1)
    return random_numbers.random() < 0.7, address, size, value % 2 ** (8 * size)


def fuzz(results, seed):
    """Accesses of all sizes, everywhere: what a driver is told stays true."""
    results.remark(f"seed {seed}")
    random_numbers = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Bus(folder, ON, cpus=2) as bus:
        bus.place()
        before = bus.registers_of_device()
        for _ in range(GUESSES):
            write, address, size, value = guess(random_numbers)
            if write:
                bus.write(address, value, size)
            else:
                bus.read(address, size)
        wait_answer(bus)  # no request hangs
        after = bus.registers_of_device()
        for name in CONSTANT:
            results.equal(name, after[name], before[name])
        results.equal("too many counters", answer_to(bus, 5, 7), INVALID_PARAMETER)
        results.equal("all counters", answer_to(bus, 4, 7), SUCCESS)
        bus.vpmu()
        for vcpu in range(2):
            _, index, apic, _, records = bus.page(vcpu)
            got = (index, apic, [record[:2] for record in records])
            indices = (0, 1, 2, 3, 32, 33, 34)
            results.equal(f"page {vcpu}", got, (vcpu, vcpu, [(i, GRANTED) for i in indices]))


class Silent:
    """vpmud answers nothing in this context."""

    def __init__(self, daemon):
        self.process = daemon.process

    def __enter__(self):
        self.process.send_signal(signal.SIGSTOP)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)


def with_lease(folder, daemon, *more):
    options = (*object_of(f"socket={daemon.socket},gp=4"), *more)
    return Bus(folder, INTEL, cpus=2, options=options)


def granted_to(bus):
    registers = bus.registers_of_device()
    return registers["granted_gp"], registers["granted_fixed"]


def wait_answer(bus):
    """The status of the request, as soon as it has one."""

    def status():
        return bus.registers_of_device()["request_status"]

    bus.wait_until("the request is answered", lambda: status() != PENDING)
    return status()


def answer_to(bus, gp, fixed):
    """What becomes of a request for so many counters."""
    bus.resize(gp, fixed)
    return wait_answer(bus)


def pending(results, _):
    """While vpmud is silent the mailbox is shut; an answer of before a reset changes nothing."""
    with tempfile.TemporaryDirectory() as folder, start_vpmud() as daemon:
        with with_lease(folder, daemon) as bus:
            bus.place()
            with Silent(daemon):
                results.equal("silent", bus.resize(2, 1), PENDING)
                results.equal("asked while it is pending", bus.resize(3, 7), PENDING)
                results.equal("the mailbox", bus.registers_of_device()["request_gp"], 2)
                results.equal("granted meanwhile", granted_to(bus), (4, 7))
            results.equal("the answer", wait_answer(bus), SUCCESS)
            results.equal("granted", granted_to(bus), (2, 1))
            with Silent(daemon):
                results.equal("silent again", bus.resize(1, 0), PENDING)
                bus.qmp("system_reset")
                bus.place()
                results.equal("reset", bus.registers_of_device()["request_status"], 0)
            bus.wait_until("the shape is granted", lambda: granted_to(bus) == (4, 7))
            results.equal("reset, still", bus.registers_of_device()["request_status"], 0)
            with Silent(daemon):
                results.equal("silent for ever", bus.resize(1, 0), PENDING)
                daemon.kill()
            results.check("vpmud is gone", wait_answer(bus) >> 30 == 3, "that is no error")
            daemon.start()
            eventually(lambda: len(daemon.leases("live")) == 1, "the lease is not renewed")
            bus.wait_until("it grants again", lambda: granted_to(bus) == (4, 7))
            results.equal("asked again", answer_to(bus, 3, 1), SUCCESS)


def paced(results, _):
    """However fast a guest asks, the host is asked at its pace; each request is answered."""
    with tempfile.TemporaryDirectory() as folder, Bus(folder, ON) as bus:
        bus.place()
        begin = time.monotonic()
        answers = [answer_to(bus, 1 + n % 2, 0) for n in range(ASKED)]
        turns = (time.monotonic() - begin) / TURN_S
        results.equal("answers", set(answers), {SUCCESS})
        results.check("no more than its turns", ASKED <= AT_ONCE + turns + 1, f"{ASKED} in {turns:.0f} turns")


def pending_moved(results, _):
    """A request that goes with the guest is answered by the other host."""
    with tempfile.TemporaryDirectory() as folder, start_vpmud() as old, start_vpmud() as new:
        uri = "file:" + os.path.join(folder, "state")
        with with_lease(folder, old) as bus:
            bus.place()
            with Silent(old):
                results.equal("silent", bus.resize(2, 1), PENDING)
                results.equal("out", migrate_out(bus, uri), "completed")
        with with_lease(folder, new, "-incoming", "defer") as bus:
            results.equal("in", migrate_in(bus, uri), "completed")
            results.equal("the answer", wait_answer(bus), SUCCESS)
            results.equal("granted", granted_to(bus), (2, 1))


# Access (write, address, size), and what QEMU logs of it.
WRONG = (
    ((True, REGISTERS, 4), "register 0x0 cannot be written"),
    ((True, REGISTERS + OFFSETS["request"], 4), "there is no request 2"),
    ((True, REGISTERS + 0x200, 4), "register 0x200 cannot be written"),
    ((True, REGISTERS + OFFSETS["interrupt"], 2), "access of 2 bytes at 0x30"),
    ((False, REGISTERS, 8), "access of 8 bytes at 0x0"),
    ((False, REGISTERS + 1, 1), "access of 1 bytes at 0x1"),
    ((True, PAGES + PAGE_SIZE + 16, 8), "page 1 cannot be written (offset 0x10)"),
)


def logged(results, _):
    """The host's log says what a guest does wrong, if it is asked to."""
    with tempfile.TemporaryDirectory() as folder, Bus(folder, ON, cpus=2, debug=True) as bus:
        bus.place()
        for (write, address, size), about in WRONG:
            if write:
                bus.write(address, 2, size)
            else:
                results.equal(f"{about}: reads as", bus.read(address, size), 0)
            results.check(about, f"vpmu-status: {about}" in bus.said(), f"{bus.said()[-3:]}")


CASES = (refused, told, moved, snapshots, reset, plugged, fuzz, logged, pending, paced, pending_moved)
