"""Detached children that outlive the script, and are known again by more than a number."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from stack.failure import Failure
from stack.progress import Step, say

STOP_SECONDS = 20.0
"""How long a process may take to end by itself before it is killed."""
PROBE_INTERVAL_SECONDS = 0.1
LAST_LINES = 20


@dataclass(frozen=True)
class Program:
    """What to run: a direct child without a shell, in `folder`, with exactly `environment`."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    fingerprint: str
    """Of everything that, once changed, is a reason to start it anew."""


def fingerprint(*parts: object) -> str:
    """One short text for a configuration."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


class Processes:
    """The processes of one home: `run/<name>.pid` (the number), `run/<name>.json` (who it is), `logs/<name>.log`."""

    def __init__(self, home: Path) -> None:
        self.run = home / "run"
        self.logs = home / "logs"
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def log(self, name: str) -> Path:
        """Where a process writes what it prints."""
        return self.logs / f"{name}.log"

    def pid(self, name: str) -> int | None:
        """The pid of our running process, or None: a number that the system gave to another process is not ours."""
        known = self._known(name)
        pid = known.get("pid")
        return pid if isinstance(pid, int) and known["started"] == start_of(pid) is not None else None

    def is_current(self, program: Program) -> bool:
        """Whether the process that runs was started from the same configuration."""
        return self._known(program.name).get("fingerprint") == program.fingerprint

    def start(self, program: Program) -> None:
        """Starts a process that stays when this script ends; its pid file is there on return."""
        for folder in (self.run, self.logs, program.folder):
            folder.mkdir(parents=True, exist_ok=True)
        with open(self.log(program.name), "ab") as log:
            try:
                child = subprocess.Popen(
                    list(program.command),
                    cwd=program.folder,
                    env=dict(program.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                raise Failure(f"{program.name} could not be started: {error}.") from None
        try:
            self._children[program.name] = child
            known = {
                "pid": child.pid,
                "started": start_of(child.pid),
                "argv": list(program.command),
                "fingerprint": program.fingerprint,
            }
            replace(self.run / f"{program.name}.json", json.dumps(known, indent=1) + "\n")
            replace(self.run / f"{program.name}.pid", f"{child.pid}\n")
        except BaseException:
            child.kill()  # nobody could find it again
            raise

    def wait_ready(self, name: str, is_ready: Callable[[], bool], limit_seconds: float) -> None:
        """Returns once `is_ready()`; fails at once, with the end of its log, if the process ends before that."""
        end = time.monotonic() + limit_seconds
        while not is_ready():
            if self.pid(name) is None:
                raise Failure(f"{name} {self._ending(name)} before it was ready; its log is {self._log_end(name)}")
            if time.monotonic() > end:
                raise Failure(f"{name} was not ready after {limit_seconds:.0f} s; its log is {self._log_end(name)}")
            time.sleep(PROBE_INTERVAL_SECONDS)
        if self.pid(name) is None:
            raise Failure(f"{name} {self._ending(name)}, and another program answers in its place; "
                          f"its log is {self._log_end(name)}")

    def stop(self, name: str, limit_seconds: float = STOP_SECONDS) -> bool:
        """Ends our process, if it runs: asked first, killed after the limit. Returns whether it ran."""
        pid = self.pid(name)
        if pid is not None:
            with Step(name, "stopping") as step:
                step.done = "stopped"
                self._signal(name, pid, signal.SIGTERM)
                if not self._gone(name, limit_seconds):
                    say(name, f"did not stop within {limit_seconds:.0f} s and is killed")
                    self._signal(name, pid, signal.SIGKILL)
                    self._gone(name, STOP_SECONDS)
        for kind in ("pid", "json"):
            (self.run / f"{name}.{kind}").unlink(missing_ok=True)
        return pid is not None

    def _signal(self, name: str, pid: int, number: signal.Signals) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            raise Failure(f"{name} (pid {pid}) belongs to another user and cannot be stopped by this one.") from None

    def _gone(self, name: str, limit_seconds: float) -> bool:
        end = time.monotonic() + limit_seconds
        while self.pid(name) is not None:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def _known(self, name: str) -> dict[str, Any]:
        try:
            known = json.loads((self.run / f"{name}.json").read_text())
            return known if isinstance(known, dict) and "started" in known else {}
        except (OSError, ValueError):
            return {}

    def _ending(self, name: str) -> str:
        code = self._children[name].wait() if name in self._children else None
        return "ended" if code is None else f"ended with exit code {code}"

    def _log_end(self, name: str) -> str:
        return f"{self.log(name)}\n{last_lines(self.log(name))}"


def start_of(pid: int) -> str | None:
    """When a living process began, as a text that no other process of this machine shares; None if it does not live."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if fields[0] in "ZX" else f"{boot}:{fields[19]}"


def replace(file: Path, text: str) -> None:
    """Writes a file so that a reader sees the old text or the new one."""
    fresh = file.with_name(file.name + ".new")
    fresh.write_text(text)
    os.replace(fresh, file)


def last_lines(file: Path) -> str:
    """The end of a log, indented."""
    try:
        lines = file.read_text(errors="replace").splitlines()[-LAST_LINES:]
    except OSError:
        lines = []
    return "\n".join("  " + line for line in lines) or "  (empty)"


def on_path(program: str) -> Path | None:
    """Where a program of the user's own is, or None."""
    found = shutil.which(program)
    return Path(found) if found else None
