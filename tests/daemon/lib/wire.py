# SPDX-License-Identifier: BSD-3-Clause
"""A client of vpmud's protocol, written from docs/protocol.md and not from hv/client."""

import collections
import socket
import struct

HEADER = struct.Struct("<IIII")
VERSION, REPLY, ERROR = 1, 4, 8
(HELLO, ACQUIRE, RELEASE, RESIZE, RENEW, RESERVE, UNRESERVE, SUBSCRIBE, NOTICE, REPORT, STATUS,
 PING) = range(1, 13)
VM, PROFILER, HOOK, OBSERVER = range(4)
CPU, VCPU = 0, 1
YIELDS, EXCLUDES_GUESTS = 1, 2
GRANTED, SHORT, YIELDING, REVOKED = range(4)
ALL_STATES = 15
NO_PROCESSOR_SET = 0xFFFFFFFF

DEVICE_BUSY = 0x80000011
UNSUCCESSFUL = 0xC0000001
INVALID_PARAMETER = 0xC000000D
INSUFFICIENT_RESOURCES = 0xC000009A
NOT_SUPPORTED = 0xC00000BB
MALFORMED, UNKNOWN, NOT_NOW, VERSION_RANGE, DENIED, TOO_MANY = range(0xE0560001, 0xE0560007)

(NONE, REDUCED, ABSENT, TAKEN, STARVES, YIELDING_ONLY, GUEST_EVENTS, GUESTS, NO_PROCESSOR, BAD_CLAIM,
 NO_ROOM, BAD_HANDLE) = range(12)

Welcome = collections.namedtuple("Welcome", "version mediated features processors grace_ms instance "
                                            "notice_ms reserved")
Grant = collections.namedtuple("Grant", "lease gp fixed reason text")
Notice = collections.namedtuple("Notice", "lease state reason processor until_ms gp fixed text")
Info = collections.namedtuple("Info", "lease since binding flags state asked granted beside words uuid "
                                      "name text processors")


class Refused(Exception):
    """An error reply."""

    def __init__(self, status, reason, text):
        super().__init__(f"{status:#x}, reason {reason}: {text}")
        self.status, self.reason, self.text = status, reason, text


class Closed(Exception):
    """The daemon has closed the connection."""


def text_of(raw):
    return raw.split(b"\0", 1)[0].decode()


