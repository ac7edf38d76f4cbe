"""How turns and messages end. Whatever ends a turn answers its open batch, settles its model calls and voids the
approvals that were not used.

Committing demands that nothing urgent is unseen, so that an interrupt that came first is a fact; the other endings
demand only the lease.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from insika.messages import NO_USAGE, assistant
from insika.storage.json_text import to_json
from insika.storage.operations import CommitTurn, EndTurn, FailQueued, Fence, FinishAtOnce, Seen, SettleMail
from insika.storage.rows import ApprovalDecision, Begun, Committed, Ended
from insika.storage.sqlite import mailbox, model_calls
from insika.storage.sqlite.conversation import Tail, last_batch
from insika.storage.sqlite.group import Undo
from insika.storage.sqlite.outgoing import deliver, raise_alerts
from insika.storage.sqlite.queries import sql
from insika.storage.sqlite.times import to_micros


def commit(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn: CommitTurn) -> Committed | None:
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "turn_id": turn.turn_id,
        "mail": seen.mail,
        "urgent": seen.urgent,
        "answers": 1 if turn.answer else 0,
        "deliveries": len(turn.deliveries),
        "closes": 1 if turn.results else 0,
    }
    row = connection.execute(sql("endings/fence_commit"), values).fetchone()
    if row is None:
        return None
    log_seq, epoch, lane_seq, idle, missing = row
    tail = Tail(connection, fence.session_id, turn.turn_id, epoch, log_seq - values["answers"] - missing + 1)
    if missing:
        tail.close_batch(last_batch(connection, turn.turn_id), turn.results, unused=ApprovalDecision.VOID)
        connection.execute(sql("endings/void_approvals"), {"turn_id": turn.turn_id})
    if turn.answer:
        tail.assistant(turn.step, assistant(turn.answer))
    if turn.model_call is not None:
        model_calls.settle(connection, turn.turn_id, turn.model_call)
    model_calls.estimate_open(connection, turn.turn_id, NO_USAGE)
    ended = {
        "turn_id": turn.turn_id,
        "outcome": turn.outcome,
        "synthesized": int(turn.synthesized),
        "route": turn.route,
        "model": None if turn.model_call is None else turn.model_call.key.model,
        "timing": to_json(turn.timing),
    }
    connection.execute(sql("endings/complete_turn"), ended)
    deliver(connection, fence.session_id, turn.turn_id, turn.deliveries, lane_seq)
    if turn.release_due is None or not idle:
        return Committed(released=False)
    release = {"session_id": fence.session_id, "due_at": to_micros(turn.release_due)}
    return Committed(released=connection.execute(sql("endings/release_with_commit"), release).rowcount == 1)


def end(connection: sqlite3.Connection, fence: Fence, turn: EndTurn) -> bool:
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "turn_id": turn.turn_id,
        "deliveries": len(turn.deliveries),
        "control": len(turn.control),
    }
    row = connection.execute(sql("endings/fence_end"), values).fetchone()
    if row is None:
        return False
    log_seq, epoch, lane_seq, missing = row
    if missing:
        tail = Tail(connection, fence.session_id, turn.turn_id, epoch, log_seq - missing + 1)
        tail.close_batch(last_batch(connection, turn.turn_id), turn.results, unused=ApprovalDecision.VOID)
    connection.execute(sql("endings/void_approvals"), {"turn_id": turn.turn_id})
    model_calls.estimate_open(connection, turn.turn_id, turn.estimate)
    mailbox.end(connection, fence.session_id, turn.control, Ended.CONTROL, False)
    ended = {
        "turn_id": turn.turn_id,
        "state": turn.state,
        "outcome": turn.outcome,
        "error": to_json(turn.error),
        "timing": to_json(turn.timing),
    }
    connection.execute(sql("endings/end_turn"), ended)
    deliver(connection, fence.session_id, turn.turn_id, turn.deliveries, lane_seq)
    return True


def fail_queued(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn: FailQueued) -> Begun | None:
    row = _begin_and_end(connection, fence, seen, turn, begins=0)
    if row is None:
        return None
    log_seq, epoch, _ = row
    first = log_seq - len(turn.positions) + 1
    failed = {**_address(fence, turn), "error": to_json(turn.error), "started_seq": first}
    if connection.execute(sql("endings/fail_turn"), failed).rowcount == 0:
        raise Undo(None)
    _take(connection, fence, turn, Tail(connection, fence.session_id, turn.turn_id, epoch, first))
    return Begun(int(log_seq), _alert(connection, turn))


def finish_at_once(connection: sqlite3.Connection, fence: Fence, seen: Seen, turn: FinishAtOnce) -> Begun | None:
    answers = 1 if turn.answer else 0
    ends = {"refused": len(turn.refused), "answers": answers, "deliveries": len(turn.deliveries)}
    row = _begin_and_end(connection, fence, seen, turn, begins=1, **ends)
    if row is None:
        return None
    log_seq, epoch, lane_seq = row
    first = log_seq - len(turn.positions) - answers + 1
    finished = {
        **_address(fence, turn),
        "outcome": turn.outcome,
        "profile_revision": turn.profile_revision,
        "limits": to_json(turn.limits),
        "timing": to_json(turn.timing),
        "started_seq": first,
    }
    if connection.execute(sql("endings/finish_turn"), finished).rowcount == 0:
        raise Undo(None)
    tail = Tail(connection, fence.session_id, turn.turn_id, epoch, first)
    _take(connection, fence, turn, tail)
    if turn.answer:
        tail.assistant(1, assistant(turn.answer))
    mailbox.end(connection, fence.session_id, turn.refused, Ended.REFUSED, None)
    deliver(connection, fence.session_id, turn.turn_id, turn.deliveries, lane_seq)
    return Begun(int(log_seq), _alert(connection, turn))


def _begin_and_end(
    connection: sqlite3.Connection,
    fence: Fence,
    seen: Seen,
    turn: FailQueued | FinishAtOnce,
    *,
    begins: int,
    refused: int = 0,
    answers: int = 0,
    deliveries: int = 0,
) -> tuple[int, int, int] | None:
    """The fence of a turn that begins and ends at once: its log sequence, epoch and last position in a lane."""
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "mail": seen.mail,
        "urgent": seen.urgent,
        "turn_id": turn.turn_id,
        "steerable_key": None,
        "merging": int(turn.merging),
        "taken": len(turn.positions),
        "refused": refused,
        "load_from": None,
        "answers": answers,
        "deliveries": deliveries,
        "runs": 0,
        "begins": begins,
    }
    row: tuple[int, int, int] | None = connection.execute(sql("turns/fence_start"), values).fetchone()
    return row


def _address(fence: Fence, turn: FailQueued | FinishAtOnce) -> dict[str, Any]:
    return {
        "turn_id": turn.turn_id,
        "session_id": fence.session_id,
        "position": turn.positions[0],
        "agent": turn.agent,
        "channel": turn.channel,
        "recipient": turn.recipient,
        "origin": turn.origin,
    }


def _take(connection: sqlite3.Connection, fence: Fence, turn: FailQueued | FinishAtOnce, tail: Tail) -> None:
    texts = mailbox.take(connection, fence.session_id, turn.positions, turn.turn_id, None)
    for position, text in zip(turn.positions, texts, strict=True):
        tail.user(0, text, position)


def _alert(connection: sqlite3.Connection, turn: FailQueued | FinishAtOnce) -> frozenset[str]:
    model_calls.estimate_open(connection, turn.turn_id, turn.estimate)
    return raise_alerts(connection, turn.alerts, turn.turn_id)


def settle_mail(connection: sqlite3.Connection, fence: Fence, seen: Seen, mail: SettleMail) -> bool:
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "mail": seen.mail,
        "urgent": seen.urgent,
        "ended": len(mail.positions),
        "control": len(mail.control),
        "merging": mail.merging,
        "turn_id": mail.turn_id,
        "steerable_key": mail.steerable_key,
        "deliveries": len(mail.deliveries),
    }
    row = connection.execute(sql("endings/fence_settle"), values).fetchone()
    if row is None:
        return False
    mailbox.end(connection, fence.session_id, mail.positions, Ended(mail.how), False)
    mailbox.end(connection, fence.session_id, mail.control, Ended.CONTROL, False)
    if mail.turn_id is not None:
        model_calls.estimate_open(connection, mail.turn_id, mail.estimate)
        ended = {"turn_id": mail.turn_id, "session_id": fence.session_id, "state": mail.turn_state}
        if connection.execute(sql("endings/end_queued_turn"), ended).rowcount == 0:
            raise Undo(False)
        deliver(connection, fence.session_id, mail.turn_id, mail.deliveries, row[0])
    return True
