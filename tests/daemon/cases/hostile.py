# SPDX-License-Identifier: BSD-3-Clause
"""Messages that nobody should send: an error or a closed connection, never more."""

import array
import contextlib
import os
import random
import socket
import struct
from pathlib import Path

import wire
from silent import refused
from vpmud import Vpmud, ask_lines, eventually, exchange, machine, new_uuid


def is_closed(client):
    """Whether the daemon has closed a connection, possibly after what it had still to say."""
    try:
        while client.socket.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def out_of_order(results):
    """What may not be said now, or by this client."""
    with Vpmud() as daemon:
        with wire.Client(daemon.socket) as client:
            client.kind = wire.VM
            refused(results, "ACQUIRE before HELLO", lambda: client.acquire(1), wire.NOT_NOW)
            refused(results, "a version of the future", lambda: client.hello(wire.VM, (2, 9)), wire.VERSION_RANGE)
            client.hello(wire.VM, (1, 9))
            refused(results, "HELLO twice", lambda: client.hello(wire.VM), wire.NOT_NOW)
            refused(results, "a message that there is not", lambda: client.ask(77), wire.UNKNOWN)
            refused(results, "a notice from a client", lambda: client.ask(wire.NOTICE, bytes(272)), wire.UNKNOWN)
            refused(results, "RESERVE by a VM", lambda: client.reserve(new_uuid(), "x", 1), wire.DENIED)
            refused(results, "a CPU-wide claim of a VM", lambda: client.acquire(1, binding=wire.CPU), wire.DENIED)
            refused(results, "an observed claim", lambda: client.acquire(1, flags=4), wire.MALFORMED)
            client.ping()
            results.check("the connection is as good as before", True)
        with daemon.client(wire.OBSERVER) as client:
            refused(results, "ACQUIRE by an observer", lambda: client.ask(wire.ACQUIRE, bytes(24)), wire.DENIED)


def malformed(results):
    """Bodies that are not what the header's type says."""
    with Vpmud() as daemon, daemon.vm() as vm:
        for what, kind, body in (
                ("a body that is too short", wire.ACQUIRE, bytes(8)),
                ("a body that is too long", wire.RELEASE, bytes(64)),
                ("a set that is longer than the body", wire.ACQUIRE, wire.claim(1, 1)[0][:16] + struct.pack("<II", 9, 0)),
                ("a set that is longer than there may be", wire.ACQUIRE,
                 wire.claim(1, 1)[0][:16] + struct.pack("<II", 0xFFFFFFFF, 0)),
                ("a reserved field", wire.SUBSCRIBE, struct.pack("<II", 1, 5)),
                ("counters that are not there", wire.REPORT, struct.pack("<QII8I", 1, 1, 48, *[0] * 8)),
        ):
            refused(results, what, lambda k=kind, b=body: vm.ask(k, b), wire.MALFORMED)
        for what, name in (("a name with a newline", "a\nlevel=error event=forged"), ("no name", "")):
            with wire.Client(daemon.socket) as client:
                refused(results, what, lambda c=client, n=name: c.hello(wire.VM, name=n), wire.MALFORMED)
        results.check("no line is forged", "\nlevel=error event=forged" not in daemon.read_log())
        results.equal("the daemon serves", vm.acquire(1).gp, 1)


def no_stream(results):
    """Bytes that are no stream of messages close the connection."""
    with Vpmud() as daemon:
        for what, data in (("an HTTP request", b"GET / HTTP/1.1\r\nHost: vpmud\r\n\r\n"),
                           ("another version", wire.HEADER.pack(1, 2, 0, 1)),
                           ("unknown flags", wire.HEADER.pack(1, 0x101, 0, 1)),
                           ("an oversized body", wire.HEADER.pack(1, 1, 1 << 20, 1)),
                           ("a size that is no multiple of 8", wire.HEADER.pack(1, 1, 5, 1))):
            with wire.Client(daemon.socket) as client:
                client.raw(data)
                results.check(f"{what} is closed", is_closed(client))
        with daemon.vm() as vm:
            results.equal("the daemon serves", vm.acquire(1).gp, 1)


def opened(daemon):
    """What the daemon's descriptors are: paths, "pipe:[7]"."""
    folder = Path(f"/proc/{daemon.process.pid}/fd")
    links = []
    for descriptor in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            links.append(os.readlink(descriptor))
    return links


