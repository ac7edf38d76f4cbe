"""What processes tell each other beside the store: signals, events, what they count together, and whether that works.

Nothing here is needed for correctness: a signal is a hint, an event is a report, and the store carries the truth. For
neither may a turn wait; for the windows of its limits and the circuit of its model it waits a moment (their ports are
`insika.limits.windows` and `insika.reliability.circuit`). Two sets of parts satisfy these ports, Redis and the twin
within one process; one conformance suite holds both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from insika.errors import InsikaError
from insika.events import Event, EventSink, EventType
from insika.limits.windows import EdgeWindows
from insika.reliability.circuit import Circuits

SignalListener = Callable[[int], None]
"""Called on the loop with the id of a session. It must not block; what it raises is logged and goes no further."""

PAGE = 1_000
"""How many events `since` answers with when it is not told."""


class EventsUnavailable(InsikaError):
    """The event stream cannot be read now. Ask again, or subscribe, which waits."""

    type = "events_unavailable"


class Signals(Protocol):
    """Something new or urgent lies in the mailbox of a session that may be running in any process."""

    def publish(self, session_id: int) -> None:
        """Tell every listener, also those in other processes. Call it on the loop's thread. Never blocks and never
        raises; a signal may be lost, be repeated, come late, and several for one session may become one."""
        ...

    def listen(self, listener: SignalListener) -> AbstractContextManager[None]:
        """Have `listener` called with each signal, of whichever process, until the context is left."""
        ...


class Subscription(Protocol):
    """Events in the order of the stream. Iterating again goes on after the event that was last given.

    It never raises for what happens to the stream, and ends only when the stream is closed. Where events are missing
    (the subscriber was too slow, the stream lost or dropped them), an event `events_missed` stands in their place."""

    def __aiter__(self) -> AsyncIterator[Event]: ...


class EventStream(EventSink, Protocol):
    """The events of a deployment, numbered by `seq`: integers from 1 to below 2**53 (JavaScript's largest exact
    integer) that only grow, not always by one. A bounded number of the newest is kept."""

    def publish(self, event: Event) -> None:
        """Append. Call it on the loop's thread. Never blocks and never raises; the stream gives the number."""
        ...

    async def since(self, seq: int, limit: int = PAGE) -> list[Event]:
        """What is kept of the events after number `seq`, oldest first: at most `limit`, not counting the
        `events_missed` that stand where some are missing. Raises EventsUnavailable."""
        ...

    def subscribe(self, after: int | None = None) -> AbstractContextManager[Subscription]:
        """From number `after` on, or from now on: whatever is published in this process after the call is given, and
        perhaps a little of what was published just before. A number that this stream has not reached counts as now,
        and as having missed something."""
        ...


HealthListener = Callable[["Health"], None]
"""Called on the loop after each change. It must not block; what it raises is logged and goes no further."""


class Health(Protocol):
    """Whether signals and events reach other processes, and windows and circuits are theirs too."""

    @property
    def degraded(self) -> bool:
        """They do not, or not all of them: poll, and say so to whoever asks."""
        ...

    @property
    def since(self) -> datetime | None:
        """When it became as it is now, in UTC; None: it has been well from the start."""
        ...

    @property
    def reason(self) -> str:
        """Why it is degraded, for people; empty when it is not. Holds no secrets and nothing that anybody said."""
        ...

    def listen(self, listener: HealthListener) -> AbstractContextManager[None]:
        """Have `listener` called on every change until the context is left."""
        ...


@dataclass(frozen=True, slots=True)
class Coordination:
    """All that processes tell each other."""

    signals: Signals
    events: EventStream
    health: Health
    windows: EdgeWindows
    circuits: Circuits


def missed(after: int, following: Event) -> Event:
    """What stands before `following` when events between number `after` and it are missing. Its number is one below:
    whoever resumes from there goes on with `following`."""
    return Event(EventType.EVENTS_MISSED, following.at, data={"after": after}, seq=following.seq - 1)
