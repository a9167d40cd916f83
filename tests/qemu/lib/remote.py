# SPDX-License-Identifier: BSD-3-Clause
"""GDB's remote serial protocol, the few packets that tests need."""

from machine import PATIENCE_S, Broken

SIGTRAP = 5
BREAK_SOFTWARE, BREAK_HARDWARE, WATCH_WRITE, WATCH_READ, WATCH_ACCESS = range(5)

# The order of the g packet: 16 general registers, then RIP.
ORDER = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp")
RIP = 16


class Remote:
    """A debugger on the socket of a gdbstub, with the machine stopped."""

    def __init__(self, sock):
        sock.settimeout(PATIENCE_S)
        self.sock = sock
        self.buffer = b""

    def _byte(self):
        if not self.buffer:
            self.buffer = self.sock.recv(65536)
            if not self.buffer:
                raise Broken("the gdbstub hung up")
        byte, self.buffer = self.buffer[:1], self.buffer[1:]
        return byte

    def _receive(self):
        while self._byte() != b"$":
            pass
        body = b""
        while (byte := self._byte()) != b"#":
            body += byte
        self._byte(), self._byte()
        self.sock.sendall(b"+")
        return body.decode("latin-1")

    def _send(self, body):
        data = body.encode("latin-1")
        self.sock.sendall(b"$" + data + b"#%02x" % (sum(data) % 256))

    def ask(self, body):
        self._send(body)
        return self._receive()

    def _do(self, body):
        answer = self.ask(body)
        if answer != "OK":
            raise Broken(f"gdbstub: {body}: {answer or 'unsupported'}")

    def registers(self):
        """General registers and rip."""
        data = bytes.fromhex(self.ask("g")[: 2 * 8 * (RIP + 1)])
        words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
        return {**dict(zip(ORDER, words)), "rip": words[RIP]}

    def read(self, address, size):
        return bytes.fromhex(self.ask(f"m{address:x},{size:x}"))

    def write(self, address, data):
        self._do(f"M{address:x},{len(data):x}:{data.hex()}")

    def insert(self, kind, address, size=1):
        self._do(f"Z{kind},{address:x},{size}")

    def remove(self, kind, address, size=1):
        self._do(f"z{kind},{address:x},{size}")

    def step(self):
        self._stopped(self.ask("s"))

    def go(self):
        """Continues until the machine stops."""
        self._stopped(self.ask("c"))

    def go_from_breakpoint(self):
        """Continues until the next stop; the gdbstub would stop at the same breakpoint again."""
        self.step()
        self.go()

    def go_on(self):
        """Continues without waiting."""
        self._send("c")

    def interrupt(self):
        self.sock.sendall(b"\x03")
        self._receive()

    def detach(self):
        self._do("D")

    @staticmethod
    def _stopped(answer):
        if answer[:1] not in ("S", "T") or int(answer[1:3], 16) != SIGTRAP:
            raise Broken(f"gdbstub: stopped with {answer}")
