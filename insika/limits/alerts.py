"""What operators are told of, as rows for the outbox. Pure.

An alert goes where the agent's profile says, by the same outbox as answers and with the same guarantees, and once: by
its key, which the store keeps unique. A profile that names no webhook has its events all the same, and each of them
once too. An alert that cannot be delivered raises no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from insika.storage.operations import NewAlert, NewDelivery

ALERT = "alert"
"""The kind of such a row, and the channel that it says it is on: its secret is the process's own."""
TIMEOUT_S = 15.0
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class About:
    """Whom and what an alert is about. `tenant` "" is the platform; a turn or a session need not be meant."""

    agent: str
    at: datetime
    tenant: str = ""
    turn_id: str | None = None
    session: str | None = None


def new_alert(key: str, type: str, data: Mapping[str, Any], about: About, webhook: str | None) -> NewAlert:
    """`type` and `data` are the event's own. `webhook` None: nobody is told by one."""
    if webhook is None:
        return NewAlert(key)
    meta: dict[str, Any] = {"at": about.at.astimezone(UTC).isoformat().replace("+00:00", "Z")}
    if about.turn_id is not None:
        meta["turn_id"] = about.turn_id
    if about.session is not None:
        meta["session"] = about.session
    if about.tenant:
        meta["tenant"] = about.tenant
    return NewAlert(
        key,
        NewDelivery(
            channel=ALERT,
            lane="",
            recipient=about.agent,
            payload={"type": type, "data": dict(data), "meta": meta, "agent": about.agent},
            url=webhook,
            max_attempts=MAX_ATTEMPTS,
            timeout_s=TIMEOUT_S,
            kind=ALERT,
        ),
    )
