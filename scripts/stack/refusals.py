"""What `up` looks at before it starts anything: whose folder, whose ports."""

from __future__ import annotations

import socket

from stack import connect, kafka, mongodb, mysql, roles
from stack.failure import Failure
from stack.process import Processes
from stack.settings import Settings, remembered

SERVERS = (connect.NAME, kafka.NAME, mongodb.NAME, mysql.NAME)
"""In the order in which they are stopped: whoever uses another one first."""
PORTS_OF = {"kafka": ("kafka", "kafka-controller")}
"""Who opens another port than the one of its own name."""


def refuse_strange_folder(settings: Settings) -> None:
    """Fails if the home is a folder with somebody else's files in it."""
    if remembered(settings.home) is None and settings.home.is_dir():
        if any(entry.name != "lock" for entry in settings.home.iterdir()):
            raise Failure(
                f"{settings.home} is not empty and not the home of a stack: "
                "point LIKEWISE_HOME at a folder that is empty or does not exist."
            )


def refuse_other_offset(settings: Settings, processes: Processes) -> None:
    """Fails if the stack runs with another offset than the one asked for."""
    known = remembered(settings.home)
    if known is not None and known.offset != settings.offset:
        if any(processes.pid(name) is not None for name in (*SERVERS, *roles.ROLES)):
            raise Failure(
                f"The stack in {settings.home} runs with LIKEWISE_PORT_OFFSET={known.offset}: "
                f"stop it with scripts/down before you start it with {settings.offset}."
            )


def refuse_taken_ports(settings: Settings, processes: Processes) -> None:
    """Fails if a port that is to be opened belongs to somebody else."""
    taken = [
        f"{settings.port(port)} ({name})"
        for name in (*reversed(SERVERS), *roles.ROLES)
        if processes.pid(name) is None
        for port in PORTS_OF.get(name, (name,))
        if is_taken(settings.port(port))
    ]
    if taken:
        plural = len(taken) > 1
        raise Failure(
            f"Port{'s' if plural else ''} {', '.join(taken)} {'are' if plural else 'is'} in use by another program: "
            "stop that, or set LIKEWISE_PORT_OFFSET to a number from 100 on, which is added to every port."
        )


def is_taken(port: int) -> bool:
    """Whether somebody listens on a loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
