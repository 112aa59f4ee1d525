"""Starting one process after the other, so that a failure half way can be undone."""

from __future__ import annotations

from typing import Callable

from stack.process import Processes, Program
from stack.progress import Step, say
from stack.settings import Settings


class Starting:
    """What one `up` starts; `undo()` stops that again, newest first, and leaves alone what ran before."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.processes = Processes(settings.home)
        self._started: list[str] = []

    def ensure(
        self,
        program: Program,
        is_ready: Callable[[], bool],
        limit_seconds: float,
        prepare: Callable[[], None] | None = None,
    ) -> bool:
        """Returns once the program is ready: as it ran before, or started (anew, if its configuration changed).

        Says whether it was started. `prepare` runs before a start.
        """
        name, where = program.name, self.settings.address(program.name)
        runs = self.processes.pid(name) is not None
        if runs and not self.processes.is_current(program):
            say(name, "is started anew: its configuration or binary changed")
            self.processes.stop(name)
            runs = False
        if not runs and prepare is not None:
            prepare()
        with Step(name, "getting ready") as step:
            if not runs:
                self._started.append(name)
                self.processes.start(program)
            self.processes.wait_ready(name, is_ready, limit_seconds)
            step.done = f"runs on {where}" if runs else f"ready on {where}"
        return not runs

    def undo(self) -> None:
        """Stops what was started."""
        for name in reversed(self._started):
            self.processes.stop(name)
