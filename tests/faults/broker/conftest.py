"""A virtual host with the queues of Insika in it, of either type; and a RabbitMQ of the tests' own, to be broken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import actors.ingress
from actors.environment import QueueType
from insika.testing import Say, Script
from scripts.private_services.together import PrivateServices
from tests.actor_world import Place, place_for, profile
from tests.broker_world import Door, Journal, Readers, Vhost, readers_of
from tests.services_here import console_of

__all__ = ["place_for"]


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
async def door(place_for: Callable[[Script], Place], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[Door]]:
    """Makes the doors of ingress processes over one store. A store that is away is told at once."""
    monkeypatch.setattr(actors.ingress, "PATIENCE_S", 0.0)
    place = place_for(Script([lambda scene: Say(f"re {scene.text}")]))

    async def made(vhost: Vhost, **options: Any) -> Door:
        # No slot: a mailbox that nobody empties shows what was accepted.
        return Door(vhost, await place.process(profile(limits={"mailbox_max": 10_000}), slots=0), **options)

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
    settings = {"consumer_timeout": "3000", "max_message_size": str(1024 * 1024)}
    with PrivateServices.start(which=["rabbitmq"], rabbitmq_settings=settings) as services:
        # How often it looks; each channel asks when it is opened.
        services.rabbitmq.console.evaluate("application:set_env(rabbit, channel_tick_interval, 500)")
        yield services
