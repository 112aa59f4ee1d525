"""Programs of the Java machine: how they are called, and their properties files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from stack.process import replace


def call(jars: Path, logging: Path, heap: str, *arguments: str) -> list[str]:
    """A command that runs a class of `jars`, with its log to standard output."""
    return [
        "java", f"-Xmx{heap}", "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", f"{jars}/*", *arguments,
    ]


def write_properties(base: Path, own: Mapping[str, str], file: Path) -> str:
    """Writes `base` and then the stack's own lines, which count where a key stands in both; returns the text."""
    lines = [f"{name}={escaped(value)}" for name, value in own.items()]
    text = base.read_text() + "\n# This stack's own.\n" + "\n".join(lines) + "\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    replace(file, text)
    return text


def escaped(value: str) -> str:
    """A value as a properties file holds it: ASCII, backslashes doubled."""
    plain = value.replace("\\", "\\\\")
    utf16 = plain.encode("utf-16-be")
    units = [int.from_bytes(utf16[at:at + 2], "big") for at in range(0, len(utf16), 2)]
    return "".join(chr(unit) if unit < 128 else f"\\u{unit:04x}" for unit in units)


def environment(**own: str) -> dict[str, str]:
    """The user's environment without what configures roles, and with a server's own names."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LIKEWISE_", "CONNECT_"))}
    return {**kept, **own}
