"""Which packages the servers come from, and how to get them: by apt where that is allowed, else by telling how."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence

from . import debian
from .programs import MissingProgram, erlang_program, postgres_program, rabbitmq_program, redis_program

_WANTED = "RabbitMQ 3.10 or newer, PostgreSQL 15 or newer and Redis 7 or newer"
_PROGRAMS: Sequence[tuple[str, Callable[[], str]]] = (
    ("rabbitmq-server", lambda: rabbitmq_program("rabbitmq-server")),
    ("rabbitmq-server", lambda: rabbitmq_program("rabbitmqctl")),
    ("rabbitmq-server", lambda: erlang_program("erl_call")),
    ("postgresql", lambda: postgres_program("initdb")),
    ("redis-server", redis_program),
)


class NotInstalled(Exception):
    """The message says what is missing here and what to type."""


def install_missing(tell: Callable[[str], None]) -> None:
    """What is missing is installed when this is root on Debian or Ubuntu. Raises NotInstalled when it cannot be."""
    missing = missing_packages()
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        try:
            debian.install(missing, tell)
        except debian.InstallError as error:
            raise NotInstalled(f"{error}\n{how_to_install(missing)}") from None
        missing = missing_packages()
    if missing:
        raise NotInstalled(how_to_install(missing))


def missing_packages() -> list[str]:
    """By Debian's names, each once."""
    missing: dict[str, None] = {}
    for package, find in _PROGRAMS:
        try:
            find()
        except MissingProgram:
            missing[package] = None
    return list(missing)


def how_to_install(missing: Sequence[str]) -> str:
    names = " ".join(missing)
    if sys.platform == "darwin":
        brew = names.replace("rabbitmq-server", "rabbitmq").replace("postgresql", "postgresql@17")
        how = f"brew install {brew.replace('redis-server', 'redis')}   (brew services need not be started)"
    elif shutil.which("apt-get"):
        how = f"sudo apt-get install --no-install-recommends {names}"
    elif shutil.which("dnf"):
        dnf = names.replace("postgresql", "postgresql-server").replace("redis-server", "redis")
        how = f"sudo dnf install {dnf}"
    else:
        how = f"install what your system calls {names}, and see that their programs are on the PATH"
    return f"{_WANTED} are needed, and not all are here. Install what is missing and run this again:\n  {how}"
