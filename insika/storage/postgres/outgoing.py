"""Rows of the outbox as a statement takes them: deliveries in their order, and alerts, whose rows `insika_raise` writes
where nobody has raised them before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from insika.storage.json_text import to_json
from insika.storage.operations import NewAlert, NewDelivery
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.queries import sql


def deliveries(new: Sequence[NewDelivery]) -> dict[str, Any]:
    """In their order, which is the order of their positions."""
    rows = [{**_row(each), "lane": each.lane, "unique_key": each.unique_key} for each in new]
    return {"deliveries": len(rows), "new_deliveries": to_json(rows)}


def alert_rows(alerts: Sequence[NewAlert]) -> list[dict[str, Any]]:
    """As `insika_raise` takes them. One without a salt is sent to nobody."""
    return [
        {"key": alert.key} if alert.delivery is None else {**_row(alert.delivery), "key": alert.key} for alert in alerts
    ]


async def raise_alerts(pool: Pool, alerts: Sequence[NewAlert]) -> frozenset[str]:
    if not alerts:
        return frozenset()
    raised = await pool.rows(sql("alerts/raise"), {"alerts": to_json(alert_rows(alerts))})
    return frozenset(key for (key,) in raised)


def _row(delivery: NewDelivery) -> dict[str, Any]:
    """The salt makes its id unique."""
    return {
        "salt": os.urandom(9).hex(),
        "kind": delivery.kind,
        "channel": delivery.channel,
        "recipient": delivery.recipient,
        "payload": delivery.payload,
        "url": delivery.url,
        "guarantee": delivery.guarantee,
        "max_attempts": delivery.max_attempts,
        "timeout_s": delivery.timeout_s,
        "order_wait_s": delivery.order_wait_s,
    }
