"""A cluster for each test: a database, a virtual host and a Redis number of its own, a receiver that verifies, and
processes that end with the test. The logs of a test that fails are shown."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from actors.receiver import Received, Receiver
from insika.storage.postgres.schema import migrate
from scripts.private_services import PrivateServices
from tests.faults.cluster.cluster import Cluster, Services
from tests.faults.shop import SECRET
from tests.services_here import console_of

CONSUMER_TIMEOUT_MS = 3_000
MESSAGE_MAX = 1024 * 1024

_FAILED = pytest.StashKey[bool]()
_LINES, _COLUMNS = 40, 300


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture
def empty_redis_url(redis_url: str) -> str:
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    return redis_url


@pytest.fixture
def services(fresh_postgres_url: str, clean_amqp_url: str, empty_redis_url: str) -> Services:
    migrate(fresh_postgres_url)
    return Services(fresh_postgres_url, clean_amqp_url, empty_redis_url, console_of(clean_amqp_url))


@pytest.fixture
async def cluster(tmp_path: Path, services: Services, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    async with _cluster(tmp_path, services, request) as made:
        yield made


@pytest.fixture(scope="session")
def _own() -> Iterator[PrivateServices]:
    """Shared by the tests of one pytest process that do something to a server. Nothing here is about durability."""
    rabbitmq = {"consumer_timeout": str(CONSUMER_TIMEOUT_MS), "max_message_size": str(MESSAGE_MAX)}
    with PrivateServices.start(
        which=["rabbitmq", "postgres"], rabbitmq_settings=rabbitmq, postgres_settings={"fsync": "off"}
    ) as services:
        yield services


@pytest.fixture
def own(_own: PrivateServices) -> PrivateServices:
    """A RabbitMQ and a PostgreSQL to be stopped, killed and configured. They run when a test begins, whatever the one
    before did to them. Less patient than by default: a message may be held for CONSUMER_TIMEOUT_MS, and be no larger
    than MESSAGE_MAX."""
    _own.bring_up()
    return _own


@pytest.fixture
def own_services(own: PrivateServices, empty_redis_url: str) -> Iterator[Services]:
    name = f"cluster-{uuid.uuid4().hex[:12]}"
    database = own.postgres.create_database(name)
    migrate(database)
    own.rabbitmq.console.add_vhost(name)
    yield Services(database, own.rabbitmq.url_of(name), empty_redis_url, own.rabbitmq.console)
    own.bring_up()
    own.rabbitmq.console.remove_vhost(name)


@pytest.fixture
async def own_cluster(tmp_path: Path, own_services: Services, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    async with _cluster(tmp_path, own_services, request) as made:
        yield made


@asynccontextmanager
async def _cluster(folder: Path, services: Services, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    received: list[Received] = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        made = Cluster(folder, services, receiver.url, received)
        try:
            yield made
        finally:
            made.end()
            if request.node.stash.get(_FAILED, False):
                _show(made)


def _show(cluster: Cluster) -> None:
    """Of each process what it says of trouble, and its last lines. All of it stays in the test's folder."""
    for member in cluster.members:
        lines = member.log.splitlines()
        telling = [line for line in lines[:-10] if '"level": "info"' not in line]
        print(f"--- {member.name}, process {member.pid}: {cluster.folder}/{member.name}.log")
        for line in [*telling[:_LINES], *lines[-10:]]:
            print(line[:_COLUMNS])
