"""What becomes of each message, with a broker made of calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pika
import pytest

from insika.producer.address import broker_address
from insika.producer.errors import Closed, NotPublished, NotRouted, Refused, TooLarge, Unreachable
from insika.producer.link import Loss, Unopened
from insika.producer.sending import LONGEST_PAUSE_S, Sending
from insika.producer.window import Outgoing

ADDRESS = broker_address("amqp://guest:secret@broker:5672/shop", connection_name="test")
GONE = Loss("Connection reset by peer", blaming=False)
BLAMED = Loss("NOT_FOUND - no exchange 'nowhere' in vhost 'shop'", blaming=True)


class FakeLink:
    """Keeps what was published; the test plays the broker through `broker.sending`."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[Loss] = asyncio.get_running_loop().create_future()
        self.blocked: str | None = None
        self.published: list[Outgoing] = []
        self.closed = False

    @property
    def usable(self) -> bool:
        return not self.lost.done()

    def publish(self, message: Outgoing) -> int:
        if message.properties.headers:
            raise ValueError("no such type in AMQP")
        self.published.append(message)
        return len(self.published)

    async def close(self) -> None:
        self.closed = True

    @property
    def names(self) -> list[str | None]:
        return [message.message_id for message in self.published]


@dataclass
class Broker:
    """`opens`: what each try to connect comes to, the last for ever."""

    opens: list[Callable[[], Any]] = field(default_factory=lambda: [FakeLink])
    links: list[FakeLink] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    tries: int = 0

    @property
    def link(self) -> FakeLink:
        return self.links[-1]

    async def connect(self, address: Any, owner: Any) -> Any:
        made = self.opens[min(self.tries, len(self.opens) - 1)]
        self.tries += 1
        link = made()
        self.links.append(link)
        return link

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Sending]:
        sending = Sending(ADDRESS, connect=self.connect, pause=self.pause)
        task = asyncio.create_task(sending.run())
        await settled()
        try:
            yield sending
        finally:
            task.cancel()
            await asyncio.wait([task])


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def away(why: str = "Connection refused", *, final: bool = False) -> Callable[[], FakeLink]:
    def refuse() -> FakeLink:
        raise Unopened(why, final=final)

    return refuse


def message(name: str = "m", *, timeout_s: float = 60.0, repeatable: bool = True, headers: Any = None) -> Outgoing:
    properties = pika.BasicProperties(message_id=name, headers=headers)
    return Outgoing("", "insika.turns", b"{}", properties, True, repeatable, timeout_s)


def error(it: Outgoing) -> NotPublished:
    found = it.future.exception(timeout=0)
    assert isinstance(found, NotPublished)
    return found


async def test_a_message_ends_when_the_broker_confirms_it():
    broker, first, second = Broker(), message("a"), message("b")
    async with broker.sending() as sending:
        sending.add([first, second])
        assert broker.link.names == ["a", "b"]
        assert not first.done
        sending.confirmed(1, multiple=False, taken=True)
        assert (first.future.result(timeout=0), second.done) == (None, False)


async def test_what_the_broker_refuses_ends_as_refused():
    broker, it = Broker(), message()
    async with broker.sending() as sending:
        sending.add([it])
        sending.confirmed(1, multiple=False, taken=False)
    assert isinstance(error(it), Refused)
    assert (error(it).message_id, error(it).may_have_arrived) == ("m", False)


async def test_what_no_queue_takes_ends_as_not_routed_though_it_is_confirmed():
    broker, it, fine = Broker(), message("a"), message("b")
    async with broker.sending() as sending:
        sending.add([it, fine])
        sending.returned(("", "insika.turns", "a"), "no route")
        sending.confirmed(2, multiple=True, taken=True)
    assert isinstance(error(it), NotRouted)
    assert "no queue 'insika.turns' (no route)" in error(it).message
    assert fine.future.result(timeout=0) is None


async def test_an_unconfirmed_message_goes_out_again_on_the_next_connection():
    broker, it, hint = Broker(), message("a"), message("hint", repeatable=False)
    async with broker.sending() as sending:
        sending.add([it, hint])
        broker.link.lost.set_result(GONE)
        await settled()
        assert broker.link.names == ["a"]
        sending.confirmed(1, multiple=False, taken=True)
    assert it.future.result(timeout=0) is None
    assert isinstance(error(hint), Unreachable)
    assert error(hint).may_have_arrived
    assert "Connection reset by peer; nobody knows whether it was taken" in error(hint).message
    assert [link.closed for link in broker.links] == [True, True]


async def test_messages_wait_for_a_broker_that_is_away():
    broker, it = Broker([away(), away(), FakeLink]), message()
    async with broker.sending() as sending:
        sending.add([it])
        await settled()
        assert broker.link.names == ["m"]


async def test_pauses_between_tries_grow_and_end_growing():
    broker = Broker([away()])
    async with broker.sending():
        while len(broker.pauses) < 12:
            await settled()
    bounds = [min(0.1 * 2**n, LONGEST_PAUSE_S) for n in range(len(broker.pauses))]
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(broker.pauses, bounds, strict=True))


async def test_pauses_are_short_again_once_something_was_confirmed():
    broker, it = Broker([away(), away(), away(), FakeLink]), message()
    async with broker.sending() as sending:
        sending.add([it])
        await settled()
        sending.confirmed(1, multiple=False, taken=True)
        broker.link.lost.set_result(GONE)
        await settled()
    assert broker.pauses[3] <= 0.1


