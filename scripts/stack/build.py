"""The one binary: built from the checkout, then put into the home."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import time
from pathlib import Path

from stack.failure import Failure
from stack.fetch import cache_folder, locked
from stack.progress import say
from stack.settings import CHECKOUT, Settings

PROFILES = {"dev": "debug", "release": "release"}
"""Cargo's profiles, and the folder each builds into."""


def binary(settings: Settings) -> Path:
    """The binary that this stack runs."""
    return settings.home / "bin" / "likewise"


def build(settings: Settings) -> None:
    """Builds the binary and replaces the home's one if it differs. Fails before that if it does not compile."""
    profile = os.environ.get("LIKEWISE_PROFILE") or "dev"
    if profile not in PROFILES:
        raise Failure(f"LIKEWISE_PROFILE is '{profile}': it has to be {' or '.join(PROFILES)}.")
    told = environment()
    target = CHECKOUT / told["CARGO_TARGET_DIR"]
    with locked(target / "likewise.lock", "for another build"):
        began = time.monotonic()
        say("build", f"cargo build, profile {profile}")
        done = subprocess.run(
            # The whole workspace, as the tests: another choice of packages would compile the crates with other features.
            ["cargo", "build", "--locked", "--workspace", "--bin", "likewise", "--profile", profile],
            cwd=CHECKOUT, env=told, stdin=subprocess.DEVNULL, check=False,
        )
        if done.returncode != 0:
            raise Failure(f"likewise could not be built: cargo ended with exit code {done.returncode}, see above.")
        put(target / PROFILES[profile] / "likewise", binary(settings))
        say("build", "built", time.monotonic() - began)


def environment() -> dict[str, str]:
    """Cargo's environment: one target folder for every checkout of this user, so that a fresh clone finds the crates
    compiled. The wrapper keeps the checkouts' own crates apart, which cargo takes for the same ones otherwise."""
    shared = {
        "CARGO_TARGET_DIR": str(cache_folder() / "target"),
        "RUSTC_WORKSPACE_WRAPPER": str(CHECKOUT / "scripts" / "stack" / "workspace-rustc"),
    }
    return {**shared, **os.environ}


def put(built: Path, placed: Path) -> None:
    """Copies a file to its place in one step; leaves an equal one untouched."""
    if placed.is_file() and filecmp.cmp(built, placed, shallow=False):
        return
    placed.parent.mkdir(parents=True, exist_ok=True)
    fresh = placed.with_name(placed.name + ".new")
    shutil.copyfile(built, fresh)
    fresh.chmod(0o755)
    fresh.replace(placed)
