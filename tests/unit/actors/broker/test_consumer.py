"""The reading thread's part, step by step, over a channel that the test plays."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pika import BasicProperties
from pika.exceptions import StreamLostError
from pika.spec import Basic
from structlog.testing import capture_logs

from actors.broker import consumer as consumer_module
from actors.broker.consumer import Line, QueueConsumer, TakenMessage
from actors.broker.gate import Gate
from actors.broker.messages import BuiltMessage, Unreadable, built
from actors.broker.subscription import Arrived

BATCH = 4


class PlayedSubscription:
    """What was done to one channel, in order: `("settle", 3)`."""

    def __init__(self, arrived: Sequence[bytes]) -> None:
        self.arrived = deque(
            Arrived(Basic.Deliver(delivery_tag=tag), BasicProperties(), body) for tag, body in enumerate(arrived, 1)
        )
        self.done: list[tuple[str, int]] = []
        self.ended = False
        self.fails: Exception | None = None

    def check(self) -> None:
        if self.fails is not None:
            raise self.fails

    def settle(self, tag: int) -> None:
        self.done.append(("settle", tag))

    def settle_up_to(self, tag: int) -> None:
        self.done.append(("settle up to", tag))

    def settle_surely(self, tag: int) -> None:
        self.done.append(("settle surely", tag))

    def give_back(self) -> None:
        self.ended = True
        self.arrived.clear()
        self.done.append(("give back", 0))


class PlayedConnection:
    """Always there, and never waits: a step that would wait has nothing to do."""

    def __init__(self) -> None:
        self.lost_by: list[BaseException] = []
        self.closed = False

    def get(self) -> object:
        return self

    def works(self) -> None: ...

    def nudge(self) -> None: ...

    def wait(self, seconds: float) -> None: ...

    def lost(self, error: BaseException) -> None:
        self.lost_by.append(error)

    def close(self) -> None:
        self.closed = True


class Scene:
    """One consumer, and the subscriptions it makes; `arriving` is what each finds, in turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *arriving: Sequence[bytes], **line: Any) -> None:
        monkeypatch.setattr(consumer_module, "Subscription", self._subscribe)
        monkeypatch.setattr(consumer_module, "PAUSE_S", 0.0)
        self._arriving = list(arriving)
        self.subscriptions: list[PlayedSubscription] = []
        self.gate = Gate()
        self.settles: list[Callable[[], bool]] = []
        self.connection = PlayedConnection()
        options: dict[str, Any] = {"batch": BATCH, "alone": lambda body: body.startswith(b"!"), "prefetch": 8, **line}
        made = Line("insika.turns", self._read, self._build, self.gate, **options)
        self.consumer = QueueConsumer(made, self.connection, threading.Event(), 0.0)  # type: ignore[arg-type]

    def _subscribe(self, connection: object, queue: str, prefetch: int) -> PlayedSubscription:
        self.subscriptions.append(PlayedSubscription(self._arriving.pop(0) if self._arriving else []))
        return self.subscriptions[-1]

    def _read(self, arrived: Arrived, settle_now: Callable[[], bool]) -> bytes:
        if arrived.body == b"unreadable":
            raise Unreadable
        self.settles.append(settle_now)
        return arrived.body

    @staticmethod
    def _build(batch: Sequence[bytes]) -> BuiltMessage:
        return built("insika.turns", "accept_turn", batch)

    @property
    def channel(self) -> PlayedSubscription:
        return self.subscriptions[-1]

    def next(self) -> TakenMessage | None:
        taken = next(self.consumer)
        assert taken is None or isinstance(taken, TakenMessage)
        return taken

    def taken(self) -> TakenMessage:
        taken = self.next()
        assert taken is not None
        return taken


def bodies(taken: TakenMessage) -> list[bytes]:
    return list(taken.args[0])


def test_a_batch_at_a_time_in_order_and_the_next_when_it_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1", b"2", b"3", b"4", b"5", b"6"])
    first = scene.taken()
    assert bodies(first) == [b"1", b"2", b"3", b"4"]
    assert scene.next() is None
    assert scene.channel.done == []
    scene.consumer.ack(first)
    assert bodies(scene.taken()) == [b"5", b"6"]
    assert scene.channel.done == [("settle up to", 4)]


def test_what_may_be_out_at_once_is_settled_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1", b"2", b"3"], batch=1, at_once=2)
    first, second = scene.taken(), scene.taken()
    assert scene.next() is None
    scene.consumer.ack(second)
    assert bodies(scene.taken()) == [b"3"]
    assert scene.channel.done == [("settle", 2)]  # the first one is still out
    scene.consumer.ack(first)
    assert scene.next() is None
    assert scene.channel.done == [("settle", 2), ("settle", 1)]


