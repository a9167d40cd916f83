# SPDX-License-Identifier: BSD-3-Clause
"""Wine without a screen, in a prefix of its own."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(os.environ["BUILD"])
PROGRAMS = BUILD / "guest-drivers"
PATIENCE_S = 60


class Wine:
    """with Wine() as wine: wine.run("program", ...)."""

    def __init__(self):
        self.guard = None
        self.folder = BUILD / "wine"
        self.folder.mkdir(parents=True, exist_ok=True)
        left = list(self.folder.glob("prefix-*"))  # by a run that was killed
        # Another one each time: of the last, a server may be about to end.
        self.prefix = Path(tempfile.mkdtemp(prefix="prefix-", dir=self.folder))
        for old in left:
            shutil.rmtree(old, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")} | {
            "WINEPREFIX": str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            # Neither asks to be downloaded, nor fills menus.
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
        }

    def __enter__(self):
        try:
            done = self._call(["wineboot", "-i"])
            if done.returncode:
                raise RuntimeError(f"wineboot: exit status {done.returncode}: {done.stderr.strip()}")
            self._keep_services()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        subprocess.run(["wineserver", "-k"], env=self.env, check=False)
        subprocess.run(["wineserver", "-w"], env=self.env, check=False, timeout=PATIENCE_S)
        if self.guard:
            self.guard.stdin.close()
            self.guard.stdout.close()
            self.guard.wait()
        shutil.rmtree(self.prefix, ignore_errors=True)

    def _keep_services(self):
        """Starts a program that idles, and waits until it runs.

        While a program runs, Wine's service manager does: without, each run would start it anew, and with it
        the services that start by themselves. Whoever starts it hands its pipes on to it, too, and these do
        not end with the program: that must not be a program of the tests.
        """
        self.guard = subprocess.Popen(["wine", "cmd"], env=self.env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
        self.guard.stdin.write("echo ready\n")
        self.guard.stdin.flush()
        if not any("ready" in line for line in self.guard.stdout):
            raise RuntimeError("wine cmd: it has ended")

    def _call(self, command, **more):
        return subprocess.run(command, env=self.env | more, capture_output=True, stdin=subprocess.DEVNULL,
                              text=True, errors="replace", timeout=PATIENCE_S, check=False)

    def run(self, program, *arguments, **env):
        """Runs PROGRAMS/program.exe, or a program of Wine, to its end."""
        path = PROGRAMS / f"{program}.exe"
        return self._call(["wine", str(path) if path.exists() else program, *arguments], **env)

    def start(self, program, *arguments, **env):
        """Starts it with pipes at stdin and stdout."""
        return subprocess.Popen(["wine", str(PROGRAMS / f"{program}.exe"), *arguments], env=self.env | env,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, errors="replace")

    def file(self, name, text):
        """Writes a file in one step, so that a reader sees all of it or nothing. Returns its path."""
        path = self.folder / name
        path.with_suffix(".new").write_text(text, encoding="utf-8")
        path.with_suffix(".new").rename(path)
        return path


def windows_path(path):
    """As a program under Wine names it."""
    return "Z:" + str(path).replace("/", "\\")
