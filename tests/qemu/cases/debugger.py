# SPDX-License-Identifier: BSD-3-Clause
"""Counts while a debugger steps, stops and writes."""

import functools
import random
import time

from machine import ON, Broken, Machine, check_guest, symbols
from remote import BREAK_HARDWARE, BREAK_SOFTWARE, WATCH_WRITE, Remote

GP8 = f"{ON},pmu-gp=8"
WORK_INSNS = 9
STEPS = 20 * WORK_INSNS
HITS = 100
INTERRUPTS = 30
MOMENT_S = 0.05

# What a round of the worker's loop adds to each counter that counts: (kind, index): events.
ROUND = {
    ("fixed", 0): WORK_INSNS,
    ("fixed", 1): WORK_INSNS,
    ("gp", 0): 4,
    ("gp", 1): 2,
    ("gp", 4): 1,
    ("gp", 5): 1,
}


@functools.cache
def symbol(name):
    return symbols("worker")[name]


@functools.cache
def places():
    """The addresses of a round's instructions."""
    return [symbol("work_loop")] + [symbol(f"work_{i}") for i in range(1, WORK_INSNS)]


def counts(machine):
    return {place: machine.counter(*place)["value"] for place in ROUND}


def retired(registers):
    """Instructions of the worker's loop that have retired (see retired_at() in worker.c)."""
    place = places().index(registers["rip"])
    return WORK_INSNS * (registers["rax"] - (place > 0)) + place


def grown(machine, before):
    return {place: value - before[place] for place, value in counts(machine).items()}


def times(rounds):
    return {place: rounds * events for place, events in ROUND.items()}


def at_work(machine):
    """A debugger with the worker stopped at the beginning of a round."""
    remote = Remote(machine.debugger)
    remote.insert(BREAK_HARDWARE, symbol("work_loop"))
    remote.go()
    remote.go_from_breakpoint()
    remote.remove(BREAK_HARDWARE, symbol("work_loop"))
    return remote


def leave(results, what, machine, remote, phase):
    """Lets the guest go on without the debugger: all that it counted is right."""
    remote.detach()
    machine.begin(phase)
    machine.end(phase)
    check_guest(results, what, machine)


def step(results, phase):
    with Machine(GP8, f"{phase} period=0", debugger=True) as machine:
        remote = at_work(machine)
        before, first = counts(machine), retired(remote.registers())
        wrong = 0
        for taken in range(1, STEPS + 1):
            remote.step()
            now = retired(remote.registers()) - first
            counted = machine.counter("fixed", 0)["value"] - before["fixed", 0]
            wrong += now != taken or counted != taken
        results.equal(f"{phase}: steps that were not one count", wrong, 0)
        results.equal(f"{phase}: counts", grown(machine, before), times(STEPS // WORK_INSNS))
        leave(results, phase, machine, remote, phase)


def steps(results, _):
    """Each step is one instruction, for the counters too, in both rings."""
    for phase in ("user", "kernel"):
        step(results, phase)


def steps_with_interrupts(results, _):
    """Steps that take interrupts: the counter's own come at the instruction nevertheless."""
    with Machine(GP8, "user period=97", debugger=True) as machine:
        remote = at_work(machine)
        if remote.ask("Qqemu.sstep=1") != "OK":
            raise Broken("gdbstub: no Qqemu.sstep")
        outside = 0
        for _step in range(2000):
            remote.step()
            outside += remote.registers()["rip"] not in places()
        results.check("some led into the handler", 0 < outside < 2000, f"{outside} of 2000")
        leave(results, "at its end", machine, remote, "user")


def stops(results, _):
    """Breakpoints of both kinds and a watchpoint do not disturb counts."""
    for name, kind, address, size, place in (
        ("software breakpoint", BREAK_SOFTWARE, places()[3], 1, places()[3]),
        ("hardware breakpoint", BREAK_HARDWARE, places()[5], 1, places()[5]),
        ("at a call's target", BREAK_SOFTWARE, places()[0], 1, places()[0]),
        ("watchpoint", WATCH_WRITE, symbol("cpus") + 16, 8, places()[2]),
    ):
        with Machine(GP8, "user period=0", debugger=True) as machine:
            remote = at_work(machine)
            remote.insert(kind, address, size)
            remote.go()
            before, first, elsewhere, wrong = counts(machine), retired(remote.registers()), 0, 0
            for hit in range(1, HITS + 1):
                remote.go_from_breakpoint()
                registers = remote.registers()
                elsewhere += registers["rip"] != place
                wrong += retired(registers) - first != hit * WORK_INSNS
            results.equal(f"{name}: stops elsewhere", elsewhere, 0)
            results.equal(f"{name}: rounds that were not one", wrong, 0)
            results.equal(f"{name}: counts", grown(machine, before), times(HITS))
            remote.remove(kind, address, size)
            leave(results, name, machine, remote, "user")


def writes(results, _):
    """Writes over the code that counts, as a debugger's own breakpoints make them."""
    with Machine(GP8, "user period=1009", debugger=True) as machine:
        remote = at_work(machine)
        before, first = counts(machine), retired(remote.registers())
        size = symbol("nmi_entry") - symbol("work")
        code = remote.read(symbol("work"), size)
        remote.insert(BREAK_HARDWARE, places()[4])
        for _round in range(HITS):
            remote.write(places()[4], b"\xcc")
            remote.write(symbol("work"), code)
            remote.go_from_breakpoint()
        now = retired(remote.registers()) - first
        results.check("rounds", now > WORK_INSNS * (HITS - 1), f"{now} instructions")
        results.equal("instructions", grown(machine, before)["fixed", 0], now)
        results.equal("code", remote.read(symbol("work"), size), code)
        remote.remove(BREAK_HARDWARE, places()[4])
        leave(results, "at its end", machine, remote, "user")


def halts(results, seed):
    """Stopped at random moments, on two vCPUs, while they count and interrupt."""
    moments = random.Random(seed)
    with Machine(GP8, "user period=1009", cpus=2, debugger=True) as machine:
        remote = at_work(machine)
        for _round in range(INTERRUPTS):
            remote.go_on()
            time.sleep(moments.random() * MOMENT_S)
            remote.interrupt()
            standing = machine.registers()
            if standing != machine.registers():
                results.check("a stopped machine does not count", False)
        leave(results, "at its end", machine, remote, "user")


CASES = (steps, steps_with_interrupts, stops, writes, halts)
