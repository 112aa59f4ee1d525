"""Kafka Connect with Debezium's MySQL connector in it."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from pathlib import Path

from stack import fetch, java, kafka
from stack.failure import Failure
from stack.process import Program, fingerprint
from stack.settings import CHECKOUT, Settings

NAME = "connect"
PLUGIN_VERSION = "3.6.1.Final"
ITEM = f"debezium-{PLUGIN_VERSION}"
READY_SECONDS = 180.0
RESTART_SECONDS = 60.0
HEAP = "1g"
EXACTLY_ONCE = "LIKEWISE_CONNECTOR_EXACTLY_ONCE"
LOGGING = CHECKOUT / "debezium" / "log4j2.properties"

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_fetched() -> bool:
    """Whether nothing has to be fetched."""
    return fetch.item(ITEM).is_dir()


def plugin() -> Path:
    """The folder that holds the connector's folder, fetched if need be."""
    return fetch.fetched("debezium", ITEM, lambda folder: fetch.maven_jars("debezium", folder / "debezium-mysql"))


def program(settings: Settings) -> Program:
    """The worker as it is to run; writes its properties into the home. Passwords stay in its environment."""
    folder = settings.home / NAME
    own = {
        "listeners": f"http://{settings.address(NAME)}",
        "rest.advertised.host.name": "127.0.0.1",
        "plugin.path": str(plugin()),
        **exactly_once(settings),
    }
    text = java.write_properties(CHECKOUT / "debezium" / "connect.properties", own, folder / "connect.properties")
    told = {
        "CONNECT_KAFKA_BROKERS": settings.address("kafka"),
        "CONNECT_MYSQL_HOST": "127.0.0.1",
        "CONNECT_MYSQL_PORT": str(settings.port("mysql")),
        "CONNECT_MYSQL_USER": "debezium",
        "CONNECT_MYSQL_PASSWORD": settings.defaults()["MYSQL_DEBEZIUM_PASSWORD"],
    }
    command = java.call(
        kafka.jars(), LOGGING, HEAP, "org.apache.kafka.connect.cli.ConnectDistributed", "connect.properties"
    )
    return Program(
        NAME, command, folder, java.environment(**told), fingerprint(command, text, told, LOGGING.read_text())
    )


def exactly_once(settings: Settings) -> dict[str, str]:
    """What overrides the worker's exactly-once support, as the same setting of the binary does for the connector."""
    asked = settings.environment().get(EXACTLY_ONCE, "true")
    if asked not in ("true", "false"):
        raise Failure(f"{EXACTLY_ONCE} is '{asked}': it has to be true or false.")
    return {} if asked == "true" else {"exactly.once.source.support": "disabled"}


def is_ready(settings: Settings) -> bool:
    """Whether the worker lists its connectors, which it does once it is a member of its group."""
    return answers(f"http://{settings.address(NAME)}/connectors")


def answers(url: str) -> bool:
    """Whether a GET answers 200, without a proxy in between."""
    try:
        with _direct.open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def restart_tasks(settings: Settings) -> None:
    """Starts the connector's task anew from its durable offset, if there is one: it does not reconnect by itself."""
    path = "/connectors/likewise/restart?includeTasks=true&onlyFailed=false"
    ask = urllib.request.Request(f"http://{settings.address(NAME)}{path}", method="POST")
    end = time.monotonic() + RESTART_SECONDS
    while True:
        try:
            _direct.open(ask, timeout=30).close()
            return
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return
            if error.code != 409 or time.monotonic() > end:  # 409: the group is just being set up again
                raise
        time.sleep(0.5)
