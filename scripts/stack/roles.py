"""The roles of the binary, and the commands that prepare the servers for them."""

from __future__ import annotations

import os
import subprocess

from stack import connect
from stack.build import binary
from stack.failure import Failure
from stack.process import Program, fingerprint, last_lines
from stack.progress import Step
from stack.settings import Settings

ROLES = (
    "write-api",
    "read-api",
    "aggregator",
    "reconciler",
)
"""In the order in which they are started and stopped; each has a port of that name in settings.BASE_PORTS."""

PREPARATIONS = (
    ("topics", ["topics"], "topics are there"),
    ("migrate", ["migrate"], "tables and collections are there"),
    ("connector", ["connector", "apply"], "connector runs"),
)
"""Operator commands that may be run again at any time: log name, arguments, what is true after it."""

READY_SECONDS = 90.0
PREPARATION_SECONDS = 240.0


def prepare(settings: Settings) -> None:
    """Runs the preparations in their order; fails with the end of the output of one that fails."""
    logs = settings.home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for name, arguments, truth in PREPARATIONS:
        with Step(name, "likewise " + " ".join(arguments)) as step:
            command(settings, name, arguments)
            step.done = truth


def command(settings: Settings, name: str, arguments: list[str]) -> None:
    """Runs one operator command to its end, its output in `logs/<name>.log`."""
    log = settings.home / "logs" / f"{name}.log"
    with open(log, "wb") as output:
        try:
            done = subprocess.run(
                [str(binary(settings)), *arguments], cwd=settings.home, env=settings.environment(),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=PREPARATION_SECONDS, check=False,
            )
            ended = f"ended with exit code {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            ended = f"had not ended after {PREPARATION_SECONDS:.0f} s"
    if ended:
        raise Failure(f"likewise {' '.join(arguments)} {ended}; its log is {log}\n{last_lines(log)}")


def program(settings: Settings, role: str) -> Program:
    """A role as it is to run: anew when its binary or its configuration changed."""
    run = [str(binary(settings)), role]
    built = os.stat(run[0])
    version = (built.st_ino, built.st_size, built.st_mtime_ns)  # the file is replaced only by a different one
    environment = settings.environment()
    return Program(role, run, settings.home / role, environment, fingerprint(run, version, settings.configuration()))


def is_ready(settings: Settings, role: str) -> bool:
    """Whether the role takes calls."""
    return connect.answers(f"http://{settings.address(role)}/readyz")