def descriptors(results):
    """A message with descriptors ends the connection, and the descriptors with it."""
    with Vpmud() as daemon, daemon.vm() as vm:
        vm.acquire(1)
        pipe = os.pipe()
        vm.socket.sendmsg([wire.HEADER.pack(wire.PING, 1, 0, 9)],
                          [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", pipe))])
        results.check("it is closed", is_closed(vm))
        eventually(lambda: not daemon.leases(), "its lease is given back")
        passed = os.readlink(f"/proc/self/fd/{pipe[0]}")
        eventually(lambda: passed not in opened(daemon), "a descriptor is left")
        results.check("no descriptor is left", True)
        for end in pipe:
            os.close(end)


def random_bytes(results, seed="0"):
    """Random messages with sound headers, and sound messages with flipped bits."""
    choose = random.Random(seed)
    results.remark(f"seed {seed}")
    sound = [wire.HEADER.pack(kind, 1, len(body), 7) + body for kind, body in (
        (wire.ACQUIRE, b"".join(wire.claim(1, 4, processors=[0, 5]))),
        (wire.RELEASE, struct.pack("<Q", 1)), (wire.RESIZE, struct.pack("<QHHI", 1, 2, 0, 0)),
        (wire.RENEW, struct.pack("<QQ", 1, 1) + wire.claim(1, 4)[0]), (wire.SUBSCRIBE, struct.pack("<II", 15, 0)),
        (wire.STATUS, bytes(8)), (wire.REPORT, struct.pack("<QII8I", 1, 1, 0, *[1] * 8)))]
    with Vpmud() as daemon:
        for _ in range(300):
            client = daemon.vm()
            try:
                for _ in range(choose.randrange(1, 6)):
                    data = bytearray(choose.choice(sound))
                    for _ in range(choose.randrange(4)):
                        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
                    client.raw(bytes(data))
            except (BrokenPipeError, ConnectionResetError):
                pass
            client.close()
        eventually(lambda: not daemon.leases("live"), "all is given back")
        with daemon.vm() as vm:
            results.equal("300 connections later the daemon serves", vm.acquire(8).gp, 8)


def slow_reader(results):
    """Who does not read what it is sent is closed, not remembered for."""
    with Vpmud(daemon={"queue_bytes": 8192}) as daemon, daemon.client(wire.OBSERVER, "sleeper") as sleeper:
        sleeper.socket.settimeout(0.2)
        try:
            while True:
                sleeper.send(wire.PING)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass
        eventually(lambda: "does not read" in daemon.read_log(), "it is closed")
        results.check("it is closed", True)
        results.equal("and counted", daemon.scrape()["vpmud_broken_connections_total"], 1)


def limits(results):
    """As many connections and pending requests as the configuration says."""
    with Vpmud(machine(gp=8), daemon={"connections": 3, "pending": 2, "notice_ms": 60000}) as daemon:
        clients = [daemon.profiler(f"perf{i}") for i in range(3)]
        refused(results, "one connection more", daemon.vm, wire.TOO_MANY, "3")
        clients[2].close()
        eventually(lambda: daemon.ask("status")["connections"] < 3, "room again")
        with daemon.vm() as vm:
            vm.acquire(8, flags=wire.YIELDS)
            for _ in range(2):
                clients[0].acquire_start(4)
            refused(results, "one pending request more", lambda: clients[1].acquire(4), wire.TOO_MANY)


def control(results):
    """Lines to the control socket that are no questions."""
    with Vpmud() as daemon:
        for what, line in (("no JSON", "hello"), ("no object", "[1]"), ("no operation", "{}"),
                           ("an unknown operation", '{"op": "shutdown"}'), ("an operation that is a number", '{"op": 5}'),
                           ("deep nesting", "[" * 20000), ("a NUL", '{"op": "status"}\0')):
            results.equal(f"{what} is refused", ask_lines(daemon.control, line).get("ok"), False)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(20)
            client.connect(str(daemon.control))
            try:
                client.sendall(b"x" * 70000)
                closed = not client.recv(1)
            except (ConnectionResetError, BrokenPipeError):
                closed = True
            results.check("a line without end is closed", closed)
        results.check("the metrics' socket answers what is no HTTP",
                      exchange(daemon.metrics, b"\n").endswith("# EOF\n"))
        results.equal("it serves", daemon.ask("status")["ok"], True)


CASES = [out_of_order, malformed, no_stream, descriptors, random_bytes, slow_reader, limits, control]
