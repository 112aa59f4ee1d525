"""What `up` prints at its end: where everything is, and three commands to try."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from stack.settings import CHECKOUT, Settings

SHOWN = ("write-api", "read-api", "aggregator", "reconciler", "connect", "mysql", "kafka", "mongodb")


def show(settings: Settings, told: Mapping[str, str] | None = None, logs: str | None = None) -> None:
    """Prints addresses, logs and commands that work by copy and paste from where the user is."""
    token = (told or settings.environment())["LIKEWISE_SERVICE_TOKEN"]
    bearer = shlex.quote(f"Authorization: Bearer {token}")
    print()
    for name in SHOWN:
        scheme = "" if name in ("mysql", "kafka", "mongodb") else "http://"
        print(f"{name:<11} {scheme}{settings.address(name)}")
    print(f"{'docs':<11} http://{settings.address('write-api')}/docs and http://{settings.address('read-api')}/docs")
    print(f"{'logs':<11} {logs or settings.home / 'logs'}")
    print("\nTry (a count follows its like within a fraction of a second)")
    print(f"  curl -sSw '\\n' -X PUT -H {bearer} -H 'X-User-Id: u1' http://{settings.address('write-api')}/v1/posts/p1/like")
    print(f"  curl -sSw '\\n' -H {bearer} http://{settings.address('read-api')}/v1/posts/p1/count")
    print(f"  {script('likewise', settings.home)} status", flush=True)


def script(name: str, home: Path) -> str:
    """How to call a script of this checkout for this home from the current folder."""
    path = CHECKOUT / "scripts" / name
    try:
        near = os.path.relpath(path)
        shown = path.as_posix() if near.startswith("..") else f"./{near}"
    except (OSError, ValueError):
        shown = str(path)
    prefix = "" if home == CHECKOUT / ".likewise" else f"LIKEWISE_HOME={shlex.quote(str(home))} "
    return prefix + shlex.quote(shown)
