# SPDX-License-Identifier: BSD-3-Clause
"""vpmustat: against a double of the consumer routines, over a file, and what plain Wine lacks."""

import csv
import io
import json

from wine import PROGRAMS, windows_path

KINDS = {
    "Double Single": "single instance",
    "Double Multi": "multiple instances",
    "Double Single Aggregate": "single instance, aggregate of several providers",
    "Double Multi Aggregate": "multiple instances, aggregate of several providers",
    "Double History": "single instance, aggregate with history",
    "Double Instance Aggregate": "multiple instances, aggregate by instance",
    'Double, of "tomorrow"': "unknown kind",
}
STATE = """vm processors=1 gp_width=48
counter processor=0 counter=0 event=branches state=starved value=0 enabled_ns=100 backed_ns=25
counter processor=0 counter=32 event=instructions state=backed value=7 enabled_ns=- backed_ns=-
"""


def with_double(wine, *arguments, **env):
    return wine.run("vpmustat", *arguments, "--perflib", windows_path(PROGRAMS / "perflib-double.dll"), **env)


def sets(results, wine):
    done = with_double(wine, "sets", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    results.equal("status", done.returncode, 0)
    results.equal("kinds in words", {r["counter set"]: r["instances"] for r in rows}, KINDS)
    results.equal("counters", {(r["counter"], r["type"], r["local counter"]) for r in rows if r["id"]},
                  {("Instructions", "rate per second", "Befehle"), ("State", "value", "Zustand"),
                   ("IPC", "average per operation", "IPC")})
    results.equal("a set without counters", [r["counter set"] for r in rows if not r["id"]], ['Double, of "tomorrow"'])
    text = with_double(wine, "sets").stdout
    results.equal("fits 80 columns", [line for line in text.splitlines() if len(line) > 80], [])


def query(results, wine):
    done = with_double(wine, "query", "\\Double Multi(_Total)\\Instructions", "-o", "json")
    results.equal("a counter of an instance", json.loads(done.stdout or "null"),
                  [{"instance": "_Total", "counter": "Instructions", "value": 2100, "type": "rate per second"}])
    done = with_double(wine, "query", "Double Single\\Befehle", "-i", "1", "-o", "json")
    results.equal("a rate, by a local name", [row["per second"] for row in json.loads(done.stdout or "[]")], [50.0])


def query_errors(results, wine):
    for what, path, lie, words in (
            ("no set", "Nothing", "", 'no counter set is called "Nothing"'),
            ("no counter", "Double Single\\Speed", "", 'has no counter called "Speed"'),
            ("no instance", "Double Multi(9)", "", "no instance has data"),
            ("a provider that fails", "Double Multi", "error", "the provider: not found (1168)"),
            ("a block that is cut", "{76543210-BA98-FEDC-0000-000000000001}", "truncated", "byte 24: more counters")):
        done = with_double(wine, "query", path, PERFLIB_DOUBLE=lie)
        results.check(what, done.returncode == 1 and words in done.stderr and not done.stdout,
                      f"{done.returncode} {done.stderr}")


def plain_wine(results, wine):
    for command, names in ((["sets"], ["PerfEnumerateCounterSet", "PerfQueryCounterSetRegistrationInfo"]),
                           (["query", "X"], ["PerfEnumerateCounterSet", "PerfQueryCounterSetRegistrationInfo"])):
        done = wine.run("vpmustat", *command)
        results.equal(f"{command[0]}: status", done.returncode, 1)
        for name in names:
            results.check(f"{command[0]}: {name}", f"this system has no {name}" in done.stderr, done.stderr)
    for command, status in ((["list"], 1), (["selftest"], 2), (["--", "cmd", "/c", "exit"], 125)):
        done = wine.run("vpmustat", *command)
        results.check(f"{command[0]}: no driver", done.returncode == status and
                      "cannot open \\\\.\\vpmu: vpmu.sys is not loaded" in done.stderr,
                      f"{done.returncode} {done.stderr}")


def counts_a_program(results, wine):
    """The program changes the file between the two looks, and its own status comes through."""
    path = wine.file("state", STATE)
    after = wine.file("after", STATE.replace("value=7", "value=1000007"))
    script = wine.file("step.bat", f'@copy /y "{windows_path(after)}" "{windows_path(path)}" >nul\r\n@exit %1\r\n')
    done = wine.run("vpmustat", "-e", "instructions,branches", "-o", "json", "--source", f"file:{windows_path(path)}",
                    "--", "cmd", "/c", windows_path(script), "42")
    results.equal("the program's status", done.returncode, 42)
    rows = {row["event"]: row for row in json.loads(done.stdout or "[]")}
    results.equal("a count", rows.get("instructions", {}).get("count"), 1000000)
    results.equal("no data, never 0", rows.get("branches", {}).get("count", 0), None)
    results.equal("its state", rows.get("branches", {}).get("state"), "starved")


def passes_arguments(results, wine):
    """A program gets the arguments that vpmustat has got; here vpmustat itself, which names the wrong one."""
    path = wine.file("state", STATE)
    for argument in ("plain", "two words", 'a "quoted" word', "back\\slash\\", 'slash before \\"quote', "\u00e9"):
        done = wine.run("vpmustat", "--source", f"file:{windows_path(path)}", "--",
                        windows_path(PROGRAMS / "vpmustat.exe"), "-e", argument)
        results.check(repr(argument), f"no such event: {argument}\n" in done.stderr.replace("\r", ""), done.stderr)
        results.equal(f"{argument!r}: status", done.returncode, 2)


CASES = [sets, query, query_errors, plain_wine, counts_a_program, passes_arguments]
