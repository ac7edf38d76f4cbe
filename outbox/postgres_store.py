"""The outbox on PostgreSQL, each operation one statement (a sweep looks first, and then writes what was decided). What
may follow from what is decided in `outbox.states`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from insika.clock import NEVER
from insika.storage.json_text import to_json
from insika.storage.operations import NewAlert
from insika.storage.postgres.outgoing import alert_rows
from insika.storage.postgres.pool import Pool, Row
from outbox.message import ClaimedDelivery, DeliveryRow, DeliveryState
from outbox.postgres_rows import claimed_delivery, delivery_row
from outbox.statements import statements
from outbox.states import Decision, Delivered, Failed, RetryIn, Uncertain, expired, state_after
from outbox.store import RESEND_DELAY_S, RESEND_GUARD_S, AlertsOf, NotResent, Resent, no_alerts

_RESEND_TRIES = 3


class PostgresOutboxStore:
    """See `outbox.store.OutboxStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._sql = statements("postgres")

    async def claim(self, grace_s: float) -> ClaimedDelivery | None:
        row = await self._row("claim", claim=str(uuid.uuid4()), grace_s=grace_s)
        return None if row is None else claimed_delivery(row)

    async def settle(
        self, delivery_id: str, claim: str, decision: Decision, *, alerts: Sequence[NewAlert] = ()
    ) -> bool:
        named, state = {"id": delivery_id, "claim": claim}, state_after(decision).value
        match decision:
            case RetryIn(delay_s, reason, possible_duplicate):
                written = await self._row(
                    "settle_again", **named, delay_s=delay_s, reason=reason, possible_duplicate=possible_duplicate
                )
            case _:
                why, raised = getattr(decision, "reason", None), to_json(alert_rows(alerts))
                written = await self._row("settle", **named, state=state, reason=why, alerts=raised)
        # Asked twice, because the first answer was lost: the row tells, as it is after this one.
        return written is not None or await self._row("settled_state", **named) == (state,)

    async def sweep_expired(self, alerts: AlertsOf = no_alerts) -> Sequence[DeliveryRow]:
        ran_out = await self._rows("expired")
        if not ran_out:
            return ()
        decided = []
        for claim, tries, *row in ran_out:
            delivery = delivery_row(tuple(row))
            decision = expired(attempts=tries, max_attempts=delivery.max_attempts, guarantee=delivery.guarantee)
            decided.append(_swept(delivery.id, claim, decision, alerts(delivery, decision)))
        return tuple(map(delivery_row, await self._rows("sweep", decided=to_json(decided))))

    async def resend(self, delivery_id: str, *, force: bool = False) -> Resent | NotResent:
        for _ in range(_RESEND_TRIES):
            values = {"id": delivery_id, "force": force, "guard_s": RESEND_GUARD_S, "delay_s": RESEND_DELAY_S}
            if await self._row("resend", **values) is not None:
                return Resent()
            refused = await self._why_not(delivery_id, force)
            if refused is not None:
                return refused
        return NotResent(f"delivery {delivery_id} is being changed; ask again")

    async def list(self, state: DeliveryState | None = None, limit: int = 100) -> Sequence[DeliveryRow]:
        return [
            delivery_row(row)
            for row in await self._rows("list", state=None if state is None else state.value, limit=limit)
        ]

    async def show(self, delivery_id: str) -> DeliveryRow | None:
        row = await self._row("show", id=delivery_id)
        return None if row is None else delivery_row(row)

    async def ids(self, prefix: str, limit: int) -> Sequence[str]:
        return [str(delivery_id) for (delivery_id,) in await self._rows("ids", prefix=prefix, limit=limit)]

    async def counts(self) -> Mapping[DeliveryState, int]:
        counted = await self._rows("counts")
        return dict.fromkeys(DeliveryState, 0) | {DeliveryState(state): count for state, count in counted}

    async def next_due_at(self) -> datetime:
        ((first,),) = await self._rows("next_due")
        return NEVER if first is None else first

    async def _why_not(self, delivery_id: str, force: bool) -> NotResent | None:
        """Why a resend wrote nothing, from the row as it is now. None: it may be sent, so it has changed since."""
        row = await self._row("resendable", id=delivery_id, guard_s=RESEND_GUARD_S)
        if row is None:
            return NotResent(f"there is no delivery {delivery_id}")
        state, not_before, too_early = row
        if state not in (DeliveryState.FAILED, DeliveryState.UNCERTAIN):
            return NotResent(f"delivery {delivery_id} is {state}; only failed and uncertain ones are sent again")
        if force or not too_early:
            return None
        may_arrive = ", and that request may still arrive" if state == DeliveryState.UNCERTAIN else ""
        return NotResent(
            f"delivery {delivery_id} was last tried less than {RESEND_GUARD_S / 60:g} minutes ago{may_arrive}",
            not_before,
        )

    async def _row(self, name: str, **values: Any) -> Row | None:
        return await self._pool.row(self._sql[name], values)

    async def _rows(self, name: str, **values: Any) -> Sequence[Row]:
        return await self._pool.rows(self._sql[name], values)


def _swept(delivery_id: str, claim: str, decision: Decision, alerts: Sequence[NewAlert]) -> Mapping[str, Any]:
    """What a sweep writes of a decision about a claim that ran out."""
    match decision:
        case RetryIn(delay_s, reason, possible_duplicate):
            pass
        case Uncertain(reason) | Failed(reason):
            delay_s, possible_duplicate = 0.0, False
        case Delivered():
            raise ValueError(f"delivery {delivery_id}: nobody learned that it arrived")
    return {
        "id": delivery_id,
        "claim": claim,
        "state": state_after(decision).value,
        "alerts": alert_rows(alerts),
        "reason": reason,
        "delay_s": delay_s,
        "possible_duplicate": possible_duplicate,
    }
