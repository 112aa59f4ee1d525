"""MySQL from Debian's packages in a root of its own, by a private apt: nothing is installed into the system."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from stack.failure import Failure
from stack.fetch import run

SUITE = "sid"
PACKAGES = ("mysql-server-core", "mysql-client-core")
SERIES = "9.7"
TRIED = "9.7.4-2"
"""The package this project was tried with. The suite moves: a newer one of the same series is taken, and named."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCES = Path("/etc/apt")


def fetch_mysql(folder: Path) -> str:
    """Fills `folder/root` with server and client; returns which version was taken."""
    apt = private_apt(folder / "apt")
    try:
        run("Reading Debian's package lists", [*apt("apt-get"), "-q", "update"])
        version = candidate(run("Looking for MySQL", [*apt("apt-cache"), "policy", PACKAGES[0]]))
        run("Fetching MySQL", [*apt("apt-get"), "-q", "-y", "-d", "--no-install-recommends", "install", *PACKAGES])
        for package in sorted((folder / "apt" / "cache" / "archives").glob("*.deb")):
            run("Unpacking MySQL", ["dpkg-deb", "-x", package, folder / "root"])
    finally:
        shutil.rmtree(folder / "apt", ignore_errors=True)
    (folder / "version").write_text(version + "\n")
    return f"MySQL {version}" + ("" if version == TRIED else f" (tried with {TRIED})")


def private_apt(state: Path):  # type: ignore[no-untyped-def]
    """An apt whose state, cache and sources are all below `state`; it knows of no installed package."""
    for part in ("lists/partial", "cache/archives/partial", "empty"):
        (state / part).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {SUITE} main\n")
    settings = {
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferences": "-",
        "Dir::Etc::preferencesparts": state / "empty",
        "APT::Default-Release": "",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "Debug::NoLocking": "1",
    }
    if os.geteuid() == 0:
        settings["APT::Sandbox::User"] = "root"  # apt's own user may not read a cache below /root
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return lambda program: [program, *options]


def candidate(policy: str) -> str:
    """The version apt would install; refused unless it is of the series the stack is made for."""
    found = re.search(r"Candidate:\s*(\S+)", policy)
    version = found.group(1) if found else "(none)"
    if not re.match(rf"(\d+:)?{re.escape(SERIES)}\.", version):
        raise Failure(
            f"Debian {SUITE} offers MySQL {version}, the stack needs {SERIES}.x: "
            "install MySQL 8.4 or 9 yourself, so that mysqld and mysql are on PATH."
        )
    return version


def mirror() -> str:
    """The machine's own Debian mirror, read from its apt sources."""
    for uri, suite in entries():
        if uri.rstrip("/").endswith("/debian") and not suite.endswith("-security"):
            return uri
    raise Failure(
        f"No Debian mirror in the apt sources below {SOURCES}: install MySQL 8.4 or 9 yourself, "
        "so that mysqld and mysql are on PATH."
    )


def entries() -> Iterator[tuple[str, str]]:
    """Every (address, suite) that the machine's apt is told, from one-line and deb822 files."""
    parts = SOURCES / "sources.list.d"
    for file in [SOURCES / "sources.list", *sorted(parts.glob("*.list"))]:
        if file.is_file():
            for line in file.read_text().splitlines():
                words = re.sub(r"\[[^]]*\]", " ", line.partition("#")[0]).split()
                if len(words) >= 3 and words[0] == "deb":
                    yield words[1], words[2]
    for file in sorted(parts.glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(stanza_fields(stanza))
            if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes").lower() != "no":
                for uri in fields.get("uris", "").split():
                    for suite in fields.get("suites", "").split():
                        yield uri, suite


def stanza_fields(stanza: str) -> list[tuple[str, str]]:
    """The fields of one deb822 stanza, names in lower case, continuation lines joined."""
    lines = [line for line in stanza.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\n[ \t]+", " ", "\n".join(lines))
    return [(name.strip().lower(), value.strip()) for name, sep, value in
            (line.partition(":") for line in joined.splitlines()) if sep]
