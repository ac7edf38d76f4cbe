"""Whom a turn asks, and what it cost: the route its classifier finds, the agent it is handed to, and calls of models
that screen what is said. Each operation updates the session row by id and lease first, but for the booking of a cost.
"""

from __future__ import annotations

import sqlite3

from insika.messages import Usage
from insika.storage.json_text import to_json
from insika.storage.operations import Fence, ModelCallKey, RedirectTurn, RouteTurn, Seen, SettledModelCall, answering
from insika.storage.sqlite import model_calls
from insika.storage.sqlite.group import Undo
from insika.storage.sqlite.queries import sql


def route_turn(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn: RouteTurn) -> bool:
    if not _may_ask(connection, fence, seen, turn.turn_id):
        return False
    routed = {"turn_id": turn.turn_id, "route": turn.route, "model": answering(turn.next_call)}
    if connection.execute(sql("turns/route_turn"), routed).rowcount == 0:
        raise Undo(False)
    model_calls.settle(connection, turn.turn_id, turn.model_call)
    if turn.next_call is not None and not model_calls.open_call(
        connection, fence.session_id, turn.turn_id, turn.next_call
    ):
        raise Undo(False)
    return True


def redirect_turn(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn: RedirectTurn) -> bool:
    if not _may_ask(connection, fence, seen, turn.turn_id):
        return False
    values = {
        "turn_id": turn.turn_id,
        "agent": turn.agent,
        "profile_revision": turn.profile_revision,
        "limits": to_json(turn.limits),
        "depth": turn.depth,
        "model": answering(turn.model_call),
    }
    if connection.execute(sql("turns/redirect_turn"), values).rowcount == 0:
        raise Undo(False)
    if not model_calls.open_call(connection, fence.session_id, turn.turn_id, turn.model_call):
        raise Undo(False)
    return True


def open_model_call(
    connection: sqlite3.Connection,
    fence: Fence,
    seen: Seen,
    turn_id: str,
    step: int,
    *,
    purpose: str,
    model: str,
    estimate: Usage,
) -> ModelCallKey | None:
    fenced = {"session_id": fence.session_id, "lease_id": fence.lease_id, "urgent": seen.urgent}
    if connection.execute(sql("turns/fence_screen"), fenced).rowcount == 0:
        return None
    aim = {"session_id": fence.session_id, "turn_id": turn_id, "step": step, "purpose": purpose}
    row = connection.execute(sql("turns/next_attempt"), aim).fetchone()
    if row is None:
        return None
    model_calls.estimate_attempts(connection, turn_id, step, purpose, estimate)
    key = ModelCallKey(step, row[0], purpose, model)
    model_calls.open_call(connection, fence.session_id, turn_id, key)
    return key


def settle_model_call(connection: sqlite3.Connection, turn_id: str, call: SettledModelCall) -> bool:
    return model_calls.settle_late(connection, turn_id, call)


def _may_ask(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn_id: str) -> bool:
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "turn_id": turn_id,
        "urgent": seen.urgent,
    }
    return connection.execute(sql("turns/fence_request"), values).rowcount == 1