def words_of(processors):
    """A set of processors as 64-bit words; None is every online one."""
    if processors is None:
        return []
    words = [0] * (max(processors, default=0) // 64 + 1)
    for p in processors:
        words[p // 64] |= 1 << p % 64
    return words


def claim(binding, gp, fixed=0, least=None, processors=None, flags=0, beside=(0, 0), policy=0):
    """struct vpmu_wire_claim, and its set."""
    least_gp, least_fixed = (gp, fixed) if least is None else least
    words = words_of(processors)
    head = struct.pack("<BBBBHHHHHHII", binding, flags, policy, 0, gp, fixed, least_gp, least_fixed,
                       *beside, len(words), 0)
    return head, struct.pack(f"<{len(words)}Q", *words)


class Client:
    """One connection. Requests wait for their answers; notices that come meanwhile are kept."""

    def __init__(self, path, kind=None, name="test", uuid=bytes(16), timeout=20):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.kind, self.name, self.uuid = kind, name, uuid
        self.serial = 0
        self.notices = []
        self.welcome = self.hello(kind) if kind is not None else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def raw(self, data):
        self.socket.sendall(data)

    def receive(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise Closed()
            data += more
        return data

    def message(self):
        """The next message: type, flags, serial, body."""
        kind, flags, size, serial = HEADER.unpack(self.receive(16))
        return kind, flags, serial, self.receive(size)

    def send(self, kind, body=b"", serial=None):
        """Sends a request and does not wait; its serial."""
        self.serial += 1
        serial = self.serial if serial is None else serial
        self.raw(HEADER.pack(kind, VERSION, len(body), serial) + body)
        return serial

    def answer(self, serial):
        """Waits for the answer to a request: its body. Raises Refused."""
        while True:
            kind, flags, got, body = self.message()
            if kind == NOTICE and not flags & REPLY:
                self.keep_notice(body)
                continue
            if got != serial:
                raise ValueError(f"an answer to {got}, not to {serial}")
            if flags & ERROR:
                status, reason = struct.unpack_from("<II", body)
                raise Refused(status, reason, text_of(body[8:]))
            return body

    def keep_notice(self, body):
        lease, state, reason, processor, until, gp, fixed = struct.unpack_from("<QIIIIHH", body)
        self.notices.append(Notice(lease, state, reason, processor, until, gp, fixed, text_of(body[32:])))

    def notice(self):
        """The next notice."""
        while not self.notices:
            kind, _, _, body = self.message()
            if kind != NOTICE:
                raise ValueError(f"message {kind} without a request")
            self.keep_notice(body)
        return self.notices.pop(0)

    def ask(self, kind, body=b""):
        return self.answer(self.send(kind, body))

    # --- Requests ---

    def hello(self, kind, versions=(1, 1), name=None, uuid=None):
        name = self.name if name is None else name
        body = struct.pack("<HHIII16s64s", *versions, 0, kind, 0, uuid or self.uuid, name.encode())
        return Welcome(*struct.unpack("<HHIIIQII", self.ask(HELLO, body)))

    @staticmethod
    def grant(body):
        lease, gp, fixed, reason = struct.unpack_from("<QHHI", body)
        return Grant(lease, gp, fixed, reason, text_of(body[16:]))

    def claim(self, gp, **more):
        more.setdefault("binding", CPU if self.kind == PROFILER else VCPU)
        return claim(gp=gp, **more)

    def acquire_start(self, gp, **more):
        return self.send(ACQUIRE, b"".join(self.claim(gp, **more)))

    def acquire(self, gp, **more):
        return self.grant(self.answer(self.acquire_start(gp, **more)))

    def renew_start(self, instance, lease, gp, **more):
        return self.send(RENEW, struct.pack("<QQ", instance, lease) + b"".join(self.claim(gp, **more)))

    def renew(self, instance, lease, gp, **more):
        return self.grant(self.answer(self.renew_start(instance, lease, gp, **more)))

    def release(self, lease):
        self.ask(RELEASE, struct.pack("<Q", lease))

    def resize(self, lease, gp, fixed=0):
        return self.grant(self.ask(RESIZE, struct.pack("<QHHI", lease, gp, fixed, 0)))

    def reserve(self, uuid, name, gp, timeout_s=60, **more):
        body = struct.pack("<16s64sII", uuid, name.encode(), timeout_s, 0) + b"".join(self.claim(gp, **more))
        return self.grant(self.ask(RESERVE, body))

    def unreserve(self, uuid):
        self.ask(UNRESERVE, uuid)

    def subscribe(self, states=ALL_STATES):
        self.ask(SUBSCRIBE, struct.pack("<II", states, 0))

    def report(self, lease, vcpus, states, counters=()):
        body = struct.pack("<QII8I", lease, vcpus, len(counters), *states)
        self.ask(REPORT, body + b"".join(struct.pack("<IIQQQ", *c) for c in counters))

    def status(self, lease=0):
        body = self.ask(STATUS, struct.pack("<Q", lease))
        at = struct.unpack_from("<QQBBBBHHHHHHII16s64s240s", body)
        words = struct.unpack_from(f"<{at[12]}Q", body, 360)
        processors = [64 * w + b for w, word in enumerate(words) for b in range(64) if word >> b & 1]
        return Info(*at[:5], at[6:8], at[8:10], at[10:12], at[12], at[14], text_of(at[15]), text_of(at[16]),
                    processors)

    def ping(self):
        self.ask(PING)
