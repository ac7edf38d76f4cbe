"""How an event is written into the stream and read from it: one JSON object, in which what is absent is left out.

What is read may have been written by another version, or by anybody who can reach Redis: what cannot be read is
skipped, with a line in the log that does not quote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import structlog
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from insika.events import Event
from insika.text import clean_text

LARGEST_EVENT = 1024 * 1024
"""Bytes. No event of ours comes near it; one that did would be refused by Redis for ever."""

_EMPTY: tuple[object, ...] = (None, 0, {})


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str
    at: AwareDatetime
    turn_id: str | None = None
    session: str | None = None
    agent: str | None = None
    tenant: str | None = None
    epoch: int = 0
    step: int = 0
    attempt: int = 0
    data: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the stream. `before`: the number of the one before it, 0 in a new stream, None: not known.
    `event` is None where there is nothing that can be read."""

    seq: int
    before: int | None
    event: Event | None

    def follows_gap(self, seq: int) -> bool:
        """Whether entries between number `seq` and this one are missing, or may be: a new stream knows of no other."""
        if self.before is None or seq >= self.seq - 1:
            return False
        return self.before > seq or (self.before == 0 and seq > 0)


def written(event: Event) -> bytes | None:
    """`event` as it is stored; None where that cannot be done, which is logged."""
    fields = {**event._asdict(), "at": event.at.astimezone(UTC).isoformat(), "data": dict(event.data)}
    del fields["seq"]
    kept = {name: value for name, value in fields.items() if value not in _EMPTY}
    try:
        text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        _log().warning("event_not_written", type=str(event.type), because=type(error).__name__)
        return None
    encoded = clean_text(text).encode()
    if len(encoded) > LARGEST_EVENT:
        _log().warning("event_not_written", type=str(event.type), because="too large", bytes=len(encoded))
        return None
    return encoded


def read(entry_id: bytes, fields: Mapping[bytes, bytes]) -> Entry:
    """An entry as Redis gives it. Never raises for what stands in it."""
    seq, _, tail = entry_id.partition(b"-")
    try:
        if tail != b"0":
            raise ValueError("an id that no event has")
        event = _event(int(seq), fields[b"event"])
        return Entry(event.seq, int(fields[b"before"]), event)
    except (ValueError, KeyError, ValidationError, RecursionError) as error:
        _log().warning("event_unreadable", entry=entry_id.decode("ascii", "replace"), because=type(error).__name__)
        return Entry(int(seq), None, None)


def _event(seq: int, text: bytes) -> Event:
    it = _Written.model_validate_json(text)
    return Event(
        it.type, it.at, it.turn_id, it.session, it.agent, it.tenant, it.epoch, it.step, it.attempt, it.data, seq
    )


def _log() -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.get_logger("insika.coordination")
    return logger
