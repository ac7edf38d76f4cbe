"""How turns and messages end, each in one statement. Whatever ends a turn answers its open batch and settles its model
calls with it.

Committing demands that nothing urgent is unseen, so that an interrupt that came first is a fact; the other endings
demand only the lease.
"""

from __future__ import annotations

from insika.messages import NO_USAGE, Usage
from insika.storage.json_text import to_json
from insika.storage.operations import CommitTurn, EndTurn, FailQueued, Fence, FinishAtOnce, Seen, SettleMail
from insika.storage.postgres.fenced import (
    Values,
    begun,
    fenced,
    model_call,
    numbers,
    results_json,
    spent,
    written,
)
from insika.storage.postgres.outgoing import alert_rows, deliveries
from insika.storage.postgres.pool import Pool
from insika.storage.rows import Begun, Committed


async def commit(pool: Pool, fence: Fence, seen: Seen, turn: CommitTurn) -> Committed | None:
    """Nearly always the last batch is closed by then. Where results are given it is not; where none are and it is not,
    all of them must be recorded already."""
    call = turn.model_call
    values = {
        **fenced(fence, turn.turn_id),
        "mail": seen.mail,
        "urgent": seen.urgent,
        "release_due": turn.release_due,
        "step": turn.step,
        "answer": turn.answer,
        "answers": 1 if turn.answer else 0,
        "outcome": turn.outcome,
        "synthesized": turn.synthesized,
        "route": turn.route,
        "timing": to_json(turn.timing),
        "given": results_json(turn.results),
        **model_call(None if call is None else call.key),
        "call_state": None if call is None else call.state,
        **spent(NO_USAGE if call is None else call.usage),
        **deliveries(turn.deliveries),
    }
    if not turn.results:
        row = await written(pool, "endings/commit", values)
        released, batch_open = (None, False) if row is None else row
        if released is not None or not batch_open:
            return None if released is None else Committed(released=released)
    row = await written(pool, "endings/commit_with_batch", values)
    return None if row is None else Committed(released=bool(row[0]))


async def end(pool: Pool, fence: Fence, turn: EndTurn) -> bool:
    values = {
        **fenced(fence, turn.turn_id),
        "state": turn.state.value,
        "outcome": turn.outcome,
        "error": to_json(turn.error),
        "timing": to_json(turn.timing),
        "given": results_json(turn.results),
        "control": numbers(turn.control),
        **spent(turn.estimate),
        **deliveries(turn.deliveries),
    }
    return await written(pool, "endings/end", values) is not None


async def fail_queued(pool: Pool, fence: Fence, seen: Seen, turn: FailQueued) -> Begun | None:
    values = {**_begins_and_ends(fence, seen, turn), "error": to_json(turn.error)}
    return begun(await written(pool, "endings/fail_queued", values))


async def finish_at_once(pool: Pool, fence: Fence, seen: Seen, turn: FinishAtOnce) -> Begun | None:
    values = {
        **_begins_and_ends(fence, seen, turn),
        "refused": numbers(turn.refused),
        "profile_revision": turn.profile_revision,
        "limits": to_json(turn.limits),
        "timing": to_json(turn.timing),
        "outcome": turn.outcome,
        "answer": turn.answer,
        "answers": 1 if turn.answer else 0,
        **deliveries(turn.deliveries),
    }
    return begun(await written(pool, "endings/finish_at_once", values))


def _begins_and_ends(fence: Fence, seen: Seen, turn: FailQueued | FinishAtOnce) -> Values:
    return {
        **fenced(fence, turn.turn_id),
        "mail": seen.mail,
        "urgent": seen.urgent,
        "positions": numbers(turn.positions),
        "merging": turn.merging,
        "agent": turn.agent,
        "channel": turn.channel,
        "recipient": turn.recipient,
        "origin": turn.origin,
        "alerts": to_json(alert_rows(turn.alerts)),
        **spent(turn.estimate),
    }


async def settle_mail(pool: Pool, fence: Fence, seen: Seen, mail: SettleMail) -> bool:
    values = {
        **fenced(fence, mail.turn_id),
        "mail": seen.mail,
        "urgent": seen.urgent,
        "positions": numbers(mail.positions),
        "control": numbers(mail.control),
        "how": mail.how,
        "state": mail.turn_state.value,
        "merging": mail.merging,
        "steerable_key": mail.steerable_key,
        **spent(mail.estimate),
        **deliveries(mail.deliveries),
    }
    return await written(pool, "endings/settle_mail", values) is not None


async def release_for_drain(pool: Pool, fence: Fence, *, unknown_result: str, estimate: Usage) -> bool:
    values = {**fenced(fence, None), "unknown_result": unknown_result, **spent(estimate)}
    return await written(pool, "endings/release_for_drain", values) is not None
