"""Rows of the outbox, written with their cause: a session's deliveries, each at its place, and alerts, each once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from insika.storage.json_text import to_json
from insika.storage.operations import NewAlert, NewDelivery
from insika.storage.sqlite.queries import sql


def deliver(
    connection: sqlite3.Connection, session_id: int, turn_id: str, deliveries: Sequence[NewDelivery], lane_seq: int
) -> None:
    """`lane_seq` is the position of the last of them."""
    for lane_pos, delivery in enumerate(deliveries, start=lane_seq - len(deliveries) + 1):
        cause = (os.urandom(9).hex(), session_id, turn_id, delivery.kind, delivery.channel, delivery.lane, lane_pos)
        sent = (delivery.recipient, to_json(delivery.payload), delivery.url, delivery.guarantee)
        bounds = (delivery.max_attempts, delivery.timeout_s, delivery.order_wait_s, delivery.unique_key)
        connection.execute(sql("endings/insert_delivery"), (*cause, *sent, *bounds))


def raise_alerts(connection: sqlite3.Connection, alerts: Sequence[NewAlert], turn_id: str | None) -> frozenset[str]:
    """Answers the keys of those that nobody had raised before. `turn_id` is the turn that caused them, if one did."""
    raised = set()
    for alert in alerts:
        if connection.execute(sql("alerts/raise"), {"key": alert.key}).rowcount == 0:
            continue
        raised.add(alert.key)
        if alert.delivery is not None:
            _send(connection, alert.key, alert.delivery, turn_id)
    return frozenset(raised)


def _send(connection: sqlite3.Connection, key: str, delivery: NewDelivery, turn_id: str | None) -> None:
    values = {
        "salt": os.urandom(9).hex(),
        "turn_id": turn_id,
        "kind": delivery.kind,
        "channel": delivery.channel,
        "recipient": delivery.recipient,
        "payload": to_json(delivery.payload),
        "url": delivery.url,
        "guarantee": delivery.guarantee,
        "max_attempts": delivery.max_attempts,
        "timeout_s": delivery.timeout_s,
        "order_wait_s": delivery.order_wait_s,
        "key": key,
    }
    connection.execute(sql("alerts/send"), values)
