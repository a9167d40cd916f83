# SPDX-License-Identifier: BSD-3-Clause
"""A host of one's own: libvirtd, hook and vpmud in a private mount and PID namespace.

Everything that libvirt writes is below a temporary folder, so the machine's own libvirt, if there is
one, is not touched. Programs are bound into /run of the namespace, where QEMU's user reaches them.
"""

import functools
import json
import os
import signal
import subprocess
import tempfile
import time
import uuid as uuids
from pathlib import Path

from vpmud import PATIENCE_S, Vpmud, die_with_parent

BIN = Path(os.environ["BUILD"]) / "bin"
QEMU = os.environ["QEMU"]
FOLDERS = {"etc": "/etc/libvirt", "lib": "/var/lib/libvirt", "log": "/var/log/libvirt", "cache": "/var/cache/libvirt",
           "vpmud": "/run/vpmud", "shared": "/run/shared"}
EMULATOR = "/run/vpmu/qemu-system-x86_64"
COMMAND_S = 100  # libvirt asks a new QEMU what it can do, which takes its time in the lab
POLICIES = {"policy root": {"uid": "root", "may": "vm, profiler, hook, observer, revoke"},
            "policy guests": {"gid": "kvm", "may": "vm"}}

QEMU_CONF = """security_driver = "none"
stdio_handler = "file"
namespaces = []
cgroup_controllers = []
remember_owner = 0
"""

DOMAIN = """<domain type='{kind}'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <memory unit='MiB'>32</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <features><acpi/>{features}</features>{metadata}
  {cpu}
  <devices>
    <emulator>{emulator}</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
  </devices>
</domain>
"""


# The processor of a domain, by its type.
PROCESSORS = {"qemu": "<cpu mode='custom' match='exact' check='none'><model fallback='allow'>Nehalem</model></cpu>",
              "kvm": "<cpu mode='host-passthrough' check='none' migratable='off'/>"}


def domain_xml(name, kind="qemu", features="", metadata="", uuid=None):
    """A small domain without a disk."""
    return DOMAIN.format(kind=kind, name=name, uuid=uuid or uuids.uuid4(), features=features, metadata=metadata,
                         cpu=PROCESSORS[kind], emulator=EMULATOR)


class Refused(Exception):
    """A command that has failed, with what it said."""


@functools.cache
def has_status_device():
    """Whether this QEMU has the status device."""
    run = subprocess.run([QEMU, "-device", "help"], capture_output=True, text=True, check=False)
    return "vpmu-status" in run.stdout


