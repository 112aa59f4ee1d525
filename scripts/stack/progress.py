"""One line for each step with its time, and movement while a step is long."""

from __future__ import annotations

import sys
import threading
import time
from typing import Callable

QUIET_SECONDS = 10.0
"""Without a terminal, how often a long step says that it still moves."""


def say(name: str, text: str, seconds: float | None = None) -> None:
    """Prints one finished line: who, what, and how long it took."""
    line = f"{name:<11} {text}"
    if seconds is not None:
        line = f"{line:<62} {seconds:6.1f} s"
    print(line, flush=True)


class Step:
    """A step that takes time: `with Step("mysql", "starting") as step: …; step.done = "ready"`.

    While it runs, a terminal shows the seconds that passed (and `movement()`, if given); a pipe gets a line now and
    then. At the end one line is printed with `done`, or none if `done` is empty or the step failed.
    """

    def __init__(self, name: str, doing: str, movement: Callable[[], str] | None = None) -> None:
        self.name = name
        self.doing = doing
        self.done = ""
        self._movement = movement or (lambda: "")
        self._finished = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._began = time.monotonic()

    def __enter__(self) -> Step:
        self._ticker.start()
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._finished.set()
        self._ticker.join()
        if self.done and failed is None:
            say(self.name, self.done, time.monotonic() - self._began)

    def _tick(self) -> None:
        terminal = sys.stdout.isatty()
        while not self._finished.wait(0.5 if terminal else QUIET_SECONDS):
            line = f"{self.name:<11} {self.doing} … {time.monotonic() - self._began:.0f} s {self._movement()}".rstrip()
            print(f"\r{line}\033[K" if terminal else line, end="" if terminal else "\n", flush=True)
        if terminal:
            print("\r\033[K", end="", flush=True)
