"""MySQL: the user's own mysqld if it fits, otherwise Debian's in a root of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stack import debian, fetch
from stack.failure import Failure
from stack.process import Processes, Program, fingerprint, last_lines, on_path, replace
from stack.progress import Step
from stack.settings import CHECKOUT, Settings

NAME = "mysql"
ITEM = f"mysql-{debian.SERIES}"
CONFIGURATION = CHECKOUT / "scripts" / "mysql.cnf"
ACCOUNTS = CHECKOUT / "scripts" / "mysql-accounts.sh"
SOCKET = "mysql.sock"
"""Relative to the folder the server runs in: a whole path may be longer than the 107 bytes a socket name has."""
READY_SECONDS = 120.0


@dataclass(frozen=True)
class Installation:
    """How to call the server and its client."""

    server: list[str]
    client: list[str]


def own() -> Installation | None:
    """The user's own MySQL 8.4 or 9 on PATH, or None."""
    server, client = on_path("mysqld"), on_path("mysql")
    if server is None or client is None:
        return None
    told = subprocess.run([server, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Ver (\d+)\.(\d+)", told)
    fits = found is not None and "MariaDB" not in told and (8, 4) <= (int(found[1]), int(found[2])) < (10, 0)
    return Installation([str(server)], [str(client)]) if fits else None


def is_fetched() -> bool:
    """Whether nothing has to be fetched."""
    return own() is not None or fetch.item(ITEM).is_dir()


def installation() -> Installation:
    """The user's own, or the cached one, fetched if need be."""
    mine = own()
    if mine is not None:
        return mine
    root = fetch.fetched(NAME, ITEM, debian.fetch_mysql) / "root"
    # The packages need a newer libc than the machine may have: they run with the loader and libraries beside them.
    loaders = sorted(root.glob("usr/lib*/ld-linux-*.so.*")) + sorted(root.glob("lib*/ld-linux-*.so.*"))
    libraries = [str(folder) for top in ("usr/lib", "lib") for folder in sorted(root.glob(f"{top}/*-linux-gnu"))]
    if not loaders or not libraries:
        raise Failure(f"{root} is not complete; remove {root.parent} and run scripts/up again.")
    loaded = [str(loaders[0]), "--library-path", ":".join(libraries)]
    places = [
        f"--basedir={root}/usr",
        f"--lc-messages-dir={root}/usr/share/mysql",
        f"--character-sets-dir={root}/usr/share/mysql/charsets",
        f"--plugin-dir={root}/usr/lib/mysql/plugin",
    ]
    return Installation([*loaded, f"{root}/usr/sbin/mysqld", *places], [*loaded, f"{root}/usr/bin/mysql"])


def data_folder(settings: Settings) -> Path:
    """Where the tables and binlogs are."""
    return settings.home / NAME / "data"


def program(settings: Settings, installed: Installation) -> Program:
    """The server as it is to run; writes its configuration into the home."""
    folder = settings.home / NAME
    folder.mkdir(parents=True, exist_ok=True)
    # A copy, because MySQL silently ignores a configuration that others may write, as a checkout's file can be.
    text = CONFIGURATION.read_text()
    if not (folder / "my.cnf").is_file() or (folder / "my.cnf").read_text() != text:
        replace(folder / "my.cnf", text)
    (folder / "my.cnf").chmod(0o644)
    command = [
        *with_defaults(installed.server, folder / "my.cnf"),
        f"--datadir={data_folder(settings)}",
        f"--socket={SOCKET}",
        "--bind-address=127.0.0.1",
        f"--port={settings.port(NAME)}",
        "--mysqlx=OFF",
        "--secure-file-priv=NULL",
        *(["--user=root"] if os.geteuid() == 0 else []),
    ]
    return Program(NAME, command, data_folder(settings), server_environment(), fingerprint(command, text))


def with_defaults(server: list[str], file: Path) -> list[str]:
    """The server's command with `--defaults-file`, which has to be its first option."""
    at = next(index for index, word in enumerate(server) if word.endswith("mysqld")) + 1
    return [*server[:at], f"--defaults-file={file}", *server[at:]]


def prepare(program_: Program, processes: Processes) -> None:
    """Makes the data folder once, and clears away what a killed server of ours left."""
    data = program_.folder
    for left in (SOCKET, f"{SOCKET}.lock"):  # MySQL gives way to whatever process now has the pid in that file
        (data / left).unlink(missing_ok=True)
    if not (data / "mysql.ibd").is_file() or (data.parent / "initializing").exists():
        initialize(program_, processes)


def initialize(program_: Program, processes: Processes) -> None:
    """Makes the data folder, anew if that was cut off half way; its root has no password and is local only."""
    data = program_.folder
    (data.parent / "initializing").touch()
    accounts_made(data).unlink(missing_ok=True)
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    processes.logs.mkdir(parents=True, exist_ok=True)
    with Step(NAME, "making its data folder") as step, open(processes.log(NAME), "ab") as log:
        made = subprocess.run(
            [*program_.command, "--initialize-insecure"],
            cwd=data, env=dict(program_.environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False,
        )
        if made.returncode != 0:
            raise Failure(
                f"mysql ended with exit code {made.returncode} while it made its data folder; "
                f"its log is {processes.log(NAME)}\n{last_lines(processes.log(NAME))}"
            )
        (data.parent / "initializing").unlink()
        step.done = "made its data folder"


def query(settings: Settings, installed: Installation, sql: str) -> subprocess.CompletedProcess[str]:
    """Runs SQL as root over the socket."""
    return subprocess.run(
        [*installed.client, "--no-defaults", f"--socket={SOCKET}", "--protocol=SOCKET", "--user=root",
         "--connect-timeout=5"],
        cwd=data_folder(settings), env=server_environment(), input=sql, capture_output=True, text=True, check=False,
    )


def is_ready(settings: Settings, installed: Installation) -> bool:
    """Whether the server answers a query."""
    return query(settings, installed, "SELECT 1").returncode == 0


def make_accounts(settings: Settings, installed: Installation) -> None:
    """Makes database and accounts, or sets them right; does nothing if they were made from the same SQL before."""
    told = settings.defaults()
    passwords = {
        "MYSQL_APP_PASSWORD": password_in(told["LIKEWISE_MYSQL_URL"]),
        "MYSQL_ADMIN_PASSWORD": password_in(told["LIKEWISE_MYSQL_ADMIN_URL"]),
        "MYSQL_DEBEZIUM_PASSWORD": told["MYSQL_DEBEZIUM_PASSWORD"],
        "MYSQL_TEST_SCHEMAS": "yes",
    }
    sql = subprocess.run(
        ["sh", str(ACCOUNTS)], env={**os.environ, **passwords}, capture_output=True, text=True, check=False
    )
    version, mark = fingerprint(sql.stdout), accounts_made(data_folder(settings))
    if sql.returncode == 0 and mark.is_file() and mark.read_text() == version:
        return  # every CREATE and GRANT would be one more transaction in the binlog
    made = query(settings, installed, sql.stdout) if sql.returncode == 0 else sql
    if made.returncode != 0:
        raise Failure(f"The accounts of MySQL could not be made: {made.stderr.strip()}")
    replace(mark, version)


def accounts_made(data: Path) -> Path:
    """Remembers beside the data which accounts were made in it."""
    return data.parent / "accounts"


def password_in(url: str) -> str:
    """The password of a `mysql://user:password@host/database` address."""
    return unquote(urlsplit(url).password or "")


def server_environment() -> dict[str, str]:
    """The user's environment without what configures roles or MySQL's client."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LIKEWISE_", "MYSQL_"))}
