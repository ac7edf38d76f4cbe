"""A virtual host with the queues of Insika in it, of either type; and a RabbitMQ of the tests' own, to be broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.environment import QueueType
from scripts.private_services.together import PrivateServices
from tests.broker_world import Journal, Readers, Vhost, readers_of
from tests.services_here import console_of


@pytest.fixture(params=list(QueueType))
def queue_type(request: pytest.FixtureRequest) -> QueueType:
    type_: QueueType = request.param
    return type_


@pytest.fixture
def vhost(clean_amqp_url: str, queue_type: QueueType) -> Vhost:
    made = Vhost(clean_amqp_url, queue_type, console_of(clean_amqp_url))
    made.declare()
    return made


@pytest.fixture
def quorum_vhost(clean_amqp_url: str) -> Vhost:
    made = Vhost(clean_amqp_url, QueueType.QUORUM, console_of(clean_amqp_url))
    made.declare()
    return made


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def readers(vhost: Vhost, journal: Journal) -> Iterator[Readers]:
    with readers_of(vhost, journal) as made:
        yield made


@pytest.fixture(scope="module")
def strict_rabbitmq() -> Iterator[PrivateServices]:
    """A node that gives a consumer three seconds for a message and takes no message over 1 MiB, as may be set."""
    settings = {"consumer_timeout": "3000", "channel_tick_interval": "500", "max_message_size": str(1024 * 1024)}
    with PrivateServices.start(which=["rabbitmq"], rabbitmq_settings=settings) as services:
        yield services
