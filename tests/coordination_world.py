"""Events, listeners and patience for the tests of signals and events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime

from insika.coordination.port import Coordination, Health, Signals, Subscription
from insika.events import Event, EventType

PATIENCE_S = 30
AT = datetime(2030, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Deployment:
    """Processes of one deployment: each call of `process` is one more. It keeps the newest `bound` events, and at most
    `slack` more."""

    process: Callable[[], AbstractAsyncContextManager[Coordination]]
    bound: int
    slack: int


def event(text: str, session: str = "ana") -> Event:
    return Event(EventType.CONTENT, AT, "turn-1", session, "shop", None, 3, 2, data={"text": text})


def publish(coordination: Coordination, texts: Iterable[object]) -> None:
    for text in texts:
        coordination.events.publish(event(str(text)))


async def read_until(subscription: Subscription, text: object) -> list[Event]:
    """What comes, up to the event with that text."""
    events: list[Event] = []
    async with asyncio.timeout(PATIENCE_S):
        async for each in subscription:
            events.append(each)
            if each.data.get("text") == str(text):
                return events
    raise AssertionError(f"the stream ended before {text!r} came")


async def read_one(subscription: Subscription) -> Event:
    async with asyncio.timeout(PATIENCE_S):
        async for each in subscription:
            return each
    raise AssertionError("the stream ended")


async def stored(coordination: Coordination, *publishers: Coordination) -> None:
    """Returns when all that these have published until now stands in the stream."""
    for number, publisher in enumerate(publishers or (coordination,)):
        with publisher.events.subscribe() as events:
            mark = f"mark-{number}"
            publish(publisher, [mark])
            await read_until(events, mark)


def texts(events: Iterable[Event]) -> list[str]:
    return [each.data.get("text", str(each.type)) for each in events]


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.sessions: list[int] = []
        self._changed = asyncio.Event()

    def __call__(self, session_id: int) -> None:
        self.sessions.append(session_id)
        self._changed.set()

    async def all_of(self, *session_ids: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not set(session_ids) <= set(self.sessions):
                self._changed.clear()
                await self._changed.wait()


async def reach(signals: Signals, *listeners: Heard, session_id: int) -> None:
    """Returns when all of these have heard it: a signal may be lost, so it is repeated until then."""
    hearing = asyncio.gather(*(heard.all_of(session_id) for heard in listeners))
    while not hearing.done():
        signals.publish(session_id)
        await asyncio.wait({hearing}, timeout=0.02)
    await hearing


class Watched:
    """What a health has told, and a way to wait for it."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self.told: list[bool] = []
        self._changed = asyncio.Event()

    def __call__(self, health: Health) -> None:
        self.told.append(health.degraded)
        self._changed.set()

    async def becomes(self, *, degraded: bool) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self._health.degraded is not degraded:
                self._changed.clear()
                await self._changed.wait()
