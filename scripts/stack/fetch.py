"""The cache of fetched servers: each item is complete under its name, or not there."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

from stack.failure import Failure
from stack.progress import Step, say
from stack.settings import CHECKOUT


def cache_folder() -> Path:
    """The user's own cache, shared by every checkout and every stack."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "likewise"


@contextmanager
def locked(file: Path, waiting: str = "") -> Iterator[None]:
    """Holds `file` against every other process; says `waiting` if it has to wait for one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with open(file, "a", encoding="utf-8") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waiting:
                    say("waiting", waiting)
                fcntl.flock(held, fcntl.LOCK_EX)
            if not is_still(held.fileno(), file):
                continue  # the holder before us removed the file: its lock protects nothing any more
            yield
            return


def is_still(descriptor: int, file: Path) -> bool:
    """Whether an open file is the one that its path names."""
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


def item(name: str) -> Path:
    """Where an item of the cache is once it is complete."""
    return cache_folder() / name


def fetched(who: str, name: str, fetch: Callable[[Path], str | None]) -> Path:
    """The item `name`; if it is not in the cache, `fetch(folder)` fills a new folder that then gets that name.

    Two stacks that want the same item at once fetch it once. `fetch` may return a remark for the user.
    """
    final = item(name)
    if final.is_dir():
        return final
    with locked(cache_folder() / "locks" / f"{name}.lock", f"for another fetch of {name}"):
        if final.is_dir():
            return final
        partial = cache_folder() / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with Step(who, f"fetching {name}", lambda: f"({size_mb(partial)} MB)") as step:
            remark = fetch(partial)
            partial.rename(final)
            step.done = f"fetched {remark or name}"
    return final


def size_mb(folder: Path) -> int:
    """How much a folder holds by now."""
    total = 0
    for path, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.lstat(os.path.join(path, file)).st_size
            except OSError:
                pass
    return total // 1_000_000


def run(what: str, command: Sequence[object], **options: object) -> str:
    """Runs a fetching command to its end and returns its output; a failure shows the last lines of it."""
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        **options,  # type: ignore[call-overload]
    )
    if done.returncode != 0:
        last = "\n".join("  " + line for line in done.stdout.strip().splitlines()[-15:])
        raise Failure(f"{what} failed: {command[0]} ended with exit code {done.returncode}.\n{last}")
    return str(done.stdout)


def maven_jars(part: str, folder: Path) -> None:
    """Puts the jars that `<part>/pom.xml` names into `folder`; Maven checks their checksums."""
    run(
        f"Fetching the jars of {part}/pom.xml",
        ["mvn", "-q", "-B", "-C", "-f", CHECKOUT / part / "pom.xml", "dependency:copy-dependencies",
         "-DincludeScope=runtime", f"-DoutputDirectory={folder}"],
        cwd=CHECKOUT / part,
    )
