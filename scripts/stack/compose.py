"""The stack as containers: `compose.yaml` with secrets of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from stack import invitation
from stack.failure import Failure
from stack.fetch import locked
from stack.progress import say
from stack.settings import BASE_PORTS, CHECKOUT, Settings, marker, read_env

ANSWER_SECONDS = 5
SECRETS = (
    "MYSQL_ROOT_PASSWORD",
    "MYSQL_APP_PASSWORD",
    "MYSQL_ADMIN_PASSWORD",
    "MYSQL_DEBEZIUM_PASSWORD",
    "LIKEWISE_SERVICE_TOKEN",
    "LIKEWISE_OPERATOR_TOKEN",
    "LIKEWISE_JWT_SECRET",
    "LIKEWISE_CURSOR_KEY",
)
SECRET_BYTES = 32
TOOLBOX = "migrate"
"""The service in whose place an operator command runs."""
INSIDE = {
    "LIKEWISE_CONNECT_URL": "http://connect:8083",
    "LIKEWISE_WRITE_API_URL": "http://write-api:8080",
    "LIKEWISE_READ_API_URL": "http://read-api:8081",
    "LIKEWISE_AGGREGATOR_URL": "http://aggregator:8082",
    "LIKEWISE_RECONCILER_URL": "http://reconciler:8084",
}
"""What an operator command is told beside that service's own environment."""


def answers() -> bool:
    """Whether there is a Docker daemon, and compose to talk to it."""
    if not shutil.which("docker"):
        return False
    try:
        return all(
            subprocess.run(["docker", *ask], capture_output=True, timeout=ANSWER_SECONDS, check=False).returncode == 0
            for ask in (["info"], ["compose", "version"])
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def up(settings: Settings) -> None:
    """Starts the containers and returns once they are healthy."""
    if not answers():
        raise Failure("LIKEWISE_STACK is compose, but no Docker daemon with compose answers; native works without.")
    settings.remember()
    with locked(settings.home / "lock", "for another scripts/up of this stack"):
        make_secrets(settings)
        run(settings, ["up", "-d", "--build", "--wait", "--remove-orphans"])
    logs = " ".join([*words(settings), "logs"])
    invitation.show(settings, read_env(secrets_file(settings)), logs)


def down(settings: Settings, wipe: bool) -> None:
    """Stops the containers. With `wipe`, removes their volumes and the secrets too."""
    if not secrets_file(settings).is_file():
        say("down", f"there is no stack in {settings.home}")
        return
    run(settings, ["down", *(["--volumes"] if wipe else [])])
    if wipe:
        for file in (secrets_file(settings), settings.home / "lock", marker(settings.home)):
            file.unlink(missing_ok=True)


def operator_command(settings: Settings, arguments: list[str]) -> None:
    """Becomes an operator command inside the stack's network; does not return."""
    if not secrets_file(settings).is_file():
        raise Failure("The stack is not there yet: run scripts/up.")
    told = {**read_env(secrets_file(settings)), **INSIDE}
    names = [*INSIDE, "LIKEWISE_SERVICE_TOKEN", "LIKEWISE_OPERATOR_TOKEN"]
    passed = [word for name in names for word in ("-e", name)]
    command = [*words(settings), "run", "--rm", "--no-deps", *passed, TOOLBOX, *arguments]
    os.execvpe(command[0], command, {**environment(settings), **told})


def secrets_file(settings: Settings) -> Path:
    """Where the secrets of this stack are, readable by its user alone."""
    return settings.home / "compose.env"


def make_secrets(settings: Settings) -> None:
    """Draws the secrets that are not there yet; letters, digits, '-' and '_', as they stand inside URLs."""
    file = secrets_file(settings)
    known = read_env(file) if file.is_file() else {}
    for name in SECRETS:
        known.setdefault(name, secrets.token_urlsafe(SECRET_BYTES))
    fresh = file.with_suffix(".new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        out.writelines(f"{name}={value}\n" for name, value in known.items())
    fresh.replace(file)


def run(settings: Settings, arguments: list[str]) -> None:
    """Runs compose to its end, its output in front of the user."""
    done = subprocess.run([*words(settings), *arguments], env=environment(settings), check=False)
    if done.returncode != 0:
        raise Failure(f"docker compose {arguments[0]} ended with exit code {done.returncode}, see above.")


def words(settings: Settings) -> list[str]:
    """The compose command for this stack."""
    project = "likewise" if settings.offset == 0 else f"likewise-{settings.offset}"
    file, told = str(CHECKOUT / "compose.yaml"), str(secrets_file(settings))
    return ["docker", "compose", "-f", file, "--env-file", told, "--project-name", project]


def environment(settings: Settings) -> dict[str, str]:
    """The user's environment without what steers roles, and with the ports that compose cannot add up itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LIKEWISE_", "MYSQL_"))}
    ports = {f"LIKEWISE_{name.upper().replace('-', '_')}_PORT": str(settings.port(name)) for name in BASE_PORTS}
    return {**kept, **ports}
