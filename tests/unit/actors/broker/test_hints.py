"""Hints, in front of a publisher that the test lets go on, or not."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pika
import pytest
from structlog.testing import capture_logs

from actors.broker import hints as hints_module
from actors.broker.hints import UNDER_WAY, WAITING_MAX, Hints
from insika.producer.errors import Closed, Unreachable


class HeldPublisher:
    """Takes everything, and confirms when it is told to."""

    def __init__(self) -> None:
        self.published: list[tuple[str, bytes, pika.BasicProperties | None]] = []
        self.open: list[Future[None]] = []
        self.started = self.closed = False
        self.refuses: Exception | None = None
        self.raises = False

    def publish(
        self, exchange: str, routing_key: str, body: bytes, properties: pika.BasicProperties | None = None
    ) -> Future[None]:
        assert exchange == ""
        if self.raises:
            raise ValueError("no such thing")
        self.published.append((routing_key, body, properties))
        future: Future[None] = Future()
        if self.refuses is not None:
            future.set_exception(self.refuses)
        else:
            self.open.append(future)
        return future

    def confirm(self, error: Exception | None = None) -> None:
        while self.open:
            future = self.open.pop(0)
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def start(self) -> None:
        self.started = True

    def close(self, timeout_s: float = 1.0) -> None:
        self.closed = True

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, body, _ in self.published]


@pytest.fixture
def publisher() -> HeldPublisher:
    return HeldPublisher()


@pytest.fixture
def hints(publisher: HeldPublisher) -> Hints:
    return Hints("amqp://nowhere", publisher=publisher)


def fill(hints: Hints) -> None:
    """As many as may be under way."""
    for n in range(UNDER_WAY):
        hints.session(1_000_000 + n)


def test_a_hint_goes_out_at_once_and_does_not_live_long(hints: Hints, publisher: HeldPublisher) -> None:
    hints.session(42)
    hints.delivery()
    (queue, body, properties), other = publisher.published
    assert (queue, body) == ("insika.sessions", b"42")
    assert properties is not None
    assert properties.expiration == "30000"
    assert other[:2] == ("insika.outbox", b"")


def test_of_those_that_wait_each_is_said_once_in_the_order_of_the_first_time(
    hints: Hints, publisher: HeldPublisher
) -> None:
    fill(hints)
    for session_id in (3, 1, 3, 2, 1, 3):
        hints.session(session_id)
        hints.delivery()
    assert len(publisher.published) == UNDER_WAY
    publisher.confirm()
    assert publisher.bodies[UNDER_WAY:] == [b"3", b"", b"1", b"2"]


def test_one_that_is_under_way_is_said_again_since_it_may_have_been_heard_too_early(
    hints: Hints, publisher: HeldPublisher
) -> None:
    hints.session(1)
    hints.session(1)
    assert publisher.bodies == [b"1", b"1"]


@pytest.mark.parametrize("error", [Unreachable("away"), Closed("closed")])
def test_one_that_could_not_be_published_makes_room_for_the_next(
    hints: Hints, publisher: HeldPublisher, error: Exception
) -> None:
    fill(hints)
    hints.session(1)
    publisher.confirm(error)
    assert publisher.bodies[UNDER_WAY:] == [b"1"]


def test_a_publisher_that_refuses_all_at_once_is_no_reason_to_stumble(hints: Hints, publisher: HeldPublisher) -> None:
    fill(hints)
    for session_id in range(1, 5_000):
        hints.session(session_id)
    publisher.refuses = Closed("closed")
    publisher.confirm()
    assert len(publisher.published) == UNDER_WAY + 4_999


def test_what_publishing_raises_reaches_nobody(hints: Hints, publisher: HeldPublisher) -> None:
    publisher.raises = True
    with capture_logs() as lines:
        hints.session(1)
        hints.delivery()
    assert [line["event"] for line in lines] == ["hint not published"] * 2
    publisher.raises = False
    hints.session(2)
    assert publisher.bodies == [b"2"]


def test_only_so_many_wait_and_the_rest_is_told_in_one_line(
    hints: Hints, publisher: HeldPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints_module, "WAITING_MAX", 10)
    assert WAITING_MAX >= 10
    fill(hints)
    for session_id in range(1, 16):
        hints.session(session_id)
    hints.session(3)  # waits already, so it is not a new one
    with capture_logs() as lines:
        publisher.confirm()
    assert publisher.bodies[UNDER_WAY:] == [b"%d" % n for n in range(1, 11)]
    assert [(line["event"], line["count"]) for line in lines] == [("hints dropped while RabbitMQ took none", 5)]


def test_from_many_threads_each_goes_out(hints: Hints, publisher: HeldPublisher) -> None:
    done = threading.Event()

    def confirm() -> None:
        while not done.is_set():
            publisher.confirm()

    confirming = threading.Thread(target=confirm)
    confirming.start()
    threads = [
        threading.Thread(target=lambda first=first: [hints.session(first + n) for n in range(500)])
        for first in range(1, 4_000, 500)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    confirming.join()
    publisher.confirm()
    assert sorted(map(int, publisher.bodies)) == list(range(1, 4_001))


def test_it_is_started_and_closed_with_its_publisher_and_forgets_what_waits(
    hints: Hints, publisher: HeldPublisher
) -> None:
    with hints:
        assert publisher.started
        fill(hints)
        hints.session(1)
    assert publisher.closed
    publisher.confirm()
    assert publisher.bodies[UNDER_WAY:] == []
