# SPDX-License-Identifier: BSD-3-Clause
"""vpmuperf: the provider, its errors, its service, its manifest."""

import re
import subprocess
import threading
import time
import xml.etree.ElementTree as ET
from queue import Empty, Queue

from wine import PATIENCE_S, PROGRAMS, windows_path

PROCESSOR, VM = "Virtual PMU Processor", "Virtual PMU"
MAN = "{http://schemas.microsoft.com/win/2005/12/counters}"
LOOKING = "vpmuperf: the counters have another owner: what that one counts is published"


def counter(processor, index, event, value, state="backed", more=""):
    return f"counter processor={processor} counter={index} event={event} state={state} value={value} {more}\n"


def machine(counters="", processors=2, more=""):
    """A source file of a VM with instructions on every processor, and what else is wanted."""
    lines = sorted(f"{counter(i, 32, 'instructions', 1000 * (i + 1))}" for i in range(processors))
    return (f"vm processors={processors} shape=7 granted=5 host=kvm class=standard gp_width=40 "
            f"fixed_width=48 {more}\n" + (counters or "".join(lines)))


class Provider:
    """vpmuperf-double run, line by line; see double.c for its commands."""

    def __init__(self, wine, text, period=20, **env):
        self.wine = wine
        self.write(text)
        path = windows_path(wine.folder / "source.txt")
        self.process = wine.start("wine/vpmuperf-double", "run", "--source", f"file:{path}", "--period", str(period),
                                  **env)
        self.lines = []
        self.queue = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            self.queue.put(line.rstrip("\r\n"))
        self.queue.put(None)

    def write(self, text):
        self.wine.file("source.txt", text)

    def next(self):
        """The next line, or None at the end."""
        try:
            line = self.queue.get(timeout=PATIENCE_S)
        except Empty:
            raise RuntimeError(f"no line any more after {self.lines[-3:]}") from None
        if line is not None:
            self.lines.append(line)
        return line

    def until(self, wanted):
        """Reads to the first line that matches, and returns the lines up to it."""
        read = []
        while True:
            line = self.next()
            if line is None:
                raise RuntimeError(f"it ended before {wanted!r}: {self.lines[-3:]}")
            read.append(line)
            if re.search(wanted, line):
                return read

    def command(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.until("^DONE$")

    def data(self):
        """{(set, instance): {symbol: value}}, as a consumer reads it now."""
        rows = [line[5:].split("|") for line in self.command("read") if line.startswith("DATA ")]
        return {(row[0], row[1]): {k: int(v) for k, v in (field.split("=") for field in row[2:])}
                for row in rows}

    def collect(self):
        """The same within a collection, for which the provider looks."""
        self.command("begin")
        data = self.data()
        self.command("end")
        return data

    def wait_for(self, good):
        """Collects until good(data); it comes at the latest with the next look."""
        end = time.monotonic() + PATIENCE_S
        while True:
            data = self.collect()
            if good(data) or time.monotonic() > end:
                return data
            time.sleep(0.02)

    def finish(self):
        """Ctrl+C. Returns the exit status."""
        if self.process.poll() is None:
            self.process.stdin.close()
        while self.next() is not None:
            pass
        return self.process.wait(timeout=PATIENCE_S)

    def calls(self, routine):
        """[(arguments, answer)] of a routine so far."""
        found = (re.fullmatch(rf"CALL {routine}\((.*)\) -> (\d+)", line) for line in self.lines)
        return [(match[1], int(match[2])) for match in found if match]


# --- The routines of Wine -------------------------------------------------------------------------


def routines(results, wine):
    """What the seven routines answer, and how instance blocks are laid out."""
    done = wine.run("wine/routines")
    for line in done.stdout.splitlines():
        verdict, _, text = line.partition(" ")
        if verdict == "PASS":
            results.check(text, True)
        elif verdict == "FAIL":
            results.check(text.partition(": got")[0], False, text)
        else:
            results.remark(text)
    results.equal("all are tried", (done.returncode, "stops the last" in done.stdout), (0, True))


# --- Instances and values -------------------------------------------------------------------------


def starts_and_stops(results, wine):
    with Provider(wine, machine()) as provider:
        provider.until("4 instances")
        provider.command("unknown")
        status = provider.finish()
    order = [line.split("(")[0].removeprefix("CALL ") for line in provider.lines if line.startswith("CALL")]
    results.equal("starts once, and first", (order.count("PerfStartProviderEx"), order[0]),
                  (1, "PerfStartProviderEx"))
    results.equal("registers both sets", provider.calls("PerfSetCounterSetInfo"), [(PROCESSOR, 0), (VM, 0)])
    results.equal("creates an instance for the VM, the total and each processor",
                  sorted(provider.calls("PerfCreateInstance")),
                  sorted([(f"{VM}, Default, 0", 0), (f"{PROCESSOR}, _Total, 65536", 0), (f"{PROCESSOR}, 0, 0", 0),
                          (f"{PROCESSOR}, 1, 1", 0)]))
    results.equal("deletes each once", len(provider.calls("PerfDeleteInstance")), 4)
    results.equal("stops exactly once, with nothing left", provider.calls("PerfStopProvider"),
                  [("live, 0 instances left", 0)])
    results.equal("the last call is the stop", order[-1], "PerfStopProvider")
    results.equal("a request that nobody knows is not implemented", "CONTROL 120" in provider.lines, True)
    results.equal("exit status", status, 0)


def values(results, wine):
    """Exact sums, through wraps, with looks that only the consumer causes."""
    first = (counter(0, 0, "branches", 2**40 - 10) + counter(0, 32, "instructions", 1000)
             + counter(0, 33, "cycles", 2**48 - 100) + counter(1, 32, "instructions", 7))
    second = (counter(0, 0, "branches", 5) + counter(0, 32, "instructions", 1300) + counter(0, 33, "cycles", 100)
              + counter(1, 32, "instructions", 10**12))
    with Provider(wine, machine(first), period=60000) as provider:
        provider.until("4 instances")
        provider.write(machine(second))
        data = provider.wait_for(lambda d: d[PROCESSOR, "0"]["INSTRUCTIONS"])
        zero, one, total = (data[PROCESSOR, name] for name in ("0", "1", "_Total"))
        results.equal("instructions", (zero["INSTRUCTIONS"], one["INSTRUCTIONS"]), (300, 10**12 - 7))
        results.equal("the total is exact", total["INSTRUCTIONS"], 300 + 10**12 - 7)
        results.equal("a wrap of 40 bits", zero["BRANCHES"], 15)
        results.equal("a wrap of 48 bits", zero["CYCLES"], 200)
        results.equal("instructions per 100 cycles", (zero["IPC"], zero["IPC_BASE"]), (300, 200))
        results.check("no data where nothing is counted",
                      not {"LLC_MISSES", "REF_CYCLES", "BACKED"} & zero.keys()
                      and not {"CYCLES", "IPC", "IPC_BASE"} & (one.keys() | total.keys()), data)
        results.equal("the VM", data[VM, "Default"],
                      {"SHAPE": 7, "GRANTED": 5, "STARVED": 0, "FILTERED": 0, "HOST": 2, "EVENT_CLASS": 2})


def processors_come_and_go(results, wine):
    def names(data):
        return sorted(instance for of, instance in data if of == PROCESSOR)

    with Provider(wine, machine(processors=2)) as provider:
        provider.until("4 instances")
        provider.write(machine(processors=3))
        provider.until("5 instances")
        results.equal("one comes", names(provider.data()), ["0", "1", "2", "_Total"])
        provider.write(machine(processors=1))
        provider.until("3 instances")
        results.equal("two go", names(provider.data()), ["0", "_Total"])
        provider.write(machine(processors=2))
        provider.until("4 instances")
        results.equal("one comes back", names(provider.data()), ["0", "1", "_Total"])
        provider.finish()
    created, deleted = (provider.calls(f"Perf{what}Instance") for what in ("Create", "Delete"))
    results.equal("every instance is deleted once", (len(created), len(deleted)), (6, 6))
    results.check("no call fails", not any(answer for _, answer in created + deleted), created + deleted)


def lost_values(results, wine):
    """No data, not 0: as documented (NULL), and where NULL is refused."""
    for how, env in (("by NULL", {"VPMU_DOUBLE_NULL": "1"}), ("where NULL is refused", {})):
        for state in ("starved", "filtered", "revoked", "granted", "unsupported", "absent"):
            with Provider(wine, machine(processors=1), **env) as provider:
                provider.until("3 instances")
                provider.write(machine(counter(0, 32, "instructions", 0, state), processors=1))
                data = provider.wait_for(lambda d: "INSTRUCTIONS" not in d.get((PROCESSOR, "0"), "INSTRUCTIONS"))
                results.check(f"{how}: {state} has no data",
                              "INSTRUCTIONS" not in data[PROCESSOR, "0"].keys() | data[PROCESSOR, "_Total"].keys()
                              and "STATE" in data[PROCESSOR, "0"], data)
                provider.finish()
                made = len(provider.calls("PerfCreateInstance"))
                nulls = [answer for about, answer in provider.calls("PerfSetCounterRefValue")
                         if about.endswith("NULL")]
                results.equal(f"{how}: {state}: references are taken back", set(nulls), {0 if env else 87})
                results.equal(f"{how}: {state}: instances are made anew only where that fails", made,
                              3 if env else 5)


def collections(results, wine):
    """While a consumer reads, nothing moves."""
    def at(value):
        return machine(counter(0, 32, "instructions", value), processors=1)

    with Provider(wine, at(0)) as provider:
        provider.until("3 instances")
        provider.command("begin")
        before = provider.data()
        provider.write(at(500))
        results.check("values stand still within a collection",
                      all(provider.data() == before for _ in range(20)), "they moved")
        provider.command("end")
        data = provider.wait_for(lambda d: d[PROCESSOR, "0"]["INSTRUCTIONS"] == 500)
        results.equal("and go on after it", data[PROCESSOR, "0"]["INSTRUCTIONS"], 500)


def source_fails(results, wine):
    with Provider(wine, machine()) as provider:
        provider.until("4 instances")
        provider.write("rubbish\n")
        lines = provider.until("0 values")
        results.check("says why, with the line", any("no data: line 1: a line begins with" in line
                                                    for line in lines), lines)
        results.equal("all data is gone, instances stay", sorted(map(len, provider.data().values())), [0] * 4)
        provider.write(machine())
        lines = provider.until("the source answers again")
        provider.until(r"[1-9]\d* values")
        results.equal("and comes back", provider.finish(), 0)


# --- Errors ---------------------------------------------------------------------------------------

# Told to fail, exit status, instances at the end, what it says. "" where it says nothing.
ERRORS = (
    ("PerfStartProviderEx:1:87", 1, None, "does not start the provider (error 87)"),
    ("PerfStartProviderEx:1:14", 1, None, "does not start the provider (error 14)"),
    ("PerfStartProviderEx:1:5", 1, None, "does not start the provider (error 5)"),
    ("PerfSetCounterSetInfo:1:183", 0, 4, "(_Total): its set is not registered, it is registered again"),
    ("PerfSetCounterSetInfo:1:87", 1, None, 'the counter set "Virtual PMU Processor" is refused (error 87)'),
    ("PerfSetCounterSetInfo:2:14", 1, None, 'the counter set "Virtual PMU" is refused (error 14)'),
    ("PerfCreateInstance:1:87", 1, None, "Virtual PMU(Default): perflib refuses what is published (error 87)"),
    ("PerfCreateInstance:1:183", 0, 3, "its name or id exists already, it is left out (error 183)"),
    ("PerfCreateInstance:1:1168", 0, 4, "it is registered again (error 1168)"),
    ("PerfCreateInstance:0:1168", 1, None, "perflib refuses what is published (error 1168)"),
    ("PerfCreateInstance:2:8", 0, 4, "Processor(_Total): no memory for it now, it is tried again (error 8)"),
    ("PerfCreateInstance:2:14", 0, 4, "no memory for it now, it is tried again (error 14)"),
    ("PerfCreateInstance:2:1450", 0, 4, "no memory for it now, it is tried again (error 1450)"),
    ("PerfCreateInstance:2:31", 0, 4, "it cannot be created, it is tried again (error 31)"),
    ("PerfSetCounterRefValue:1:1168", 0, 4, "Virtual PMU(Default): Counters (error 1168)"),
    ("PerfSetCounterRefValue:1:87", 0, 4, "Virtual PMU(Default): Counters (error 87)"),
    ("PerfDeleteInstance:1:87", 0, 4, "perflib does not delete it (error 87)"),
    ("PerfStopProvider:1:31", 0, 4, "perflib does not stop the provider"),
)


def errors(results, wine):
    for told, status, instances, says in ERRORS:
        with Provider(wine, machine(), VPMU_DOUBLE=told) as provider:
            if instances:
                provider.until(f"vpmuperf: {instances} instances")
            got = provider.finish()
        results.check(f"{told}: says so", any(says in line for line in provider.lines), provider.lines[-4:])
        results.equal(f"{told}: exit status", got, status)
        started = any(answer == 0 for _, answer in provider.calls("PerfStartProviderEx"))
        results.equal(f"{told}: stops exactly once", len(provider.calls("PerfStopProvider")), int(started))


def silence(results, wine):
    """An error that lasts is said once, not every period."""
    with Provider(wine, machine(), VPMU_DOUBLE="PerfCreateInstance:0:8") as provider:
        for _ in range(12):
            provider.until(r"CALL PerfCreateInstance\(Virtual PMU, .* -> 8")
        provider.finish()
    said = [line for line in provider.lines if line.startswith("vpmuperf: Virtual PMU(")]
    results.equal("said once", len(said), 1)


# --- The program ----------------------------------------------------------------------------------


def without_a_driver(results, wine):
    done = wine.run("wine/vpmuperf-double", "run")
    results.equal("says what is missing", done.stdout.strip(),
                  "vpmuperf: no counter set is published: cannot open \\\\.\\vpmu: vpmu.sys is not loaded "
                  "(0xC0000034)")
    results.equal("calls nothing of perflib, and fails", (done.returncode, "CALL" in done.stdout), (1, False))


def sources(results, wine):
    for text, says in (("", "no line for the VM"), ("vm processors=2 shape=x\n", "line 1: "),
                       (machine() + counter(7, 1, "cycles", 1), "line 4: no such processor")):
        path = windows_path(wine.file("bad.txt", text))
        done = wine.run("vpmuperf", "run", "--source", f"file:{path}")
        results.check(f"a bad file: {says}", done.returncode == 1 and says in done.stdout
                      and done.stdout.startswith("vpmuperf: no counter set is published: "), done.stdout)
    for source in ("file:Z:\\nowhere", "file:", "nonsense"):
        done = wine.run("vpmuperf", "run", "--source", source)
        results.check(f"no source {source}", done.returncode == 1 and "no counter set" in done.stdout, done.stdout)


def usage(results, wine):
    for arguments in ((), ("fly",), ("run", "--source"), ("run", "--period", "9"), ("run", "--period", "60001"),
                      ("run", "--period", "1s"), ("run", "--period", "-5"), ("run", "--seconds", "0"),
                      ("run", "--seconds", ""), ("run", "--speed", "1"), ("run", "--source", 'file:"')):
        done = wine.run("vpmuperf", *arguments)
        results.check(f"refused: {' '.join(arguments) or 'nothing'}",
                      done.returncode == 2 and "usage:" in done.stderr and not done.stdout,
                      (done.returncode, done.stderr[:80]))
    done = wine.run("vpmuperf", "--help")
    results.check("help fits 80 columns", done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80,
                  done.stdout)
    done = wine.run("vpmuperf", "service")
    results.check("service is for the service manager", done.returncode == 1 and "net start" in done.stdout,
                  done.stdout)


def runs_alone(results, wine):
    """The program as it is shipped, with nothing between it and Wine."""
    path = windows_path(wine.file("alone.txt", machine()))
    done = wine.run("vpmuperf", "run", "--source", f"file:{path}", "--period", "50", "--seconds", "1")
    results.equal("publishes", (done.returncode, done.stdout.splitlines()),
                  (0, [LOOKING, "vpmuperf: 4 instances, 12 values"]))


def strings():
    """{id: text} of the program's resources."""
    text = subprocess.run(["x86_64-w64-mingw32-windres", "-i", str(PROGRAMS / "vpmuperf.exe"), "-O", "rc"],
                          capture_output=True, text=True, check=True).stdout
    return {int(number): string for number, string in re.findall(r'^\s+(\d+), "(.*)"$', text, re.MULTILINE)}


def manifest(results, wine):
    done = wine.run("vpmuperf", "manifest")
    root = ET.fromstring(done.stdout)
    provider = root.find(f".//{MAN}provider")
    results.equal("names the program that has the strings",
                  (provider.get("applicationIdentity"), provider.get("providerType")), ("vpmuperf.exe", "userMode"))
    sets = provider.findall(f"{MAN}counterSet")
    results.equal("both sets", [(s.get("name"), s.get("instances")) for s in sets],
                  [(PROCESSOR, "multiple"), (VM, "single")])
    everything = [element for s in sets for element in (s, *s.findall(f"{MAN}counter"))]
    results.equal("uris are unique", len({e.get("uri") for e in everything}), len(everything))
    results.equal("symbols are unique", len({e.get("symbol") for e in everything}), len(everything))
    guids = [provider.get("providerGuid"), *(s.get("guid") for s in sets)]
    results.equal("GUIDs are unique", len(set(guids)), 3)
    for s in sets:
        ids = [c.get("id") for c in s.findall(f"{MAN}counter")]
        results.equal(f"{s.get('name')}: ids are unique", len(set(ids)), len(ids))
    texts = [text for e in everything for text in (e.get("name"), e.get("description"))]
    results.equal("the resources are the manifest's names and descriptions, in its order", strings(),
                  {2 * i + 1: text for i, text in enumerate(texts)})


def query(wine, wanted):
    """What sc says of the service, once it matches what is wanted, or at last."""
    end = time.monotonic() + PATIENCE_S
    while True:
        text = wine.run("sc", "query", "vpmuperf").stdout
        if re.search(wanted, text) or time.monotonic() > end:
            return text
        time.sleep(0.1)


def state(wine, wanted):
    """The service's state, None where there is no service; waits for the one that is wanted."""
    text = query(wine, rf"STATE\s*: \d+\s+{wanted}" if wanted else r"\A(?!SERVICE_NAME)")
    found = re.search(r"STATE\s*: \d+\s+(\w+)", text)
    return found[1] if found else None


def service(results, wine):
    path = windows_path(wine.file("service.txt", machine()))
    installed = wine.run("vpmuperf", "install", "--source", f"file:{path}", "--period", "100")
    results.equal("installs", (installed.returncode, installed.stdout.strip()),
                  (0, "installed; start it with: net start vpmuperf"))
    written = PROGRAMS / "vpmuperf.man"
    results.equal("the manifest is written beside the program", ET.parse(written).getroot().tag.split("}")[-1],
                  "instrumentationManifest")
    again = wine.run("vpmuperf", "install")
    results.check("a second time is refused", again.returncode == 1 and "uninstall first" in again.stdout,
                  again.stdout)
    results.equal("it does not run yet", state(wine, "STOPPED"), "STOPPED")
    results.equal("starts", (wine.run("net", "start", "vpmuperf").returncode, state(wine, "RUNNING")), (0, "RUNNING"))
    results.equal("stops", (wine.run("net", "stop", "vpmuperf").returncode, state(wine, "STOPPED")), (0, "STOPPED"))
    wine.run("net", "start", "vpmuperf")
    removed = wine.run("vpmuperf", "uninstall")
    results.equal("is removed while it runs", (removed.returncode, removed.stdout.strip(), state(wine, None)),
                  (0, "removed", None))
    results.check("the manifest is gone", not written.exists(), written)
    removed = wine.run("vpmuperf", "uninstall")
    results.equal("removing what is not there is no error", removed.returncode, 0)


def service_without_a_driver(results, wine):
    wine.run("vpmuperf", "install")
    wine.run("net", "start", "vpmuperf")
    text = query(wine, "1066")
    results.check("ends, with an exit code of its own",
                  all(re.search(rf"{what}\b", text) for what in (r": 1\s+STOPPED", r"WIN32_EXIT_CODE\s*: 1066",
                                                                r"SERVICE_EXIT_CODE\s*: 1")), text)
    wine.run("vpmuperf", "uninstall")


CASES = (routines, starts_and_stops, values, processors_come_and_go, lost_values, collections, source_fails, errors,
         silence, without_a_driver, sources, usage, runs_alone, manifest, service, service_without_a_driver)
