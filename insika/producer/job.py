"""A turn job as it is published: made and checked here, before the first try, so that every try says the same.

What is checked is what ingress checks of a job by itself; whether the agent and the channel exist, only ingress knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

import pika
import uuid_utils

from insika.choices import Origin, QueueMode
from insika.documents import plain
from insika.errors import InvalidJob
from insika.jobs import parse_job

EXCHANGE = ""
"""The default exchange, which takes the name of a queue as the routing key."""
QUEUE = "insika.turns"
_LONGEST_MESSAGE_ID = 255
"""Bytes of a short string in AMQP 0-9-1. An id of that many characters may be longer; the job itself has it as well."""


class JobFields(TypedDict, total=False):
    """What a job may say beside who said what to whom. None is the same as nothing.

    `id`: this message's, unique in its session; made up when absent. `channel`: where the answer is delivered; absent:
    it is kept. `recipient`: the person's address there; absent: the session. `tenant`, `customer`: whose session it is.
    `vars`: remembered at first contact. `queue_mode`: what to do in a busy session. `origin`: who wrote it. `sent_at`:
    when, an aware time; kept for the record.
    """

    id: str | None
    tenant: str | None
    customer: str | None
    channel: str | None
    recipient: str | None
    vars: Mapping[str, Any] | None
    queue_mode: QueueMode | str | None
    origin: Origin | str | None
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class PublishableJob:
    """One job, ready to go out: the same bytes and the same id at every try."""

    id: str
    body: bytes
    properties: pika.BasicProperties


def publishable_job(*, session: str, agent: str, text: str, fields: Mapping[str, Any]) -> PublishableJob:
    """The job that these arguments make. Raises InvalidJob, with the field, for what ingress would refuse to read."""
    given = {name: value for name, value in fields.items() if value is not None}
    document = {"id": str(uuid_utils.uuid7()), "session": session, "agent": agent, "text": text, **given}
    if "sent_at" in document:
        document["sent_at"] = _rfc3339(document["sent_at"])
    parse_job(document)
    cleaned = plain(document)
    id_ = cleaned["id"]
    body = json.dumps(cleaned, ensure_ascii=False, separators=(",", ":")).encode()
    properties = pika.BasicProperties(
        content_type="application/json",
        delivery_mode=pika.DeliveryMode.Persistent.value,
        message_id=id_ if len(id_.encode()) <= _LONGEST_MESSAGE_ID else None,
    )
    return PublishableJob(id_, body, properties)


def _rfc3339(at: object) -> str:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidJob("sent_at: expected a datetime with its time zone", field="sent_at")
    return at.isoformat()
