"""What came on a queue, read without believing any of it, and made into what an actor is called with.

Which actor, queue and options a message gets follows from the queue it lies in, never from what stands in it. Its body
is not looked at here, except for hints, which are a number: reading a job is the actor's, under its own guards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dramatiq
from pika import spec

from actors.broker.link import HEADERS_UNREADABLE
from insika.documents import parse_json
from insika.jobs import MAX_BODY_BYTES
from insika.text import is_clean

ACCEPT_TURN = "accept_turn"
KEEP_DEAD = "keep_dead"
WAKE_SESSION = "wake_session"
DELIVER = "deliver"

SUSPECT_AT = 3
"""The delivery at which a message may be what kills those who handle it."""
_LONGEST_ID = 128
_MAX_SESSION_ID = 2**63 - 1
_DEATHS: Mapping[str, str] = {
    "expired": "its time to live ran out before it was read",
    "delivery_limit": "it was delivered as often as the queue allows",
    "maxlen": "the queue was full",
    "rejected": "a consumer refused it",
}


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message from a queue of jobs.

    `message_id`: what the producer called it, fit to be a job's id. `deliveries`: how often it came, this time
    included; on a classic queue, which does not count, 2 stands for every time but the first. `died_of`: of a dead
    letter, why. `settle_now`: tell the broker that it is dealt with before the actor ends, and wait until it knows;
    False when it may come again all the same.
    """

    body: bytes = field(repr=False)
    message_id: str | None = None
    deliveries: int = 1
    died_of: str | None = None
    settle_now: Callable[[], bool] = field(default=lambda: True, repr=False)

    @property
    def is_suspect(self) -> bool:
        return self.deliveries >= SUSPECT_AT


class BuiltMessage(dramatiq.Message[Any]):
    """A dramatiq message that was made here and never travels. dramatiq writes messages into its log lines."""

    def __str__(self) -> str:
        return f"{self.actor_name} from {self.queue_name}"

    __repr__ = __str__


class Unreadable(Exception):
    """A hint that says nothing; it is dropped."""


def built(queue: str, actor: str, *args: object) -> BuiltMessage:
    return BuiltMessage(queue_name=queue, actor_name=actor, args=args, kwargs={}, options={})


def read_delivery(
    method: spec.Basic.Deliver, properties: spec.BasicProperties, body: bytes, settle_now: Callable[[], bool]
) -> Delivery:
    headers = properties.headers if isinstance(properties.headers, dict) else {}
    return Delivery(
        body=body,
        message_id=job_id(properties.message_id),
        deliveries=_deliveries(bool(method.redelivered), headers),
        died_of=_died_of(headers),
        settle_now=settle_now,
    )


def read_session_id(body: bytes) -> int:
    """Raises Unreadable for what cannot be the id of a session."""
    if len(body) > len(str(_MAX_SESSION_ID)) or not body.isdigit():
        raise Unreadable
    session_id = int(body)
    if not 0 < session_id <= _MAX_SESSION_ID:
        raise Unreadable
    return session_id


def job_id(message_id: object) -> str | None:
    """The AMQP message_id as a job's id. What cannot be one is stood for by its digest, so that the same message is
    still known when it comes again."""
    if not message_id or not isinstance(message_id, str | bytes):
        return None
    if isinstance(message_id, str) and len(message_id) <= _LONGEST_ID and is_clean(message_id):
        return message_id
    raw = message_id if isinstance(message_id, bytes) else message_id.encode("utf-8", "surrogatepass")
    return f"sha256-{hashlib.sha256(raw).hexdigest()}"


def job_body(body: bytes) -> bytes:
    """The job itself. Of a dramatiq envelope for `accept_turn` with one object as its argument that is this object, and
    nothing else in the envelope counts; anything else is returned as it is. Never raises."""
    if len(body) > MAX_BODY_BYTES or b'"accept_turn"' not in body:
        return body
    try:
        envelope = parse_json(body.decode("utf-8-sig"))
        if not isinstance(envelope, dict) or envelope.get("actor_name") != ACCEPT_TURN:
            return body
        args = envelope.get("args")
        if not isinstance(args, list) or len(args) != 1 or not isinstance(args[0], dict):
            return body
        return json.dumps(args[0]).encode()
    except (ValueError, RecursionError):
        return body


def _deliveries(redelivered: bool, headers: Mapping[object, object]) -> int:
    """Quorum queues say in a header how often a message came before. A producer may write one too, so it only counts
    for what the broker itself calls redelivered."""
    if not redelivered:
        return 1
    if HEADERS_UNREADABLE in headers:
        return SUSPECT_AT
    before = headers.get("x-delivery-count")
    counted = before if isinstance(before, int) and not isinstance(before, bool) else 0
    return max(2, 1 + counted)


def _died_of(headers: Mapping[object, object]) -> str | None:
    """The broker's own account of a dead letter; the newest of several stands first."""
    deaths = headers.get("x-death")
    newest = deaths[0] if isinstance(deaths, list) and deaths else None
    reason = newest.get("reason") if isinstance(newest, dict) else headers.get("x-first-death-reason")
    return _DEATHS.get(reason) if isinstance(reason, str) else None
