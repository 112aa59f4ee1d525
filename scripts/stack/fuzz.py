"""Both APIs' documents against the specification, and schemathesis against both APIs of a running stack."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from stack import fetch
from stack.settings import CHECKOUT, Settings

FOLDER = CHECKOUT / "tests" / "openapi"
REQUIREMENTS = FOLDER / "requirements.txt"


def installation() -> Path:
    """The folder of the packages, fetched if need be; another list of them is another item of the cache."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return fetch.fetched("fuzz", f"schemathesis-{python}-{digest}", install)


def install(folder: Path) -> str:
    """Fills `folder` with the packages."""
    fetch.run("Fetching schemathesis", [sys.executable, "-m", "pip", "install", "-q", "--no-deps",
                                        "--disable-pip-version-check", "--target", folder, "-r", REQUIREMENTS])
    return "schemathesis"


def fuzz(stack: Settings, options: list[str]) -> int:
    """Runs it against each API and returns the exit code: 0 without a failure."""
    packages = installation()
    told = stack.environment()
    environment = {**told, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    # It leaves files where it runs.
    with tempfile.TemporaryDirectory(prefix="likewise-fuzz-") as folder:
        return run(told, environment, folder, options)


def run(told: Mapping[str, str], environment: Mapping[str, str], folder: str, options: list[str]) -> int:
    """The documents first, then each API."""
    documents = sorted(CHECKOUT.glob("services/*/openapi.json"))
    validator = [sys.executable, "-m", "openapi_spec_validator", *map(str, documents)]
    code = subprocess.run(validator, env=environment, cwd=folder, check=False).returncode
    for api in ("LIKEWISE_WRITE_API_URL", "LIKEWISE_READ_API_URL"):
        command = [
            sys.executable, "-m", "schemathesis.cli",
            "--config-file", str(FOLDER / "schemathesis.toml"),
            "run", f"{told[api]}/openapi.json", *options,
        ]
        code |= subprocess.run(command, env=environment, cwd=folder, check=False).returncode
    return code
