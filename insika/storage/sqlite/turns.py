"""A turn while it runs. Each operation updates the session row by id and lease first, and stops when that finds none.

What starts anything (the turn, a model request, a call) demands besides that nothing urgent is unseen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from insika.messages import Usage
from insika.storage.json_text import to_json
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
from insika.storage.port import StoreRefused
from insika.storage.rows import Begun, CallStart, Ended
from insika.storage.sqlite import mailbox, model_calls
from insika.storage.sqlite.conversation import Tail, record
from insika.storage.sqlite.group import Undo
from insika.storage.sqlite.outgoing import raise_alerts
from insika.storage.sqlite.queries import sql


def start(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn: StartTurn) -> Begun | None:
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "mail": seen.mail,
        "urgent": seen.urgent,
        "turn_id": turn.turn_id,
        "steerable_key": turn.steerable_key,
        "merging": int(turn.merging),
        "taken": len(turn.positions),
        "refused": len(turn.refused),
        "load_from": turn.load_from,
        "answers": 0,
        "deliveries": 0,
        "runs": 1,
        "begins": 1,
    }
    row = connection.execute(sql("turns/fence_start"), values).fetchone()
    if row is None:
        return None
    log_seq, epoch, _ = row
    first = log_seq - len(turn.positions) + 1
    place = (turn.turn_id, fence.session_id, turn.positions[0])
    address = (turn.agent, turn.channel, turn.recipient, turn.origin)
    begun = (*place, *address, turn.profile_revision, to_json(turn.limits), first, answering(turn.model_call))
    if connection.execute(sql("turns/run_turn"), begun).rowcount == 0:
        raise Undo(None)  # it has ended, or is another session's
    tail = Tail(connection, fence.session_id, turn.turn_id, epoch, first)
    texts = mailbox.take(connection, fence.session_id, turn.positions, turn.turn_id, None)
    for position, text in zip(turn.positions, texts, strict=True):
        tail.user(0, text, position)
    mailbox.end(connection, fence.session_id, turn.refused, Ended.REFUSED, None)
    _open(connection, fence, turn.turn_id, turn.model_call)
    return Begun(int(log_seq), raise_alerts(connection, turn.alerts, turn.turn_id))


def append(connection: sqlite3.Connection, fence: Fence, step: AppendStep) -> int | None:
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "turn_id": step.turn_id,
        "calls": len(step.calls),
    }
    row = connection.execute(sql("turns/fence_append"), values).fetchone()
    if row is None:
        return None
    log_seq, epoch = row
    insert = sql("turns/insert_call")
    for index, call in enumerate(step.calls):
        announced = (call.call_id, call.name, to_json(call.arguments), int(call.side_effect))
        connection.execute(insert, (step.turn_id, step.step, index, fence.session_id, *announced))
    Tail(connection, fence.session_id, step.turn_id, epoch, log_seq).assistant(step.step, step.message)
    model_calls.settle(connection, step.turn_id, step.model_call)
    connection.execute(sql("turns/speak"), {"turn_id": step.turn_id, "model": step.model_call.key.model})
    return int(log_seq)


def retry_model(
    connection: sqlite3.Connection, fence: Fence, seen: Seen, turn_id: str, call: ModelCallKey, *, estimate: Usage
) -> bool:
    if connection.execute(sql("turns/fence_request"), _urgent(fence, seen, turn_id)).rowcount == 0:
        return False
    model_calls.estimate_open(connection, turn_id, estimate)
    if not model_calls.open_call(connection, fence.session_id, turn_id, call):
        raise Undo(False)
    return True


def ask_approvals(
    connection: sqlite3.Connection, fence: Fence, seen: Seen, turn_id: str, asks: Sequence[AskApproval]
) -> bool:
    values = _urgent(fence, seen, turn_id)
    if connection.execute(sql("turns/fence_batch"), values).rowcount == 0:
        return False
    for ask in asks:
        about = {"turn_id": turn_id, "call_id": ask.call_id}
        if connection.execute(sql("turns/find_announced_call"), about).fetchone() is None:
            raise Undo(False)
        shown = {"id": ask.id, "tool": ask.tool, "arguments_hash": ask.arguments_hash}
        placed = {"session_id": fence.session_id, "valid_us": round(ask.valid_s * 1_000_000)}
        connection.execute(sql("turns/ask_approval"), {**about, **shown, **placed})
    return True


def suspend(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn_id: str) -> bool:
    values = {**_urgent(fence, seen, turn_id), "mail": seen.mail}
    if connection.execute(sql("turns/fence_suspend"), values).rowcount == 0:
        return False
    connection.execute(sql("turns/suspend_turn"), {"turn_id": turn_id})
    return True


def resume_turn(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn_id: str) -> bool:
    if connection.execute(sql("turns/fence_urgent"), _urgent(fence, seen, turn_id)).rowcount == 0:
        return False
    connection.execute(sql("turns/resume_turn"), {"turn_id": turn_id})
    return True


def start_call(
    connection: sqlite3.Connection,
    fence: Fence,
    seen: Seen,
    turn_id: str,
    *,
    step: int,
    index: int,
    arguments_hash: str | None,
) -> CallStart:
    if connection.execute(sql("turns/fence_urgent"), _urgent(fence, seen, turn_id)).rowcount == 0:
        return CallStart(held=False, moved=False)
    call = {"turn_id": turn_id, "step": step, "index": index, "arguments_hash": arguments_hash}
    moved = connection.execute(sql("turns/start_call"), call).rowcount == 1
    return CallStart(held=True, moved=moved)


def finish_call(connection: sqlite3.Connection, fence: Fence, turn_id: str, step: int, result: CallResult) -> CallStart:
    values = {"session_id": fence.session_id, "lease_id": fence.lease_id, "turn_id": turn_id}
    if connection.execute(sql("turns/fence_call_result"), values).rowcount == 0:
        return CallStart(held=False, moved=False)
    return CallStart(held=True, moved=record(connection, turn_id, step, result))


def cross_boundary(connection: sqlite3.Connection, fence: Fence, seen: Seen, boundary: CrossBoundary) -> int | None:
    added = len(boundary.results) + len(boundary.notices) + len(boundary.absorbed)
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "turn_id": boundary.turn_id,
        "urgent": seen.urgent,
        "results": len(boundary.results),
        "absorbed": len(boundary.absorbed),
        "refused": len(boundary.refused),
        "added": added,
        "takes_steers": int(boundary.takes_steers),
        "nothing_unseen": int(boundary.nothing_unseen),
        "mail": seen.mail,
    }
    row = connection.execute(sql("turns/fence_boundary"), values).fetchone()
    if row is None:
        return None
    log_seq, epoch = row
    positions = [absorbed.position for absorbed in boundary.absorbed]
    mailbox.take(connection, fence.session_id, positions, boundary.turn_id, None)
    mailbox.end(connection, fence.session_id, boundary.refused, Ended.REFUSED, None)
    tail = Tail(connection, fence.session_id, boundary.turn_id, epoch, log_seq - added + 1)
    tail.close_batch(boundary.step, boundary.results)
    for notice in boundary.notices:
        tail.user(boundary.step, notice)
    for absorbed in boundary.absorbed:
        tail.user(boundary.step, absorbed.content, absorbed.position)
    _open(connection, fence, boundary.turn_id, boundary.next_call)
    return int(log_seq)


def _urgent(fence: Fence, seen: Seen, turn_id: str) -> dict[str, Any]:
    return {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "turn_id": turn_id,
        "urgent": seen.urgent,
    }


def _open(connection: sqlite3.Connection, fence: Fence, turn_id: str, key: ModelCallKey) -> None:
    if not model_calls.open_call(connection, fence.session_id, turn_id, key):
        raise StoreRefused(f"attempt {key.attempt} at the model for step {key.step} ({key.purpose}) was opened before")
