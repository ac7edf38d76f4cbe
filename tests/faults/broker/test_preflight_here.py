"""What a process is told by the RabbitMQ that it is to work with."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import pytest

from actors.broker.errors import BrokerAway, BrokerRefuses, QueueDiffers
from actors.broker.preflight import require_broker
from actors.environment import QueueType
from insika.errors import InsikaError, InvalidConfiguration
from tests.broker_world import Vhost

SECRET = "my-password"


def changed(url: str, *, user: str = "", port: int = 0, vhost: str = "") -> str:
    parts = urlsplit(url)
    place = f"{user or f'{parts.username}:{parts.password}'}@{parts.hostname}:{port or parts.port}"
    return urlunsplit(parts._replace(netloc=place, path=f"/{vhost}" if vhost else parts.path))


async def refused(error: type[InsikaError], url: str, type_: QueueType = QueueType.QUORUM) -> str:
    with pytest.raises(error) as caught:
        await require_broker(url, type_)
    assert SECRET not in caught.value.message
    return caught.value.message


async def test_it_declares_what_is_missing_and_nothing_twice(clean_amqp_url: str) -> None:
    for type_ in (QueueType.QUORUM, QueueType.QUORUM):
        await require_broker(clean_amqp_url, type_)


async def test_a_port_where_nothing_listens_is_to_be_asked_again(amqp_url: str) -> None:
    told = await refused(BrokerAway, changed(amqp_url, user=f"guest:{SECRET}", port=1))
    assert told.startswith("RabbitMQ at 127.0.0.1:1/insika-test-")
    assert told.endswith("Connection refused")


async def test_a_wrong_password_is_not(amqp_url: str) -> None:
    told = await refused(BrokerRefuses, changed(amqp_url, user=f"guest:{SECRET}"))
    assert "does not know the user or the password" in told


async def test_a_virtual_host_that_is_not_there_is_not(amqp_url: str) -> None:
    told = await refused(BrokerRefuses, changed(amqp_url, vhost="nowhere"))
    assert "refuses: NOT_ALLOWED - vhost nowhere not found; create the virtual host" in told


async def test_a_queue_of_the_other_type_is_not(vhost: Vhost) -> None:
    other = QueueType.CLASSIC if vhost.type is QueueType.QUORUM else QueueType.QUORUM
    told = await refused(QueueDiffers, vhost.url, other)
    assert "with another x-queue-type: there it is " + vhost.type in told
    assert f"Either set INSIKA_QUEUE_TYPE to {vhost.type}" in told


async def test_a_url_that_is_none_is_not() -> None:
    told = await refused(InvalidConfiguration, f"http://guest:{SECRET}@localhost/")
    assert "INSIKA_AMQP_URL" in told
