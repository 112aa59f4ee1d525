"""What the machine itself has to bring, asked for before anything is started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

from stack import connect, kafka, mongodb, mysql
from stack.failure import Failure

SMALLEST_JAVA = 17


class Missing(NamedTuple):
    """A tool that is not there, and the Debian package that brings it, if there is one."""

    tool: str
    package: str


def check(building: bool = True) -> None:
    """Fails with one message that names every missing tool and the Debian package that brings it."""
    missing = [*for_servers(), *(for_building() if building else [])]
    if missing:
        packages = sorted({lack.package for lack in missing if lack.package})
        raise Failure(
            f"Missing on this machine: {', '.join(lack.tool for lack in missing)}."
            + (f" On Debian: apt-get install {' '.join(packages)}" if packages else "")
        )


def for_servers() -> list[Missing]:
    """What running the servers, and fetching those that are not there yet, lacks."""
    missing = []
    if java_version() < SMALLEST_JAVA:
        missing.append(Missing(f"java {SMALLEST_JAVA} or newer", "default-jre-headless"))
    if not (kafka.is_fetched() and connect.is_fetched()) and not shutil.which("mvn"):
        missing.append(Missing("mvn", "maven"))
    if not mongodb.is_fetched() and not python_has_pip():
        missing.append(Missing(f"pip for {sys.executable}", "python3-pip"))
    if not mysql.is_fetched():
        for tool, package in (("apt-get", "apt"), ("dpkg-deb", "dpkg")):
            if not shutil.which(tool):
                missing.append(Missing(f"{tool} (or mysqld 8.4 or 9 with its client)", package))
    return missing


def for_building() -> list[Missing]:
    """What building the binary lacks."""
    needed = (("cc", "gcc"), ("c++", "g++"), ("make", "make"), ("pkg-config", "pkg-config"))
    missing = [Missing(tool, package) for tool, package in needed if not shutil.which(tool)]
    if not shutil.which("cargo"):
        missing.insert(0, Missing("cargo (Rust, by rustup: Debian's own is too old)", ""))
    if not os.environ.get("OPENSSL_DIR") and not has_library("openssl"):
        missing.append(Missing("OpenSSL's headers", "libssl-dev"))
    return missing


def has_library(name: str) -> bool:
    """Whether pkg-config knows the headers of a library."""
    asked = ["pkg-config", "--exists", name]
    return bool(shutil.which(asked[0])) and subprocess.run(asked, check=False).returncode == 0


def java_version() -> int:
    """The feature version of the java on PATH; 0 if there is none."""
    if not shutil.which("java"):
        return 0
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found.group(1)) if found else 0


def python_has_pip() -> bool:
    """Whether this Python brings pip."""
    return subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
