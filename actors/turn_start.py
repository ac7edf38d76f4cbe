"""What the store is asked for when a turn begins, and what is told of it: made from the messages that open the turn."""

from __future__ import annotations

from actors.stage import Staged
from actors.turn_events import ScopedEvents
from insika.events import EventType
from insika.messages import user
from insika.storage.operations import ModelCallKey, StartTurn
from insika.storage.rows import LogEntry
from insika.turn.queue_policy import Begin


def start_of(begin: Begin, staged: Staged, load_from: int | None) -> StartTurn:
    """Who answers, where to, and who may join: from the message that opens the turn."""
    first = begin.mail[0]
    return StartTurn(
        begin.turn_id,
        tuple(row.position for row in begin.mail),
        first.agent,
        first.channel,
        first.recipient,
        first.origin,
        staged.revision,
        staged.limits,
        ModelCallKey(1, 1, "answer", staged.identity.model),
        first.key if staged.identity.limits.steer_max_messages > 0 else None,
        begin.merging,
        load_from=load_from,
    )


def opening_of(begin: Begin, last_seq: int, epoch: int) -> tuple[LogEntry, ...]:
    """The turn's first messages, as the start has just written them; `last_seq` is the last one's."""
    first_seq = last_seq - len(begin.mail) + 1
    return tuple(
        LogEntry(first_seq + place, begin.turn_id, epoch, 0, user(row.text), row.position)
        for place, row in enumerate(begin.mail)
    )


def tell_start(emit: ScopedEvents, begin: Begin, staged: Staged) -> None:
    if begin.steers_released:
        emit(EventType.TURN_STEER_RELEASED, {"released_as": begin.turn_id, "count": len(begin.mail)})
    elif len(begin.mail) > 1:
        emit(EventType.TURN_COALESCED, {"merged": len(begin.mail) - 1, "arrivals": len(begin.mail)})
    emit(EventType.TURN_STARTED, {"revision": staged.revision})
