"""Where a stack lives, which ports it has, and the environment its programs get."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stack.failure import Failure

CHECKOUT = Path(__file__).resolve().parents[2]
DEV_ENV = CHECKOUT / "scripts" / "dev.env"

BASE_PORTS: Mapping[str, int] = {
    "write-api": 8080,
    "read-api": 8081,
    "aggregator": 8082,
    "connect": 8083,
    "reconciler": 8084,
    "mysql": 3306,
    "kafka": 9092,
    "kafka-controller": 9093,
    "mongodb": 27017,
}
SMALLEST_OFFSET = 100
"""Below it, one stack's write API could land on another's read API."""
LARGEST_OFFSET = 65535 - max(BASE_PORTS.values())

SCRIPT_NAMES = ("LIKEWISE_HOME", "LIKEWISE_PORT_OFFSET", "LIKEWISE_STACK", "LIKEWISE_PROFILE")
"""What steers these scripts and never the programs they start."""


@dataclass(frozen=True)
class Settings:
    """One stack: its home, the kind of stack, and how far its ports are moved."""

    home: Path
    kind: str
    offset: int

    def port(self, name: str) -> int:
        """The port of a server or role, with the offset."""
        return BASE_PORTS[name] + self.offset

    def address(self, name: str) -> str:
        """`127.0.0.1:port` of a server or role."""
        return f"127.0.0.1:{self.port(name)}"

    def defaults(self) -> dict[str, str]:
        """`scripts/dev.env` with this stack's ports."""
        return {name: moved(value, self.offset) for name, value in read_env(DEV_ENV).items()}

    def environment(self) -> dict[str, str]:
        """The environment of a role or an operator command: the user's own, then `scripts/dev.env`."""
        defaults = {name: value for name, value in self.defaults().items() if name.startswith("LIKEWISE_")}
        return {**defaults, **os.environ}

    def configuration(self) -> dict[str, str]:
        """The part of `environment()` that configures a role: a change here is a reason to restart it."""
        return {
            name: value
            for name, value in sorted(self.environment().items())
            if name.startswith("LIKEWISE_") and name not in SCRIPT_NAMES
        }

    def remember(self) -> None:
        """Writes kind and offset into the home, which marks the folder as a stack's home."""
        self.home.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"kind": self.kind, "port_offset": self.offset}) + "\n"
        if not marker(self.home).is_file() or marker(self.home).read_text() != text:
            fresh = marker(self.home).with_suffix(".new")
            fresh.write_text(text)
            fresh.replace(marker(self.home))


def marker(home: Path) -> Path:
    """The file that makes a folder a stack's home."""
    return home / "stack.json"


def remembered(home: Path) -> Settings | None:
    """What the home says about its stack; None if it is not a stack's home."""
    try:
        written = json.loads(marker(home).read_text())
        return Settings(home, written["kind"], int(written["port_offset"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{marker(home)} cannot be read as a stack's settings; put it right or remove it.") from None


def home_folder() -> Path:
    """`LIKEWISE_HOME`, or `.likewise` in the checkout."""
    return Path(os.path.abspath(os.environ.get("LIKEWISE_HOME") or CHECKOUT / ".likewise"))


def asked_offset() -> int | None:
    """`LIKEWISE_PORT_OFFSET` as the user set it, or None."""
    text = os.environ.get("LIKEWISE_PORT_OFFSET", "")
    if text == "":
        return None
    offset = int(text) if re.fullmatch(r"[0-9]{1,5}", text) else -1
    if offset != 0 and not SMALLEST_OFFSET <= offset <= LARGEST_OFFSET:
        raise Failure(
            f"LIKEWISE_PORT_OFFSET is '{text}': it has to be 0 or a whole number "
            f"from {SMALLEST_OFFSET} to {LARGEST_OFFSET}, which is added to every port."
        )
    return offset


def asked_kind() -> str | None:
    """`LIKEWISE_STACK` as the user set it, or None."""
    kind = os.environ.get("LIKEWISE_STACK") or None
    if kind not in (None, "native", "compose"):
        raise Failure(f"LIKEWISE_STACK is '{kind}': it has to be native or compose.")
    return kind


def read_env(file: Path) -> dict[str, str]:
    """Plain `NAME=value` lines as a shell would read them."""
    pairs = (word.partition("=") for word in shlex.split(file.read_text(), comments=True))
    return {name: value for name, _, value in pairs}


def moved(value: str, offset: int) -> str:
    """A value of `scripts/dev.env` with the offset added to its loopback port."""
    return re.sub(r"(?<=127\.0\.0\.1:)\d+", lambda port: str(int(port.group()) + offset), value)
