"""Kafka: one node that is broker and controller."""

from __future__ import annotations

import base64
import socket
import struct
import uuid
from pathlib import Path

from stack import fetch, java
from stack.process import Program, fingerprint
from stack.settings import CHECKOUT, Settings

NAME = "kafka"
VERSION = "4.3.1"
ITEM = f"kafka-{VERSION}"
READY_SECONDS = 120.0
HEAP = "1g"
LOGGING = CHECKOUT / "kafka" / "log4j2.properties"


def is_fetched() -> bool:
    """Whether nothing has to be fetched."""
    return fetch.item(ITEM).is_dir()


def jars() -> Path:
    """The folder with the jars of Kafka and Connect, fetched if need be."""
    return fetch.fetched(NAME, ITEM, lambda folder: fetch.maven_jars("kafka", folder))


def program(settings: Settings) -> Program:
    """The broker as it is to run; writes its properties into the home."""
    folder = settings.home / NAME
    controller = settings.address("kafka-controller")
    own = {
        "controller.quorum.bootstrap.servers": controller,
        "listeners": f"PLAINTEXT://{settings.address(NAME)},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{settings.address(NAME)}",
        "log.dirs": "data",  # relative, because Kafka would read a comma in a path as a second folder
    }
    text = java.write_properties(CHECKOUT / "kafka" / "server.properties", own, folder / "server.properties")
    command = java.call(jars(), LOGGING, HEAP, "kafka.Kafka", "server.properties")
    return Program(NAME, command, folder, java.environment(), fingerprint(command, text, LOGGING.read_text()))


def initialize(kafka: Program) -> None:
    """Gives the data folder its cluster id, once."""
    if (kafka.folder / "data" / "meta.properties").is_file():
        return
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    if cluster.startswith("-"):
        cluster = "A" + cluster[1:]
    fetch.run(
        "Making Kafka's data folder",
        java.call(jars(), LOGGING, HEAP, "kafka.tools.StorageTool", "format", "--standalone",
                  "-t", cluster, "-c", "server.properties"),
        cwd=kafka.folder, env=dict(kafka.environment),
    )


def is_ready(settings: Settings) -> bool:
    """Whether the broker answers a metadata request and names a broker in it, which it does once it takes part."""
    client = b"likewise-up"
    no_topics_no_creation = struct.pack(">i?", 0, False)
    request = struct.pack(">hhih", 3, 4, 1, len(client)) + client + no_topics_no_creation
    try:
        with socket.create_connection(("127.0.0.1", settings.port(NAME)), timeout=2) as broker:
            broker.sendall(struct.pack(">i", len(request)) + request)
            answer = b""
            while len(answer) < 16:
                part = broker.recv(4096)
                if not part:
                    return False
                answer += part
    except OSError:
        return False
    _size, _correlation, _throttle, brokers = struct.unpack(">iiii", answer[:16])
    return bool(brokers > 0)
