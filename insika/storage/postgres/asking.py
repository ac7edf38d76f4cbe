"""Whom a turn asks, and what it cost: the route its classifier finds, the agent it is handed to, and calls of models
that screen what is said. Each operation is one statement, and writes nothing when its fence does not hold; to book a
cost takes no fence.
"""

from __future__ import annotations

from insika.messages import Usage
from insika.storage.json_text import to_json
from insika.storage.operations import Fence, ModelCallKey, RedirectTurn, RouteTurn, Seen, SettledModelCall, answering
from insika.storage.port import StoreUnavailable
from insika.storage.postgres.fenced import fenced, model_call, settled, spent, written
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.queries import sql

_TRIES = 10
"""As many as one owner could ask for at this moment."""


async def route_turn(pool: Pool, fence: Fence, seen: Seen, turn: RouteTurn) -> bool:
    values = {
        **fenced(fence, turn.turn_id),
        "urgent": seen.urgent,
        "route": turn.route,
        "model": answering(turn.next_call),
        **settled(turn.model_call),
        **model_call(turn.next_call, prefix="next"),
    }
    return await written(pool, "turns/route_turn", values) is not None


async def redirect_turn(pool: Pool, fence: Fence, seen: Seen, turn: RedirectTurn) -> bool:
    values = {
        **fenced(fence, turn.turn_id),
        "urgent": seen.urgent,
        "agent": turn.agent,
        "profile_revision": turn.profile_revision,
        "limits": to_json(turn.limits),
        "depth": turn.depth,
        "model": answering(turn.model_call),
        **model_call(turn.model_call),
    }
    return await written(pool, "turns/redirect_turn", values) is not None


async def open_model_call(
    pool: Pool,
    fence: Fence,
    seen: Seen,
    turn_id: str,
    step: int,
    *,
    purpose: str,
    model: str,
    estimate: Usage,
) -> ModelCallKey | None:
    values = {
        **fenced(fence, turn_id),
        "urgent": seen.urgent,
        "step": step,
        "purpose": purpose,
        "model": model,
        **spent(estimate),
    }
    for _ in range(_TRIES):
        row = await pool.row(sql("turns/open_model_call"), values)
        if row is None:
            return None
        if row[0] is not None:
            return ModelCallKey(step, row[0], purpose, model)
    raise StoreUnavailable("others were first each time; try again")


async def settle_model_call(pool: Pool, turn_id: str, call: SettledModelCall) -> bool:
    return await pool.row(sql("turns/settle_model_call"), {"turn_id": turn_id, **settled(call)}) is not None
