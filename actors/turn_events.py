"""Says what happens in one session: as events for those who watch, and as one log line for each turn that ends.

Nothing a person or a model said goes into the log; into events only where the event exists for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from insika.clock import Clock
from insika.events import Event, EventSink, EventType
from insika.storage.rows import Loaded

_ENDINGS = frozenset({EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_CANCELLED})
_PLACE = ("step", "attempt")
"""Of an event. In the log line `attempt` is how often the turn was taken up, and `steps` says the rest."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose events they are. `attempt`: how often the turn was taken up."""

    session: str
    tenant: str
    epoch: int
    turn_id: str | None = None
    agent: str | None = None
    attempt: int = 1


class ScopedEvents:
    """`emit(type, data)` for one scope. An event is of the step that its data name, and of the attempt at that step's
    request that they name, or that was spoken of last."""

    def __init__(self, sink: EventSink, clock: Clock, scope: Scope) -> None:
        self._sink = sink
        self._clock = clock
        self._scope = scope
        self._step = 0
        self._attempt = 1
        self._log = structlog.get_logger("insika.turns")

    def hand_to(self, agent: str) -> None:
        """From now on the turn is this agent's, and so are its events."""
        self._scope = replace(self._scope, agent=agent)

    def about(self, agent: str) -> ScopedEvents:
        """The same, for what is told of another agent."""
        return ScopedEvents(self._sink, self._clock, replace(self._scope, agent=agent))

    def __call__(self, type: str, data: Mapping[str, Any], /) -> None:
        scope, step = self._scope, data.get("step", 0)
        if "attempt" in data:
            self._step, self._attempt = step, data["attempt"]
        self._sink.publish(
            Event(
                type,
                self._clock.now(),
                scope.turn_id,
                scope.session,
                scope.agent,
                scope.tenant or None,
                scope.epoch,
                step,
                self._attempt if step == self._step else 1,
                data,
            )
        )
        if type in _ENDINGS:
            self._write(type, data)

    def _write(self, type: str, data: Mapping[str, Any]) -> None:
        scope = self._scope
        log = self._log.warning if type == EventType.TURN_FAILED else self._log.info
        log(
            str(type),
            turn_id=scope.turn_id,
            session=scope.session,
            tenant=scope.tenant or None,
            agent=scope.agent,
            epoch=scope.epoch,
            attempt=scope.attempt,
            **{name: value for name, value in data.items() if name not in _PLACE},
        )


def events_of(  # noqa: PLR0917 - two of them say whose events they are, where that is not the running turn
    loaded: Loaded, epoch: int, sink: EventSink, clock: Clock, turn_id: str | None = None, agent: str | None = None
) -> ScopedEvents:
    """What the owner of this session says of a turn; left out, of the running one."""
    session, turn = loaded.session, loaded.turn
    if turn is None or turn_id not in (None, turn.id):
        scope = Scope(session.name, session.tenant, epoch, turn_id, agent)
    else:
        scope = Scope(session.name, session.tenant, epoch, turn.id, turn.agent, turn.attempt)
    return ScopedEvents(sink, clock, scope)
