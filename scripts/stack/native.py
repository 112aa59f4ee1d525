"""The stack as processes of this machine: in which order, and what happens when one cannot start."""

from __future__ import annotations

import contextlib
import shutil
import sys
from functools import partial
from pathlib import Path

from stack import build, connect, invitation, kafka, mongodb, mysql, roles, tools
from stack.failure import Failure
from stack.fetch import locked
from stack.process import Processes
from stack.progress import say
from stack.refusals import SERVERS, refuse_other_offset, refuse_strange_folder, refuse_taken_ports
from stack.settings import Settings, marker, remembered
from stack.starting import Starting

SERVER_STOP_SECONDS = 60.0
BUSY = "for another scripts/up or scripts/down of this stack"


def up(settings: Settings) -> None:
    """Brings the whole stack up, or says why not and stops what it started."""
    if not sys.platform.startswith("linux"):
        raise Failure("The native stack needs Linux; with a Docker daemon, LIKEWISE_STACK=compose works elsewhere.")
    tools.check()
    refuse_strange_folder(settings)
    settings.home.mkdir(parents=True, exist_ok=True)
    with locked(settings.home / "lock", BUSY):
        starting = Starting(settings)
        refuse_other_offset(settings, starting.processes)
        refuse_taken_ports(settings, starting.processes)
        settings.remember()
        try:
            mysqld, mongod = mysql.installation(), mongodb.installation()
            kafka.jars(), connect.plugin()
            build.build(settings)
            start_servers(starting, mysqld, mongod)
            roles.prepare(settings)
            for role in roles.ROLES:
                is_ready = partial(roles.is_ready, settings, role)
                starting.ensure(roles.program(settings, role), is_ready, roles.READY_SECONDS)
        except BaseException:
            starting.undo()
            raise
    invitation.show(settings)


def start_servers(starting: Starting, mysqld: mysql.Installation, mongod: Path) -> None:
    """Starts the four servers that are not there yet, each once it can be used by the next."""
    settings = starting.settings
    database = mysql.program(settings, mysqld)
    restarted = starting.ensure(
        database, lambda: mysql.is_ready(settings, mysqld), mysql.READY_SECONDS,
        lambda: mysql.prepare(database, starting.processes),
    )
    mysql.make_accounts(settings, mysqld)

    replica_set = mongodb.ReplicaSet(settings)
    starting.ensure(mongodb.program(settings, mongod), replica_set.is_ready, mongodb.READY_SECONDS)

    broker = kafka.program(settings)
    starting.ensure(
        broker, lambda: kafka.is_ready(settings), kafka.READY_SECONDS, lambda: kafka.initialize(broker)
    )

    worker_is_new = starting.ensure(
        connect.program(settings), lambda: connect.is_ready(settings), connect.READY_SECONDS
    )
    if restarted and not worker_is_new:
        connect.restart_tasks(settings)


def down(settings: Settings, wipe: bool) -> None:
    """Stops roles, then servers. With `wipe`, removes what the stack put into its home."""
    if not settings.home.is_dir():
        say("down", f"there is no stack in {settings.home}")
        return
    if wipe:
        refuse_strange_folder(settings)
    elif remembered(settings.home) is None:
        say("down", f"there is no stack in {settings.home}")
        return
    with locked(settings.home / "lock", BUSY):
        stopped = stop_all(Processes(settings.home))
        if wipe:
            remove(settings)
    if wipe:
        stays = settings.home.is_dir()
        say("down", f"removed the stack in {settings.home}" + (", which holds other files and stays" if stays else ""))
    elif not stopped:
        say("down", "nothing was running")


def stop_all(processes: Processes) -> bool:
    """Stops every process of the home. Returns whether there was one."""
    known = sorted(file.stem for file in processes.run.glob("*.json"))
    others = [name for name in known if name not in (*roles.ROLES, *SERVERS)]
    ran = [processes.stop(name) for name in (*others, *roles.ROLES)]
    ran += [processes.stop(name, SERVER_STOP_SECONDS) for name in SERVERS]
    return any(ran)


def remove(settings: Settings) -> None:
    """Removes the stack's own files and folders, the mark of a stack's home last; others stay."""
    for name in (*SERVERS, *roles.ROLES, "logs", "run", "bin"):
        if (settings.home / name).exists():
            shutil.rmtree(settings.home / name)
    for file in (settings.home / "lock", marker(settings.home)):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        settings.home.rmdir()
