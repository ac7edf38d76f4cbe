"""A connection that is made again: how soon, and what is said of it. No broker is asked here."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from actors.broker import kept_connection
from actors.broker.errors import QueueDiffers
from actors.broker.kept_connection import LONGEST_PAUSE_S, KeptConnection
from actors.environment import QueueType
from insika.producer.address import broker_address


class Broker:
    """Lets in, or raises. `now` is the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refuses: Exception | None = None
        self.differs: Exception | None = None
        self.now = 1_000.0
        self.tries = 0
        self.declared = 0
        monkeypatch.setattr(kept_connection, "connect", self._connect)
        monkeypatch.setattr(kept_connection, "declare", self._declare)

    is_open = False

    def _connect(self, address: object) -> Broker:
        self.tries += 1
        if self.refuses is not None:
            raise self.refuses
        return self

    def _declare(self, channel: object, queue_type: QueueType) -> None:
        self.declared += 1
        if self.differs is not None:
            raise self.differs

    def channel(self) -> Broker:
        return self

    def close(self) -> None: ...


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(monkeypatch)


@pytest.fixture
def kept(broker: Broker) -> KeptConnection:
    address = broker_address("amqp://guest:guest@localhost/", connection_name="test")
    return KeptConnection(address, QueueType.QUORUM, "insika.turns", now=lambda: broker.now)


def tried(kept: KeptConnection) -> bool:
    """Whether this was the time for a try, which failed."""
    try:
        return kept.get() is not None
    except OSError as error:
        kept.lost(error)
        return True


def pauses(broker: Broker, kept: KeptConnection, count: int) -> list[float]:
    found, last = list[float](), broker.now
    while len(found) < count:
        broker.now += 0.01
        if tried(kept):
            found.append(broker.now - last)
            last = broker.now
    return found


def test_it_is_made_at_once_and_everything_is_declared_each_time(broker: Broker, kept: KeptConnection) -> None:
    assert kept.get() is broker
    assert kept.get() is broker
    kept.lost(OSError("gone"))
    assert kept.get() is None
    broker.now += LONGEST_PAUSE_S
    assert kept.get() is broker
    assert (broker.tries, broker.declared) == (2, 2)


def test_tries_grow_apart_up_to_a_limit(broker: Broker, kept: KeptConnection) -> None:
    broker.refuses = ConnectionRefusedError(111, "Connection refused")
    assert tried(kept)
    first, *others = pauses(broker, kept, 12)
    assert 0.1 <= first <= 0.22
    assert all(LONGEST_PAUSE_S / 2 <= pause <= LONGEST_PAUSE_S + 0.02 for pause in others[-4:])


def test_an_outage_is_told_once_and_so_is_its_end(broker: Broker, kept: KeptConnection) -> None:
    with capture_logs() as lines:
        kept.get()
        kept.works()
        kept.lost(OSError(104, "Connection reset by peer"))
        broker.refuses = ConnectionRefusedError(111, "Connection refused")
        pauses(broker, kept, 5)
        broker.refuses = None
        broker.now += LONGEST_PAUSE_S
        assert kept.get() is broker
        kept.works()
    told = [(line["event"], line.get("reason")) for line in lines]
    assert told == [
        ("connection to RabbitMQ lost", "Connection reset by peer"),
        ("connection to RabbitMQ lost", "Connection refused"),
        ("connected to RabbitMQ again", None),
    ]
    assert {line["queue"] for line in lines} == {"insika.turns"}


def test_a_queue_that_differs_by_now_is_told_in_our_words(broker: Broker, kept: KeptConnection) -> None:
    broker.differs = QueueDiffers("the queue insika.turns exists with another x-queue-type")
    with capture_logs() as lines:
        with pytest.raises(QueueDiffers) as caught:
            kept.get()
        kept.lost(caught.value)
    assert [line["reason"] for line in lines] == ["the queue insika.turns exists with another x-queue-type"]
    assert not any(line.get("exc_info") for line in lines)


def test_what_nobody_expected_is_told_with_its_place(kept: KeptConnection) -> None:
    with capture_logs() as lines:
        kept.lost(ZeroDivisionError())
    assert isinstance(lines[0]["exc_info"], ZeroDivisionError)


def test_without_one_it_waits_no_longer_than_asked_or_until_the_next_try(broker: Broker, kept: KeptConnection) -> None:
    kept.wait(0.0)
    kept.lost(OSError("gone"))
    kept.nudge()
    kept.wait(3_600.0)  # was nudged
