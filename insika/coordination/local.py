"""The event stream of one process: numbered, bounded, and never in anybody's way.

A subscriber that does not keep up loses the oldest of what it has not read, and can see that by the gap in the
numbers. Nothing here is needed for correctness.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from insika.events import Event


class Subscription:
    """Events from the moment of subscribing, oldest first."""

    def __init__(self, bound: int) -> None:
        self._events: deque[Event] = deque(maxlen=bound)
        self._arrived = asyncio.Event()

    def push(self, event: Event) -> None:
        self._events.append(event)
        self._arrived.set()

    def take(self) -> list[Event]:
        """What has arrived and was not read; does not wait."""
        events = list(self._events)
        self._events.clear()
        self._arrived.clear()
        return events

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            await self._arrived.wait()
            for event in self.take():
                yield event


class LocalEventStream:
    """Publish from the loop's thread only. `bound`: how many events are kept for replay, and for each subscriber."""

    def __init__(self, bound: int = 10_000) -> None:
        self._bound = bound
        self._seq = itertools.count(1)
        self._recent: deque[Event] = deque(maxlen=bound)
        self._subscriptions: list[Subscription] = []

    def publish(self, event: Event) -> None:
        numbered = event.numbered(next(self._seq))
        self._recent.append(numbered)
        for subscription in self._subscriptions:
            subscription.push(numbered)

    def since(self, seq: int) -> list[Event]:
        """What is still kept of the events after number `seq`."""
        return [event for event in self._recent if event.seq > seq]

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        subscription = Subscription(self._bound)
        self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)
