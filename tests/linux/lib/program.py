# SPDX-License-Identifier: BSD-3-Clause
"""What a guest program will execute, counted in its own disassembly.

See programs/region.inc: a program is a row of regions, each with the number of times that it runs.
"""

import re
import subprocess
from dataclasses import dataclass
from functools import cached_property

PREFIXES = {"rep", "repe", "repz", "repne", "repnz", "lock", "bnd", "notrack", "data16", "cs", "ds"}
CONDITIONAL = re.compile(r"j(?!mp)[a-z]+$|loop")
BRANCH = re.compile(r"j|loop|call|ret|lret|ljmp|lcall|syscall$|sysenter$|sysret|sysexit|int$|iret")


@dataclass(frozen=True)
class Instruction:
    address: int
    mnemonic: str

    @property
    def is_branch(self):
        """Counted by event 0xC4, unit mask 0: every near and far branch, taken or not."""
        return bool(BRANCH.match(self.mnemonic))

    @property
    def is_conditional(self):
        """Counted by event 0xC4, unit mask 1: Jcc, LOOPcc, JCXZ."""
        return bool(CONDITIONAL.match(self.mnemonic))


@dataclass(frozen=True)
class Region:
    name: str
    times: int
    code: tuple  # of Instruction


class Program:
    """The program at path, an ELF file of regions."""

    def __init__(self, path):
        self.path = path
        self.name = path.name

    @cached_property
    def regions(self):
        symbols = self._symbols()
        code = self._code()
        starts = sorted((value, name) for name, value in symbols.items() if name.startswith("region."))
        ends = [start for start, _ in starts[1:]] + [code[-1].address + 1]
        regions = [
            Region(name[7:], symbols["times." + name[7:]],
                   tuple(i for i in code if start <= i.address < end))
            for (start, name), end in zip(starts, ends)
        ]
        if sum(len(region.code) for region in regions) != len(code):
            raise ValueError(f"{self.name}: code outside of its regions")
        return regions

    def count(self, which):
        """How many instructions for which `which(instruction)` holds are executed, start to end."""
        return sum(region.times * sum(map(which, region.code)) for region in self.regions)

    @property
    def instructions(self):
        return self.count(lambda _: True)

    @property
    def branches(self):
        return self.count(lambda i: i.is_branch)

    @property
    def conditional(self):
        return self.count(lambda i: i.is_conditional)

    def addresses_after(self, period, which=lambda _: True, late=0):
        """Where the program stands each time that `period` more such instructions are complete.

        `late` is how many more of them complete first. Only for a program that runs its regions
        from the first to the last, each over and over before the next. What the program's last
        instruction completes is left out.
        """
        ends = range(period, self.count(which) + 1, period)
        addresses = [self._address_after(end + late, which) for end in ends]
        return [address for address in addresses if address is not None]

    def _address_after(self, nth, which):
        """Where the program stands after the nth such instruction; None after its end."""
        for number, region in enumerate(self.regions):
            places = [place for place, i in enumerate(region.code) if which(i)]
            if nth <= len(places) * region.times:
                repetition, event = divmod(nth - 1, len(places))
                return self._next(number, repetition, places[event])
            nth -= len(places) * region.times
        return None

    def _next(self, number, repetition, place):
        """The address behind an instruction, where its region may begin again."""
        region = self.regions[number]
        if place + 1 < len(region.code):
            return region.code[place + 1].address
        if repetition + 1 < region.times:
            return region.code[0].address
        if number + 1 < len(self.regions):
            return self.regions[number + 1].code[0].address
        return None

    def _symbols(self):
        lines = self._read("nm").splitlines()
        return {name: int(value, 16) for value, _, name in map(str.split, lines)}

    def _code(self):
        listing = self._read("objdump", "-d", "--no-show-raw-insn")
        found = re.findall(r"^ +([0-9a-f]+):\t(.*)$", listing, re.MULTILINE)
        return [Instruction(int(address, 16), mnemonic(text)) for address, text in found]

    def _read(self, *tool):
        return subprocess.run([*tool, self.path], check=True, capture_output=True, text=True).stdout


def mnemonic(text):
    """An instruction's name in objdump's text of it, without its prefixes."""
    return next(word for word in text.split() if word not in PREFIXES)