class Host:
    """A context. `shared` is a folder that several hosts have in common, for migration. `arbiter` makes the vpmud, by
    default one of a described `machine`; `kind` is the type of its domains."""

    def __init__(self, machine=None, name="a", shared=None, arbiter=Vpmud, kind="qemu"):
        self.temporary = tempfile.TemporaryDirectory(prefix="libvirt-")
        self.folder = Path(self.temporary.name)
        self.name = name
        for each in FOLDERS:
            (self.folder / each).mkdir()
        self.shared = Path(shared or self.folder / "shared")
        self.shared.chmod(0o777)
        (self.shared / name).mkdir()
        self.init = self.libvirtd = None
        self.kind = kind
        self.vpmud = arbiter(machine, sections={"watch": {"interval_ms": 0}} | POLICIES, folder=self.folder / "vpmud",
                             start=False)

    def __enter__(self):
        try:
            self.start_vpmud()
            self.make_namespace()
            self.configure()
            self.start_libvirtd()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.init:
            self.init.kill()
            self.init.wait()
        self.vpmud.stop()
        self.temporary.cleanup()

    # --- What it is made of ---

    def start_vpmud(self):
        """As vpmud.socket has it: QEMU runs in the group kvm."""
        self.vpmud.start()
        subprocess.run(["chgrp", "kvm", self.vpmud.socket], check=True)
        self.vpmud.socket.chmod(0o660)
        (self.folder / "vpmud").chmod(0o755)

    # A /dev/kvm that is there, and of no use, has libvirt probe QEMU before each command: it is hidden.
    def make_namespace(self):
        """The namespaces live as long as their first process; it ends with us and ends all others. A shell, since
        somebody must reap the QEMUs: libvirt waits for those that it probes."""
        binds = "".join(f"mkdir -p {to}; mount --bind {self.folder / each if each != 'shared' else self.shared} {to}\n"
                        for each, to in FOLDERS.items())
        script = f"""set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/vpmu /run/libvirt /run/lock
touch {EMULATOR} /run/vpmu/kvm; mount --bind {QEMU} {EMULATOR}
chmod 0 /run/vpmu/kvm; [ ! -e /dev/kvm -o {self.kind} = kvm ] || mount --bind /run/vpmu/kvm /dev/kvm
{binds}echo ready
sleep infinity &
wait $!"""
        self.init = subprocess.Popen(["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc",
                                      "bash", "-c", script], stdout=subprocess.PIPE, text=True,
                                     preexec_fn=die_with_parent)
        if self.init.stdout.readline() != "ready\n":
            raise RuntimeError("no private namespace")
        # The first process of the namespace is unshare's only child.
        children = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text()
        self.enter = ["nsenter", "-t", children.split()[0], "-m", "-p", "-i"]

    def configure(self):
        """libvirt's files, and the hook where a package puts it."""
        etc = self.folder / "etc"
        (etc / "hooks" / "qemu.d").mkdir(parents=True)
        subprocess.run(["cp", BIN / "vpmu-libvirt-hook", etc / "hooks" / "qemu.d" / "50-vpmu"], check=True)
        (etc / "qemu").mkdir()
        (etc / "qemu.conf").write_text(QEMU_CONF)
        (etc / "libvirtd.conf").write_text(
            f'host_uuid = "{uuids.uuid4()}"\nauth_unix_rw = "none"\nauth_unix_ro = "none"\n'
            f'unix_sock_group = "root"\nunix_sock_dir = "/run/shared/{self.name}"\n')

    def start_libvirtd(self):
        """In the foreground; waits until it answers."""
        with open(self.folder / "log" / "libvirtd", "ab") as log:
            self.libvirtd = subprocess.Popen([*self.enter, "libvirtd"], stdout=log, stderr=log,
                                             stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        end = time.monotonic() + 3 * PATIENCE_S
        while self.run("virsh", "-c", self.uri, "list").returncode:
            if self.libvirtd.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"libvirtd: {(self.folder / 'log' / 'libvirtd').read_text()[-600:]}")
            time.sleep(0.05)

    def restart_libvirtd(self):
        """Ends it by a signal to itself, not to nsenter; domains run on."""
        pid = self.run("cat", "/run/libvirtd.pid").stdout.strip()
        self.run("kill", pid)
        self.libvirtd.wait(PATIENCE_S)
        self.start_libvirtd()

    # --- Commands ---

    def outside_uri(self):
        """The same libvirtd, for a program outside of the namespace."""
        return f"qemu+unix:///system?socket={self.shared / self.name}/libvirt-sock"

    uri = property(lambda self: f"qemu+unix:///system?socket=/run/shared/{self.name}/libvirt-sock")

    def run(self, *words, **more):
        return subprocess.run([*self.enter, *map(str, words)], capture_output=True, text=True, timeout=COMMAND_S, check=False,
                              **more)

    def must(self, *words, **more):
        """What it says; Refused if it fails."""
        done = self.run(*words, **more)
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def virsh(self, *words, **more):
        return self.must("virsh", "-c", self.uri, *words, **more)

    def vpmuctl(self, *words, **more):
        """(exit status, what it says, what it complains of) of vpmuctl domain."""
        done = self.run(BIN / "vpmuctl", "domain", "-c", self.uri, *words, **more)
        return done.returncode, done.stdout, done.stderr

    def hook(self, name, operation, xml):
        """The hook as libvirt calls it."""
        return self.run(BIN / "vpmu-libvirt-hook", name, operation, "begin", "-", input=xml)

    # --- Domains ---

    def define(self, name, features="", metadata=""):
        """A small domain without a disk."""
        self.virsh("define", "/proc/self/fd/0", input=domain_xml(name, self.kind, features, metadata))

    def enable(self, name, *options):
        """Gives it counters; the status device where this QEMU has it."""
        status = "yes" if has_status_device() else "no"
        code, _, said = self.vpmuctl("enable", name, "--status", status, *options)
        if code:
            raise Refused(said)

    def inactive_xml(self, name):
        return self.virsh("dumpxml", "--inactive", name)

    def state(self, name):
        return self.virsh("domstate", name).strip()

    def monitor(self, name, command):
        """What QEMU's monitor answers."""
        return json.loads(self.virsh("qemu-monitor-command", name, json.dumps({"execute": command})))["return"]

    def qemu_pid(self, name):
        return int(self.run("cat", f"/run/libvirt/qemu/{name}.pid").stdout)

    def kill_qemu(self, name):
        self.run("kill", "-9", str(self.qemu_pid(name)))

    def books(self, *states):
        """{name: (state, GP counters)} of vpmud's leases of VMs."""
        return {lease["name"]: (lease["state"], lease["granted"]["gp"])
                for lease in self.vpmud.ask("leases")["leases"]
                if lease.get("kind") == "vm" and (not states or lease["state"] in states)}