async def test_a_broker_that_never_let_us_in_is_told_at_once():
    broker, it = Broker([away("NOT_ALLOWED - vhost shop not found", final=True)]), message()
    async with broker.sending() as sending:
        sending.add([it])
        await settled()
        assert isinstance(error(it), Unreachable)
    assert error(it).message == "RabbitMQ at broker:5672/shop does not let us in: NOT_ALLOWED - vhost shop not found"
    assert not error(it).may_have_arrived


async def test_a_broker_that_let_us_in_before_is_given_time():
    broker, it = Broker([FakeLink, away("ACCESS_REFUSED", final=True), FakeLink]), message()
    async with broker.sending() as sending:
        sending.add([it])
        broker.link.lost.set_result(GONE)
        await settled()
        assert (broker.tries, it.done, broker.link.names) == (3, False, ["m"])


@pytest.mark.parametrize(
    ("opens", "blocked", "told", "unknown"),
    [
        ([away("Connection refused")], None, "could not be reached within 0.01 s: Connection refused", False),
        ([FakeLink], "low on memory", "takes no messages at the moment (low on memory)", False),
        ([FakeLink], None, "did not confirm the message within 0.01 s; nobody knows", True),
    ],
    ids=["away", "blocked", "silent"],
)
async def test_when_the_time_is_up_the_error_says_what_it_was(opens, blocked, told, unknown):
    broker, it = Broker(opens), message(timeout_s=0.01)
    async with broker.sending() as sending:
        if broker.links:
            broker.link.blocked = blocked
        sending.add([it])
        with pytest.raises(Unreachable) as caught:
            await asyncio.wrap_future(it.future)
    assert told in caught.value.message
    assert caught.value.may_have_arrived is unknown


async def test_what_waits_while_the_broker_is_blocked_goes_out_afterwards():
    broker, it = Broker(), message()
    async with broker.sending() as sending:
        broker.link.blocked = "low on disk"
        sending.add([it])
        assert broker.link.names == []
        broker.link.blocked = None
        sending.unblocked()
        assert broker.link.names == ["m"]


async def test_the_message_over_which_the_broker_closes_is_found_and_its_neighbours_go_on():
    broker = Broker()
    messages = [message(name) for name in ("a", "bad", "c")]
    async with broker.sending() as sending:
        sending.add(messages)
        broker.link.lost.set_result(BLAMED)
        await settled()
        assert broker.link.names == ["a"]
        sending.confirmed(1, multiple=False, taken=True)
        assert broker.link.names == ["a", "bad"]
        broker.link.lost.set_result(BLAMED)
        await settled()
        assert broker.link.names == ["c"]
        sending.confirmed(1, multiple=False, taken=True)
    assert [it.future.exception(timeout=0) is None for it in messages] == [True, False, True]
    assert isinstance(error(messages[1]), Refused)
    assert (BLAMED.why in error(messages[1]).message, error(messages[1]).may_have_arrived) == (True, False)


async def test_a_message_that_the_broker_finds_too_large_is_told_so():
    broker, it = Broker(), message()
    async with broker.sending() as sending:
        sending.add([it])
        broker.link.lost.set_result(Loss("PRECONDITION_FAILED - message size 9 larger than max size 8", blaming=True))
        await settled()
    assert isinstance(error(it), TooLarge)


async def test_what_amqp_cannot_carry_harms_nobody():
    broker, it, fine = Broker(), message("a", headers={"x": object()}), message("b")
    async with broker.sending() as sending:
        sending.add([it, fine])
        assert broker.link.names == ["b"]
    assert isinstance(error(it), Refused)
    assert "AMQP cannot carry the message" in error(it).message


async def test_a_message_that_was_cancelled_does_not_go_out():
    broker, it, fine = Broker([away(), FakeLink]), message("a"), message("b")
    async with broker.sending() as sending:
        it.future.cancel()
        sending.add([it, fine])
        await settled()
        assert broker.link.names == ["b"]


async def test_a_message_that_is_on_its_way_cannot_be_cancelled():
    broker, it = Broker(), message()
    async with broker.sending() as sending:
        sending.add([it])
        assert not it.future.cancel()
        sending.confirmed(1, multiple=False, taken=True)
    assert it.future.result(timeout=0) is None


async def test_closing_ends_what_is_open_and_says_what_may_have_arrived():
    broker, sent, waiting = Broker(), message("a"), message("b")
    async with broker.sending() as sending:
        sending.add([sent])
        broker.link.blocked = "low on memory"
        sending.add([waiting])
    assert [isinstance(error(it), Closed) for it in (sent, waiting)] == [True, True]
    assert [error(it).may_have_arrived for it in (sent, waiting)] == [True, False]
    assert broker.link.closed


async def test_a_defect_in_the_client_is_a_lost_connection_and_no_end(caplog):
    def defect() -> FakeLink:
        raise AssertionError("of pika's")

    broker, it = Broker([defect, FakeLink]), message()
    async with broker.sending() as sending:
        sending.add([it])
        await settled()
        assert broker.link.names == ["m"]
    assert "was not foreseen" in caplog.text


async def test_the_log_says_once_that_the_broker_is_away_and_once_that_it_is_back(caplog):
    broker = Broker([away(), away(), away(), FakeLink])
    async with broker.sending():
        await settled()
    assert [record.getMessage() for record in caplog.records] == [
        "no connection to RabbitMQ at broker:5672/shop: Connection refused",
        "connected to RabbitMQ at broker:5672/shop again",
    ]


async def test_nothing_shows_the_password(caplog):
    broker, it = Broker([away()]), message(timeout_s=0.001)
    async with broker.sending() as sending:
        sending.add([it])
        await asyncio.wait([asyncio.wrap_future(it.future)])
    assert "secret" not in caplog.text + str(error(it)) + repr(ADDRESS)
