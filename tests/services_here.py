"""A PostgreSQL database, a RabbitMQ virtual host and a Redis number for each pytest process, on services that run.

Which services, the variables INSIKA_TEST_POSTGRES_URL, INSIKA_TEST_AMQP_URL and INSIKA_TEST_REDIS_URL say. Each is made
when the first test asks for it and removed at the end, so that the workers of pytest-xdist never meet.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import redis
from psycopg import sql

from scripts.private_services import RabbitConsole, records

_REDIS_NUMBERS = range(32, 64)
_HOW = 'run scripts/test, or eval "$(scripts/services env)" after scripts/services up'


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A database of this process alone, made empty; all its tests share it."""
    with _database() as url:
        yield url


@pytest.fixture
def fresh_postgres_url() -> Iterator[str]:
    """An empty database of one test alone."""
    with _database() as url:
        yield url


@pytest.fixture(scope="session")
def amqp_url() -> Iterator[str]:
    """A virtual host of this process alone."""
    base = _given("INSIKA_TEST_AMQP_URL")
    name = f"insika-test-{uuid.uuid4().hex[:12]}"
    console = console_of(base)
    console.add_vhost(name)
    yield _at(base, name)
    console.remove_vhost(name)


@pytest.fixture
def clean_amqp_url(amqp_url: str) -> str:
    """The same virtual host with nothing in it and nobody connected to it."""
    console_of(amqp_url).empty_vhost(urlsplit(amqp_url).path[1:])
    return amqp_url


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A number of this process alone, flushed. The lock on its file goes with the process, however that ends."""
    base = _given("INSIKA_TEST_REDIS_URL")
    folder, _ = _started_here(base, "redis")
    for number in _REDIS_NUMBERS:
        with (folder / f"redis-number-{number}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            url = _at(base, str(number))
            with redis.Redis.from_url(url) as client:
                client.flushdb()
                yield url
                client.flushdb()
            return
    pytest.fail(f"all Redis numbers from {_REDIS_NUMBERS.start} to {_REDIS_NUMBERS.stop - 1} are in use at {base}")


@contextlib.contextmanager
def _database() -> Iterator[str]:
    base = _given("INSIKA_TEST_POSTGRES_URL")
    name = f"insika_test_{uuid.uuid4().hex[:12]}"
    _on_postgres(base, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield _at(base, name)
    finally:
        _on_postgres(base, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _given(variable: str) -> str:
    url = os.environ.get(variable)
    if not url:
        pytest.fail(f"{variable} is not set, and this test needs a real service: {_HOW}.", pytrace=False)
    return url


def _at(base: str, path: str) -> str:
    return urlunsplit(urlsplit(base)._replace(path=f"/{path}"))


def _on_postgres(base: str, statement: sql.Composed) -> None:
    with psycopg.connect(base, autocommit=True, connect_timeout=10) as connection:
        connection.execute(statement)


def console_of(amqp_url: str) -> RabbitConsole:
    """Over AMQP, virtual hosts can neither be made nor emptied."""
    _, node = _started_here(amqp_url, "rabbitmq")
    return RabbitConsole(node["node"], node["cookie"], node["epmd_port"])


def _started_here(url: str, name: str) -> tuple[Path, Mapping[str, Any]]:
    """The folder of the services that listen there, and what those who started them wrote down."""
    for folder, record in records():
        if name in record and record[name]["port"] == urlsplit(url).port:
            return folder, record[name]
    pytest.fail(f"the {name} at {url} was not started by scripts/services: {_HOW}.", pytrace=False)
