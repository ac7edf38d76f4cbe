"""Rows of the outbox table as values. The order of the columns is that of `claim.sql`, `list.sql` and `sweep.sql`."""

from __future__ import annotations

from typing import Any

from insika.choices import Guarantee
from outbox.message import ClaimedDelivery, DeliveryRow, DeliveryState


def claimed_delivery(row: tuple[Any, ...]) -> ClaimedDelivery:
    return ClaimedDelivery(
        id=row[0],
        claim=row[1],
        channel=row[2],
        recipient=row[3],
        kind=row[4],
        payload=row[5],
        url=row[6],
        guarantee=Guarantee(row[7]),
        attempts=row[8],
        tries=row[9],
        max_attempts=row[10],
        timeout_s=row[11],
        claimed_at=row[12],
        possible_duplicate=row[13],
        overtook=row[14],
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
        possible_duplicate=row[12],
        reason=row[13],
        payload=row[14],
        created_at=row[15],
        due_at=row[16],
        claimed_at=row[17],
        settled_at=row[18],
        claim_until=row[19],
    )
