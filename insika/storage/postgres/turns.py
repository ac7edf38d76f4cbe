"""A turn while it runs. Each operation is one statement, and writes nothing when its fence does not hold.

What starts anything (the turn, a model request, a call) demands besides that nothing urgent is unseen.
"""

from __future__ import annotations

from collections.abc import Sequence

from insika.messages import Usage
from insika.storage.json_text import to_json, tool_calls_json, verbatim_json
from insika.storage.operations import (
    AppendStep,
    AskApproval,
    CallResult,
    CrossBoundary,
    Fence,
    ModelCallKey,
    Seen,
    StartTurn,
    answering,
)
from insika.storage.postgres.fenced import begun, fenced, model_call, numbers, results_json, settled, spent, written
from insika.storage.postgres.outgoing import alert_rows
from insika.storage.postgres.pool import Pool
from insika.storage.rows import Begun, CallStart


async def start(pool: Pool, fence: Fence, seen: Seen, turn: StartTurn) -> Begun | None:
    values = {
        **fenced(fence, turn.turn_id),
        "mail": seen.mail,
        "urgent": seen.urgent,
        "positions": numbers(turn.positions),
        "refused": numbers(turn.refused),
        "merging": turn.merging,
        "steerable_key": turn.steerable_key,
        "load_from": turn.load_from,
        "agent": turn.agent,
        "channel": turn.channel,
        "recipient": turn.recipient,
        "origin": turn.origin,
        "profile_revision": turn.profile_revision,
        "limits": to_json(turn.limits),
        "model": answering(turn.model_call),
        "alerts": to_json(alert_rows(turn.alerts)),
        **model_call(turn.model_call),
    }
    return begun(await written(pool, "turns/start", values))


async def append(pool: Pool, fence: Fence, step: AppendStep) -> int | None:
    calls = [
        {
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
            "side_effect": call.side_effect,
        }
        for call in step.calls
    ]
    said = step.message.tool_calls
    values = {
        **fenced(fence, step.turn_id),
        "step": step.step,
        "open_calls": len(step.calls),
        "calls": to_json(calls),
        "content": step.message.content,
        "tool_calls": tool_calls_json(said) if said else None,
        "batch_open": len(said),
        "verbatim": verbatim_json(step.message.verbatim),
        **settled(step.model_call),
    }
    row = await written(pool, "turns/append", values)
    return None if row is None else int(row[0])


async def retry_model(
    pool: Pool, fence: Fence, seen: Seen, turn_id: str, call: ModelCallKey, *, estimate: Usage
) -> bool:
    values = {**fenced(fence, turn_id), "urgent": seen.urgent, **model_call(call), **spent(estimate)}
    return await written(pool, "turns/retry_model", values) is not None


async def ask_approvals(pool: Pool, fence: Fence, seen: Seen, turn_id: str, asks: Sequence[AskApproval]) -> bool:
    rows = [
        {
            "id": ask.id,
            "call_id": ask.call_id,
            "tool": ask.tool,
            "arguments_hash": ask.arguments_hash,
            "valid_s": ask.valid_s,
        }
        for ask in asks
    ]
    values = {
        **fenced(fence, turn_id),
        "urgent": seen.urgent,
        "asks": to_json(rows),
        "call_ids": [ask.call_id for ask in asks],
    }
    return await written(pool, "turns/ask_approvals", values) is not None


async def suspend(pool: Pool, fence: Fence, seen: Seen, turn_id: str) -> bool:
    values = {**fenced(fence, turn_id), "mail": seen.mail, "urgent": seen.urgent}
    return await written(pool, "turns/suspend", values) is not None


async def resume_turn(pool: Pool, fence: Fence, seen: Seen, turn_id: str) -> bool:
    return await written(pool, "turns/resume_turn", {**fenced(fence, turn_id), "urgent": seen.urgent}) is not None


async def start_call(
    pool: Pool, fence: Fence, seen: Seen, turn_id: str, *, step: int, index: int, arguments_hash: str | None
) -> CallStart:
    values = {
        **fenced(fence, turn_id),
        "urgent": seen.urgent,
        "step": step,
        "index": index,
        "arguments_hash": arguments_hash,
    }
    row = await written(pool, "turns/start_call", values)
    return CallStart(held=row is not None, moved=row is not None and bool(row[0]))


async def finish_call(pool: Pool, fence: Fence, turn_id: str, step: int, result: CallResult) -> CallStart:
    values = {
        **fenced(fence, turn_id),
        "step": step,
        "index": result.index,
        "call_id": result.call_id,
        "state": result.state.value,
        "content": result.content,
        "is_error": result.is_error,
        "halts": result.halts,
        "approval": None if result.approval is None else result.approval.value,
    }
    row = await written(pool, "turns/finish_call", values)
    return CallStart(held=row is not None, moved=row is not None and bool(row[0]))


async def cross_boundary(pool: Pool, fence: Fence, seen: Seen, boundary: CrossBoundary) -> int | None:
    notices = [{"content": notice, "position": None} for notice in boundary.notices]
    steers = [{"content": absorbed.content, "position": absorbed.position} for absorbed in boundary.absorbed]
    values = {
        **fenced(fence, boundary.turn_id),
        "mail": seen.mail,
        "urgent": seen.urgent,
        "step": boundary.step,
        "results": len(boundary.results),
        "given": results_json(boundary.results),
        "added": len(notices) + len(steers),
        "lines": to_json(notices + steers),
        "absorbed": numbers(absorbed.position for absorbed in boundary.absorbed),
        "refused": numbers(boundary.refused),
        "takes_steers": boundary.takes_steers,
        "nothing_unseen": boundary.nothing_unseen,
        **model_call(boundary.next_call),
    }
    row = await written(pool, "turns/cross_boundary", values)
    return None if row is None else int(row[0])
