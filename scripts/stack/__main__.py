"""`up`, `down`, `run`, `exec` and `fuzz`: what the scripts beside this folder call."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # the modules are `stack.…`, wherever this was started

from stack import build, compose, fuzz, native, settings
from stack.failure import Failure
from stack.settings import Settings

USAGE = {
    "up": "usage: scripts/up\nStarts what is missing of the stack. LIKEWISE_HOME, LIKEWISE_PORT_OFFSET, "
    "LIKEWISE_STACK=native|compose\nand LIKEWISE_PROFILE=dev|release steer it.",
    "down": "usage: scripts/down [--wipe]\nStops the stack. --wipe also removes its data.",
}


def main(command: str, arguments: list[str]) -> int:
    """Runs one command and returns the exit code."""
    if command == "run":
        run(arguments)
    if command == "exec":
        stack = running()
        os.execvpe(arguments[0], arguments, {**build.environment(), **stack.environment(), "LIKEWISE_HOME": str(stack.home)})
    if command == "fuzz":
        return fuzz.fuzz(running(), arguments)
    if arguments in (["--help"], ["-h"]):
        print(USAGE[command])
        return 0
    wipe = arguments == ["--wipe"]
    if arguments and not (command == "down" and wipe):
        print(USAGE[command], file=sys.stderr)
        return 2
    if command == "up":
        stack = chosen()
        compose.up(stack) if stack.kind == "compose" else native.up(stack)
    else:
        stack = known() or Settings(settings.home_folder(), "native", 0)
        compose.down(stack, wipe) if stack.kind == "compose" else native.down(stack, wipe)
    return 0


def chosen() -> Settings:
    """The stack that `up` is to bring up: what the user asks for, then what the home remembers."""
    home, before = settings.home_folder(), known()
    offset, kind = settings.asked_offset(), settings.asked_kind()
    if before is not None:
        if kind not in (None, before.kind):
            raise Failure(
                f"{home} is the home of a stack of kind {before.kind}: "
                "wipe it with scripts/down --wipe, or take another LIKEWISE_HOME."
            )
        return Settings(home, before.kind, before.offset if offset is None else offset)
    return Settings(home, kind or ("compose" if compose.answers() else "native"), offset or 0)


def known() -> Settings | None:
    """The stack that the home remembers."""
    return settings.remembered(settings.home_folder())


def running() -> Settings:
    """The stack of the home, which the user's environment must not contradict."""
    stack = known() or Settings(settings.home_folder(), "native", 0)
    asked = settings.asked_offset()
    if asked not in (None, stack.offset):
        raise Failure(f"The stack in {stack.home} has LIKEWISE_PORT_OFFSET={stack.offset}, not {asked}.")
    return stack


def run(arguments: list[str]) -> None:
    """Becomes the binary with the stack's environment; does not return."""
    stack = running()
    if stack.kind == "compose":
        compose.operator_command(stack, arguments)
    binary = str(build.binary(stack))
    if not os.access(binary, os.X_OK):
        raise Failure(f"There is no {binary} yet: run scripts/up.")
    os.execve(binary, [binary, *arguments], stack.environment())


def interrupt(number: int, _frame: object) -> None:
    """A polite end of this script is one like Ctrl-C: what was started is stopped."""
    raise KeyboardInterrupt(number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except Failure as failure:
        print(f"scripts/{'likewise' if sys.argv[1] == 'run' else sys.argv[1]}: {failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        print(f"scripts/{sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(1)
