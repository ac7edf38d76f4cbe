"""The twin within one process: events numbered and bounded, signals handed to the loop, and a health that never fails.

A subscriber that does not keep up loses the oldest of what it has not read, and is told so. Nothing here is in
anybody's way, and nothing here is needed for correctness.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime

from insika.clock import Clock
from insika.coordination.listeners import Listeners
from insika.coordination.local_circuits import LocalCircuits
from insika.coordination.local_windows import LocalWindows
from insika.coordination.port import PAGE, Coordination, HealthListener, SignalListener, missed
from insika.events import Event


class Subscription:
    """Holds a place in the stream, and no events."""

    def __init__(self, stream: LocalEventStream, after: int, missed_some: bool) -> None:
        self._stream = stream
        self._seq = after
        self._missed_some = missed_some
        self._arrived = asyncio.Event()

    def wake(self) -> None:
        self._arrived.set()

    def take(self) -> list[Event]:
        """What has arrived and was not read; does not wait."""
        return list(self._unread())

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            self._arrived.clear()
            for event in self._unread():
                yield event
            await self._arrived.wait()

    def _unread(self) -> Iterator[Event]:
        while (event := self._stream.following(self._seq)) is not None:
            if self._missed_some or event.seq > self._seq + 1:
                self._missed_some = False
                event = missed(self._seq, event)
            self._seq = event.seq
            yield event


class LocalEventStream:
    """`bound`: how many events are kept. Its numbers begin with 1 and have no holes."""

    def __init__(self, bound: int = 10_000) -> None:
        self._last = 0
        self._recent: deque[Event] = deque(maxlen=bound)
        self._subscriptions: list[Subscription] = []

    def publish(self, event: Event) -> None:
        self._last += 1
        self._recent.append(event.numbered(self._last))
        for subscription in self._subscriptions:
            subscription.wake()

    def following(self, seq: int) -> Event | None:
        """The first event after number `seq` that is kept; None when there is none yet."""
        unread = min(self._last - seq, len(self._recent))
        return self._recent[-unread] if unread > 0 else None

    async def since(self, seq: int, limit: int = PAGE) -> list[Event]:
        first = self.following(seq)
        if first is None:
            return []
        place = len(self._recent) - 1 - (self._last - first.seq)
        gap = [missed(seq, first)] if first.seq > seq + 1 else []
        return [*gap, *itertools.islice(self._recent, place, place + limit)]

    @contextmanager
    def subscribe(self, after: int | None = None) -> Iterator[Subscription]:
        place = self._last if after is None else min(after, self._last)
        subscription = Subscription(self, place, missed_some=after is not None and after > place)
        self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)


class LocalSignals:
    """Listeners are called in the loop's next round, once for a session however often it was published until then."""

    def __init__(self) -> None:
        self._listeners = Listeners[int]("signals")
        self._waiting: dict[int, None] = {}

    def publish(self, session_id: int) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._tell)
        self._waiting[session_id] = None

    def listen(self, listener: SignalListener) -> AbstractContextManager[None]:
        return self._listeners.listen(listener)

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for session_id in waiting:
            self._listeners.tell(session_id)


class AlwaysWell:
    """There is nobody else to reach."""

    degraded: bool = False
    since: datetime | None = None
    reason: str = ""

    def listen(self, listener: HealthListener) -> AbstractContextManager[None]:
        return nullcontext()


def local_coordination(clock: Clock) -> Coordination:
    """For a process that does all the work by itself."""
    return Coordination(LocalSignals(), LocalEventStream(), AlwaysWell(), LocalWindows(clock), LocalCircuits(clock))
