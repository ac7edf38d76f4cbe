from __future__ import annotations

from typing import Any

import pytest
from pika.exceptions import ChannelClosedByBroker

from actors.broker.errors import BrokerRefuses, QueueDiffers
from actors.broker.topology import QUEUES, declare
from actors.environment import QueueType

ARGUMENTS = {(queue.name, type): queue.arguments(type) for queue in QUEUES for type in QueueType}


class Channel:
    """Answers each declaration with `error`, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.declared: list[str] = []
        self._error = error

    def queue_declare(self, name: str, *, durable: bool, arguments: dict[str, Any]) -> None:
        assert durable
        self._answer(name)

    def exchange_declare(self, name: str, kind: str, *, durable: bool) -> None:
        assert durable
        self._answer(f"{kind} {name}")

    def queue_bind(self, queue: str, exchange: str, key: str) -> None:
        self._answer(f"{exchange} {key} {queue}")

    def _answer(self, what: str) -> None:
        if self._error is not None:
            raise self._error
        self.declared.append(what)


def refused(code: int, text: str) -> ChannelClosedByBroker:
    return ChannelClosedByBroker(code, text)


def test_what_is_declared() -> None:
    channel = Channel()
    declare(channel, QueueType.QUORUM)  # type: ignore[arg-type]
    assert channel.declared == [
        "insika.turns.dead",  # first: from the moment the others exist, something may die there
        "insika.turns",
        "insika.sessions",
        "insika.outbox",
        "topic insika",
        "insika turns insika.turns",
    ]


@pytest.mark.parametrize("type", QueueType)
def test_turns_are_read_by_one_consumer_and_what_dies_is_kept(type: QueueType) -> None:
    arguments = ARGUMENTS["insika.turns", type]
    assert arguments["x-queue-type"] == type
    assert arguments["x-single-active-consumer"] is True
    assert (arguments["x-dead-letter-exchange"], arguments["x-dead-letter-routing-key"]) == ("", "insika.turns.dead")


def test_a_quorum_queue_never_drops_for_having_been_delivered_often() -> None:
    """4.x sets 20 where nothing is said; and the queue of the dead has none to leave them to."""
    for queue in QUEUES:
        assert ARGUMENTS[queue.name, QueueType.QUORUM]["x-delivery-limit"] >= 1_000_000


def test_hints_leave_no_dead_letters() -> None:
    for name in ("insika.sessions", "insika.outbox"):
        for type in QueueType:
            assert not [key for key in ARGUMENTS[name, type] if "dead-letter" in key]


def test_a_classic_queue_is_declared_with_nothing_it_does_not_know() -> None:
    for queue in QUEUES:
        unknown = {"x-delivery-limit", "x-dead-letter-strategy"} & ARGUMENTS[queue.name, QueueType.CLASSIC].keys()
        assert not unknown


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'insika.turns' in vhost '/': "
            "received 'quorum' but current is 'classic'",
            "the queue insika.turns exists in virtual host / with another x-queue-type: there it is classic, and this "
            "process declares quorum. Either set INSIKA_QUEUE_TYPE to classic, or let it run empty, delete it, and "
            "start again (rabbitmqctl delete_queue --vhost / insika.turns)",
        ),
        (
            "PRECONDITION_FAILED - inequivalent arg 'x-single-active-consumer' for queue 'insika.turns' in vhost "
            "'a b': received the value 'true' of type 'bool' but current is none",
            "the queue insika.turns exists in virtual host a b with another x-single-active-consumer: there it is "
            "none, and this process declares true. A queue's arguments cannot be changed: let it run empty, delete it, "
            "and start again (rabbitmqctl delete_queue --vhost a b insika.turns)",
        ),
        (
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'insika' in vhost '/': received 'topic' but "
            "current is 'direct'",
            "the exchange insika exists in virtual host / with another type: there it is direct, and this process "
            "declares topic. Delete it and start again",
        ),
    ],
)
def test_what_differs_is_told_with_what_to_do(text: str, told: str) -> None:
    with pytest.raises(QueueDiffers) as caught:
        declare(Channel(refused(406, text)), QueueType.QUORUM)  # type: ignore[arg-type]
    assert caught.value.message == told


def test_a_missing_permission_is_told() -> None:
    text = "ACCESS_REFUSED - access to queue 'insika.turns' in vhost '/' refused for user 'reader'"
    with pytest.raises(BrokerRefuses, match="needs the permissions to configure, write and read"):
        declare(Channel(refused(403, text)), QueueType.QUORUM)  # type: ignore[arg-type]


def test_what_is_not_understood_passes_through() -> None:
    with pytest.raises(ChannelClosedByBroker):
        declare(Channel(refused(406, "PRECONDITION_FAILED - something new")), QueueType.QUORUM)  # type: ignore[arg-type]