def test_one_that_must_be_alone_is(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1", b"!2", b"!3", b"4"])
    batches = []
    while (taken := scene.next()) is not None:
        batches.append(bodies(taken))
        scene.consumer.ack(taken)
    assert batches == [[b"1"], [b"!2"], [b"!3"], [b"4"]]


def test_what_cannot_be_read_is_settled_and_stepped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"unreadable", b"2", b"unreadable"])
    with capture_logs() as lines:
        assert bodies(scene.taken()) == [b"2"]
    assert scene.channel.done == [("settle", 1), ("settle", 3)]
    assert [line["event"] for line in lines] == ["hint dropped that says nothing"] * 2


def test_a_closed_gate_gives_back_only_what_nobody_has_and_after_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1", b"2", b"3", b"4", b"5"], [b"5"])
    taken = scene.taken()
    scene.gate.close()
    assert scene.next() is None
    assert scene.channel.done == []
    scene.consumer.ack(taken)
    assert scene.next() is None
    assert scene.channel.done == [("settle up to", 4), ("give back", 0)]
    scene.gate.open()
    assert bodies(scene.taken()) == [b"5"]
    assert len(scene.subscriptions) == 2


def test_a_gate_that_opens_again_soon_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1", b"2"], batch=1, linger_s=3_600.0)
    scene.consumer.ack(scene.taken())
    scene.gate.close()
    assert scene.next() is None
    scene.gate.open()
    assert bodies(scene.taken()) == [b"2"]
    assert len(scene.subscriptions) == 1


def test_what_is_handed_back_returns_with_all_that_follows_but_for_what_is_dealt_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, [b"1", b"2", b"3", b"4", b"5"], [b"2", b"4", b"5"])
    taken = scene.taken()
    taken.receipt.given_back, taken.receipt.dealt = True, frozenset({0, 2})
    scene.consumer.ack(taken)
    assert scene.next() is None
    assert bodies(scene.taken()) == [b"2", b"4", b"5"]
    before, _ = scene.subscriptions
    assert sorted(before.done[:-1]) == [("settle", 1), ("settle", 3)]
    assert before.done[-1] == ("give back", 0)


def test_what_was_out_when_a_connection_was_lost_settles_nothing_on_the_next_and_still_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, [b"1", b"2"], [b"1", b"2"])
    taken = scene.taken()
    error = StreamLostError("gone")
    scene.channel.fails = error
    assert scene.next() is None
    assert scene.connection.lost_by == [error]
    assert taken.receipt.stale
    assert scene.next() is None  # fetched anew, and held until the first handling is over
    assert len(scene.subscriptions) == 2
    scene.consumer.ack(taken)
    assert bodies(scene.taken()) == [b"1", b"2"]
    assert scene.channel.done == []


def test_an_error_of_any_kind_is_a_lost_connection_and_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1"])
    scene.next()
    scene.channel.fails = ZeroDivisionError()
    assert scene.next() is None
    assert isinstance(scene.connection.lost_by[0], ZeroDivisionError)


@pytest.mark.parametrize("lost", [False, True])
def test_settling_at_once_waits_for_the_reading_thread_and_says_whether_the_broker_knows(
    monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    scene = Scene(monkeypatch, [b"!1"], [b"!1"])
    taken = scene.taken()
    if lost:
        scene.channel.fails = StreamLostError("gone")
        scene.next()
    answers = list[bool]()
    actor = threading.Thread(target=lambda: answers.append(scene.settles[0]()))
    actor.start()
    while actor.is_alive():
        scene.next()
    assert answers == [not lost]
    assert scene.subscriptions[0].done[:1] == ([("give back", 0)] if lost else [("settle surely", 1)])
    scene.consumer.ack(taken)
    scene.next()
    assert ("settle up to", 1) not in scene.subscriptions[0].done


def test_closing_settles_what_has_ended_then_gives_back_then_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1", b"2", b"3", b"4", b"5"])
    scene.consumer.ack(scene.taken())
    scene.consumer.close()
    assert scene.channel.done == [("settle up to", 4), ("give back", 0)]
    assert scene.connection.closed
    assert scene.next() is None


def test_what_fails_before_its_actor_begins_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, [b"1"], [b"1"])
    scene.consumer.nack(scene.taken())
    assert scene.next() is None
    assert bodies(scene.taken()) == [b"1"]
    assert scene.subscriptions[0].done == [("give back", 0)]
