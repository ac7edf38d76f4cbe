"""One line in the log for each turn that ends, with everything about it that may be told.

The line is made from the event that tells of the end, so that the log and the stream cannot disagree.
"""

from __future__ import annotations

import structlog

from insika.events import Event, EventSink, EventType

ENDS = frozenset({EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_CANCELLED})


class TurnLines:
    """Hands every event on to `events`, and logs those that end a turn: ids, outcome, usage and times, no texts."""

    def __init__(self, events: EventSink) -> None:
        self._events = events
        self._log = structlog.get_logger("insika.turns")

    def publish(self, event: Event) -> None:
        self._events.publish(event)
        if event.type in ENDS:
            self._log.info(
                "turn",
                turn_id=event.turn_id,
                session=event.session,
                agent=event.agent,
                **({"tenant": event.tenant} if event.tenant else {}),
                epoch=event.epoch,
                attempt=event.attempt,
                **event.data,
            )
