"""Which message goes out next, and which confirmation is whose. Order is kept, also over a lost connection.

It is used by one thread, does no I/O and ends no future. A message that the broker may have closed a channel over is a
suspect: it goes out alone, so that the next such close names it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

import pika

MOST_IN_FLIGHT = 1_000
MOST_BYTES_IN_FLIGHT = 8 * 1024 * 1024


@dataclass(slots=True, eq=False)
class Outgoing:
    """One message on its way. `future` ends when the broker has confirmed it, or with why it did not.

    `repeatable`: it may be published again when nobody knows what became of it. `sent`: it was written to a connection
    at least once. `returned`: why the broker gave it back; its confirmation comes after that all the same.
    """

    exchange: str
    routing_key: str
    body: bytes
    properties: pika.BasicProperties
    mandatory: bool
    repeatable: bool
    timeout_s: float
    future: Future[None] = field(default_factory=Future)
    sent: bool = False
    suspect: bool = False
    returned: str | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def done(self) -> bool:
        return self.future.done()

    @property
    def message_id(self) -> str | None:
        id_: str | None = self.properties.message_id
        return id_

    @property
    def address(self) -> tuple[str, str, str | None]:
        return (self.exchange, self.routing_key, self.message_id)


@dataclass(frozen=True, slots=True)
class Lost:
    """What a lost connection leaves behind beside what goes out again: the messages of which nobody knows, and the one
    over which the broker closed, where only it can have been meant."""

    unknown: tuple[Outgoing, ...]
    guilty: Outgoing | None


class Window:
    def __init__(self, most: int = MOST_IN_FLIGHT, most_bytes: int = MOST_BYTES_IN_FLIGHT) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: deque[Outgoing] = deque()
        self._in_flight: dict[int, tuple[Outgoing, int]] = {}
        self._bytes = 0

    def add(self, message: Outgoing) -> None:
        self._waiting.append(message)

    def next(self) -> Outgoing | None:
        """The message that goes out now, taken out of those that wait; None when none may."""
        self.forget_ended()
        if not self._waiting:
            return None
        if self._in_flight:
            first, _ = next(iter(self._in_flight.values()))  # a suspect in flight is the only one there
            full = len(self._in_flight) >= self._most or self._bytes >= self._most_bytes
            if full or first.suspect or self._waiting[0].suspect:
                return None
        return self._waiting.popleft()

    def forget_ended(self) -> None:
        """Those at the head that nobody waits for any more."""
        while self._waiting and self._waiting[0].done:
            self._waiting.popleft()

    def sent(self, tag: int, message: Outgoing) -> None:
        message.sent = True
        self._in_flight[tag] = (message, len(message.body))
        self._bytes += len(message.body)

    def confirmed(self, tag: int, *, multiple: bool) -> list[Outgoing]:
        """The messages that a confirmation is about, in the order in which they went out."""
        tags = [tag] if not multiple else list(self._up_to(tag))
        settled = []
        for each in tags:
            message, size = self._in_flight.pop(each, (None, 0))
            self._bytes -= size
            if message is not None:
                settled.append(message)
        return settled

    def returned(self, address: tuple[str, str, str | None], why: str) -> None:
        """The broker gave a message back. It names it by its address; of several alike the first is meant."""
        for message in self.in_flight():
            if message.mandatory and message.returned is None and message.address == address:
                message.returned = why
                return

    def lose(self, *, blaming: bool) -> Lost:
        """The connection is gone. What is repeatable goes out first on the next one, in its order. `blaming`: the
        broker closed it over something that was published."""
        lost = self.in_flight()
        self._in_flight.clear()
        self._bytes = 0
        guilty = lost[0] if blaming and len(lost) == 1 else None
        neighbours = [message for message in lost if message is not guilty]
        again = [message for message in neighbours if message.repeatable]
        for message in again:
            message.suspect = message.suspect or blaming
            message.returned = None
        self._waiting.extendleft(reversed(again))
        return Lost(tuple(message for message in neighbours if not message.repeatable), guilty)

    def clear(self) -> list[Outgoing]:
        """Everything that was on its way, and is so no longer."""
        messages = [*self.in_flight(), *self._waiting]
        self._in_flight.clear()
        self._waiting.clear()
        self._bytes = 0
        return [message for message in messages if not message.done]

    def waiting(self) -> list[Outgoing]:
        return [message for message in self._waiting if not message.done]

    def in_flight(self) -> list[Outgoing]:
        return [message for message, _ in self._in_flight.values()]

    def _up_to(self, tag: int) -> Iterator[int]:
        for each in self._in_flight:
            if each > tag:
                return
            yield each
