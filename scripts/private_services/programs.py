"""Where the servers' programs are: where Debian and Homebrew put them, else on the PATH."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_POSTGRES_AT_LEAST = 15
_POSTGRES_FOLDERS = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # the PostgreSQL project's own RPMs
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
# Debian's /usr/sbin/rabbitmq-server is a wrapper that insists on its own account and log files; the real one does not.
_RABBITMQ_FOLDERS = ("/usr/lib/rabbitmq/bin", "/opt/homebrew/sbin", "/usr/local/sbin")


class MissingProgram(Exception):
    """`name` is the program that was looked for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed")
        self.name = name


def postgres_program(name: str) -> str:
    """One of PostgreSQL's programs, all of them from the newest version that is installed."""
    folders = [folder for pattern in _POSTGRES_FOLDERS for folder in Path("/").glob(pattern.lstrip("/"))]
    for folder in sorted(folders, key=_version, reverse=True):
        if _version(folder) >= _POSTGRES_AT_LEAST and (folder / "postgres").exists() and (folder / name).exists():
            return str(folder / name)
    return _on_path(name)


def rabbitmq_program(name: str) -> str:
    for folder in _RABBITMQ_FOLDERS:
        if (Path(folder) / name).exists():
            return str(Path(folder) / name)
    return _on_path(name)


def redis_program() -> str:
    return _on_path("redis-server")


def erlang_program(name: str) -> str:
    return _on_path(name)


def _version(folder: Path) -> int:
    numbers = re.findall(r"(?:postgresql/|pgsql-|postgresql@)(\d+)", str(folder))
    return int(numbers[-1]) if numbers else 0


def _on_path(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin")
    if found is None:
        raise MissingProgram(name)
    return found
