"""Rows of the outbox table as values. The order of the columns is that of `claim.sql` and `list.sql`."""

from __future__ import annotations

import json
from typing import Any

from insika.choices import Guarantee
from insika.storage.sqlite.times import from_micros, from_micros_or_none
from outbox.message import ClaimedDelivery, DeliveryRow, DeliveryState


def claimed_delivery(row: tuple[Any, ...], *, overtook: bool) -> ClaimedDelivery:
    return ClaimedDelivery(
        id=row[0],
        claim=row[1],
        channel=row[2],
        recipient=row[3],
        kind=row[4],
        payload=json.loads(row[5]),
        url=row[6],
        guarantee=Guarantee(row[7]),
        attempts=row[8],
        tries=row[9],
        max_attempts=row[10],
        timeout_s=row[11],
        claimed_at=from_micros(row[12]),
        possible_duplicate=bool(row[13]),
        overtook=overtook,
    )


def delivery_row(row: tuple[Any, ...]) -> DeliveryRow:
    return DeliveryRow(
        id=row[0],
        state=DeliveryState(row[1]),
        channel=row[2],
        recipient=row[3],
        kind=row[4],
        lane=row[5],
        lane_pos=row[6],
        url=row[7],
        guarantee=Guarantee(row[8]),
        attempts=row[9],
        max_attempts=row[10],
        resends=row[11],
        possible_duplicate=bool(row[12]),
        reason=row[13],
        payload=json.loads(row[14]),
        created_at=from_micros(row[15]),
        due_at=from_micros(row[16]),
        claimed_at=from_micros_or_none(row[17]),
        settled_at=from_micros_or_none(row[18]),
        claim_until=from_micros_or_none(row[19]),
    )
