# SPDX-License-Identifier: BSD-3-Clause
"""Debian's perf in a guest: run it and read what it says."""

import re
from dataclasses import dataclass

from guest import quote

UNSUPPORTED = "<not supported>"


@dataclass(frozen=True)
class Count:
    value: object  # an int, or perf's own words for why there is none
    share: float  # percentage of the time that the event was on a counter


def stat(guest, events, *command):
    """What `perf stat` counts of a command: {event: Count}."""
    guest.output(stat_command(events, "stat", *command))
    return read_stat(guest, "stat")


def stat_command(events, output, *command):
    """The shell command that counts `events` of `command` into the file `output`."""
    return quote("perf", "stat", "-x,", "-o", output, "-e", ",".join(events), *command)


def read_stat(guest, output):
    """The counts in a file that `stat_command` has written."""
    rows = [line.split(",") for line in guest.output(quote("cat", output)).splitlines() if "," in line]
    return {row[2]: Count(int(row[0]) if row[0].isdigit() else row[0], float(row[4])) for row in rows}


def record(guest, event, period, *command):
    """Where `perf record` takes a sample: every `period` events of a command, a list of addresses."""
    guest.output(quote("perf", "record", "-q", "-N", "-o", "data", "-e", event, "-c", period, *command))
    text = guest.output("perf script -i data -F ip")
    return [int(word, 16) for word in text.split()]


def tests(guest):
    """The cases of `perf test`: {name: its number}, subcases by their own name as "4.2"."""
    found = re.findall(r"^ *(\d+(?:[:.]\d+)?): (.*)$", guest.output("perf test list"), re.MULTILINE)
    return {name.strip(): number.replace(":", ".") for number, name in found}


def run_test(guest, number):
    """Run a case of `perf test` with its subcases: {name: "Ok", "Skip (why)" or "FAILED!"}."""
    _, text = guest.run(quote("perf", "test", number.partition(".")[0]), timeout=300)
    text = re.sub(r"\x1b\[\d*m", "", text)
    found = re.findall(r"^ *[\d.]+: (.*?) *: *(Ok|Skip.*|FAILED.*)$", text, re.MULTILINE)
    return dict(found)
