# SPDX-License-Identifier: BSD-3-Clause
"""A machine whose bus is worked from outside (QEMU's qtest protocol), and its status device."""

import os
import socket
import struct

from machine import PATIENCE_S, Broken, Machine

# What firmware would do: a slot, and where its BARs go, in the hole below 4 GiB.
SLOT = 0x10
REGISTERS, PAGES, MSIX = 0xE0000000, 0xE1000000, 0xE2000000
BARS = {0: REGISTERS, 2: PAGES, 4: MSIX}
BAR_SIZE = 0x1000
PAGE_SIZE = 4096

PORT_ADDRESS, PORT_DATA = 0xCF8, 0xCFC
ADDRESS_ENABLE = 1 << 31
COMMAND, COMMAND_MEMORY, BAR0 = 0x04, 2, 0x10

# vpmu/status.h
NAMES = (
    *("magic", "version", "vcpus", "source", "event_class", "policy", "shape_gp", "shape_fixed"),
    *("granted_gp", "granted_fixed", "changes", "revocations", "interrupt", None, None, None),
    *("request_gp", "request_fixed", "request", "request_status"),
)
OFFSETS = {name: 4 * i for i, name in enumerate(NAMES) if name}
RESIZE = 1
SUCCESS, PENDING, INVALID_PARAMETER = 0, 0x103, 0xC000000D
PAGE_HEAD = struct.Struct("<IIIIQ40x")
RECORD = struct.Struct("<IIQQQ")

LETTERS = {1: "b", 2: "w", 4: "l", 8: "q"}


class Bus(Machine):
    """Nothing runs in it: it stands, and only this side accesses anything."""

    def __init__(self, folder, cpu, *, cpus=1, options=(), debug=False):
        path = os.path.join(folder, f"bus{len(os.listdir(folder))}")
        more = ["-S", "-action", "reboot=reset", "-device", f"vpmu-status,id=status,addr={SLOT:#x}"]
        more += ["-qtest", f"unix:{path},server=on,wait=off", "-qtest-log", "none"]
        more += ["-d", "guest_errors"] if debug else []
        super().__init__(cpu, cpus=cpus, options=(*more, *options))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rw")

    def __exit__(self, *_):
        self.socket.close()
        super().__exit__()

    def ask(self, request):
        self.stream.write(request + "\n")
        self.stream.flush()
        answer = self.stream.readline().split()
        if not answer or answer[0] != "OK":
            raise Broken(f"{request}: {answer}")
        return answer[1:]

    def read(self, address, size=4):
        return int(self.ask(f"read{LETTERS[size]} {address:#x}")[0], 16)

    def write(self, address, value, size=4):
        self.ask(f"write{LETTERS[size]} {address:#x} {value:#x}")

    def memory(self, address, size):
        return bytes.fromhex(self.ask(f"read {address:#x} {size:#x}")[0][2:])

    def configure(self, register, value):
        self.ask(f"outl {PORT_ADDRESS:#x} {ADDRESS_ENABLE | SLOT << 11 | register:#x}")
        self.ask(f"outl {PORT_DATA:#x} {value:#x}")

    def place(self):
        """Gives the BARs their addresses."""
        for bar, address in BARS.items():
            self.configure(BAR0 + 4 * bar, address)
        self.configure(COMMAND, COMMAND_MEMORY)
        return self

    def registers_of_device(self):
        return {name: self.read(REGISTERS + at) for name, at in OFFSETS.items()}

    def set(self, name, value):
        self.write(REGISTERS + OFFSETS[name], value)

    def resize(self, gp, fixed):
        self.set("request_gp", gp)
        self.set("request_fixed", fixed)
        self.set("request", RESIZE)
        return self.read(REGISTERS + OFFSETS["request_status"])

    def page(self, vcpu):
        """(sequence, vcpu, apic_id, updated_ns, records) of a page that nobody writes now."""
        data = self.memory(PAGES + vcpu * PAGE_SIZE, PAGE_SIZE)
        sequence, index, apic, count, updated = PAGE_HEAD.unpack_from(data)
        at = (PAGE_HEAD.size + i * RECORD.size for i in range(count))
        return sequence, index, apic, updated, [RECORD.unpack_from(data, where) for where in at]
