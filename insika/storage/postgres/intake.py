"""What producers and operators do: the verdict of a job, what is asked of a session, the jobs that came to nothing.

A verdict is taken in the statement that locks the session row, from that row's columns alone. Only what got no place
is asked about again, in a second statement that sees what the first one may have waited for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from insika.storage.json_text import to_json
from insika.storage.operations import AcceptJob
from insika.storage.port import StoreUnavailable
from insika.storage.postgres import mapping
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.queries import sql
from insika.storage.rows import (
    TERMINAL,
    Accepted,
    ApprovalDecision,
    Decided,
    Ended,
    RejectedJob,
    TurnState,
    Verdict,
    Withdrawal,
)

_TRIES = 10
"""A first contact that met another one is over by the second try; an id that grew a day old meanwhile, too."""

_A_DAY_OLD = "the same request was made a day ago, to the second; try again"


async def accept(pool: Pool, job: AcceptJob) -> Accepted:
    values = _asked(job)
    for _ in range(_TRIES):
        row = await pool.row(sql("intake/accept"), values)
        if row is None:
            continue
        session_id, verdict, turn_id, position, waiting = row
        if position is not None:
            return Accepted(Verdict(verdict), session_id, turn_id, position)
        if (refused := await _refuse(pool, job, session_id, waiting, full=verdict is not None)) is not None:
            return refused
    raise StoreUnavailable("others were first each time; try again")


async def accept_all(pool: Pool, jobs: Sequence[AcceptJob]) -> tuple[Accepted, ...]:
    """Those of one session one after the other; the first of each session in one statement, then the second of each."""
    answers: dict[int, Accepted] = {}
    for places in _rounds(jobs):
        if len(places) > 1:
            answers |= await _placed(pool, jobs, places)
        left = [place for place in places if place not in answers]
        alone = await asyncio.gather(*(accept(pool, jobs[place]) for place in left))
        answers |= zip(left, alone, strict=True)
    return tuple(answers[place] for place in range(len(jobs)))


async def cancel(pool: Pool, turn_id: str, request_id: str) -> Accepted | None:
    values = {"turn_id": turn_id, "request_id": request_id}
    row = await pool.row(sql("intake/cancel"), values)
    if row is None:
        return None
    session_id, state, position = row
    if position is not None:
        return Accepted(Verdict.CONTROL, session_id, turn_id, position, TurnState(state))
    known = await _known_request(pool, session_id, request_id, aim=turn_id)
    if known is not None:
        return Accepted(Verdict.DUPLICATE, session_id, turn_id, known, TurnState(state))
    if TurnState(state) in TERMINAL:
        return None
    raise StoreUnavailable(_A_DAY_OLD)


async def withdraw(pool: Pool, session: str, job_id: str, request_id: str, tenant: str) -> Withdrawal | None:
    values = {"tenant": tenant, "session": session, "job_id": job_id, "request_id": request_id}
    row = await pool.row(sql("intake/withdraw"), values)
    if row is None:
        return None
    session_id, target, position, state, consumed_by = row
    ended = None if state is None else Ended(state)
    if position is None:
        position = await _known_request(pool, session_id, request_id, aim=str(target))
        if position is None and ended is None:
            raise StoreUnavailable(_A_DAY_OLD)
    return Withdrawal(session_id, target, position, ended, consumed_by)


async def decide(pool: Pool, approval_id: str, decision: ApprovalDecision, by: str, reason: str) -> Decided | None:
    """Raises ValueError for what no person can decide: that an approval expires, or is void."""
    if decision not in (ApprovalDecision.APPROVED, ApprovalDecision.REJECTED):
        raise ValueError(f"a person approves or rejects a call; {decision.value} is neither")
    values = {"approval_id": approval_id, "decision": decision.value, "by": by, "reason": reason}
    row = await pool.row(sql("intake/decide"), values)
    return None if row is None else Decided(mapping.approval_row(row), won=row[12])


async def set_paused(pool: Pool, name: str, paused: bool, tenant: str) -> bool:
    values = {"name": name, "tenant": tenant, "paused": paused}
    return await pool.row(sql("intake/set_paused"), values) is not None


async def reject(pool: Pool, raw: bytes, error: Mapping[str, Any], source: str) -> int:
    (row,) = await pool.rows(sql("intake/reject"), {"source": source, "raw": raw, "error": to_json(error)})
    return int(row[0])


async def rejected_jobs(pool: Pool, limit: int) -> tuple[RejectedJob, ...]:
    return tuple(map(mapping.rejected_job, await pool.rows(sql("reads/rejected_jobs"), {"limit": limit})))


async def rejected_job(pool: Pool, number: int) -> RejectedJob | None:
    row = await pool.row(sql("reads/rejected_job"), {"id": number})
    return None if row is None else mapping.rejected_job(row)


async def mark_requeued(pool: Pool, number: int) -> bool:
    return await pool.row(sql("intake/mark_requeued"), {"id": number}) is not None


async def _known_request(pool: Pool, session_id: int, request_id: str, *, aim: str) -> int | None:
    row = await pool.row(sql("intake/known_request"), {"session_id": session_id, "request_id": request_id, "aim": aim})
    return None if row is None else int(row[0])


def _rounds(jobs: Sequence[AcceptJob]) -> list[list[int]]:
    """The places of the jobs, in as many lists as one session has jobs: none has a session twice."""
    rounds: list[list[int]] = []
    before = Counter[tuple[str, str]]()
    for place, job in enumerate(jobs):
        session = (job.tenant, job.session)
        if before[session] == len(rounds):
            rounds.append([])
        rounds[before[session]].append(place)
        before[session] += 1
    return rounds


async def _placed(pool: Pool, jobs: Sequence[AcceptJob], places: Sequence[int]) -> dict[int, Accepted]:
    """Of those that got their place at once."""
    asked = [_listed(place, jobs[place]) for place in places]
    rows = await pool.rows(sql("intake/accept_all"), {"jobs": to_json(asked)})
    return {
        place: Accepted(Verdict(verdict), session_id, turn_id, position)
        for place, session_id, verdict, turn_id, position in rows
    }


def _listed(place: int, job: AcceptJob) -> dict[str, Any]:
    """As `_asked`, for a list in JSON, where two names mean something else."""
    values = _values(job)
    values["asked"], values["new_turn"] = values.pop("mode"), values.pop("turn_id")
    return {**values, "place": place, "sent_at": None if job.sent_at is None else job.sent_at.isoformat()}


def _asked(job: AcceptJob) -> dict[str, Any]:
    values = _values(job)
    return {**values, "first_vars": to_json(values["first_vars"]), "set_vars": to_json(values["set_vars"])}


def _values(job: AcceptJob) -> dict[str, Any]:
    """What to clear is told apart from what to set: None inside a value stays, None as a value clears."""
    updates = {name: value for name, value in job.var_updates.items() if value is not None}
    first = {name: value for name, value in {**job.session_vars, **job.var_updates}.items() if value is not None}
    return {
        "tenant": job.tenant,
        "session": job.session,
        "job_id": job.job_id,
        "digest": job.digest,
        "turn_id": job.turn_id,
        "text": job.text,
        "agent": job.agent,
        "key": job.key if job.takes_steers else None,
        "mode": job.mode or None,
        "default_mode": job.default_mode,
        "channel": job.channel,
        "recipient": job.recipient,
        "origin": job.origin,
        "customer": job.customer,
        "sent_at": job.sent_at,
        "debounce_ms": job.debounce_ms,
        "debounce_max_ms": job.debounce_max_ms,
        "mailbox_max": job.mailbox_max,
        "first_vars": first,
        "new_vars": bool(job.var_updates),
        "set_vars": updates,
        "cleared_vars": [name for name, value in job.var_updates.items() if value is None],
    }


async def _refuse(pool: Pool, job: AcceptJob, session_id: int, waiting: int, *, full: bool) -> Accepted | None:
    """Why a job got no place. None: by now it could get one."""
    other = "this id was given to another text within the last 24 hours: a new message needs an id of its own"
    too_many = f"the mailbox is full: {waiting} messages wait, at most {job.mailbox_max} may. Try again later"
    values = {
        "session_id": session_id,
        "job_id": job.job_id,
        "digest": job.digest,
        "full": full,
        "raw": job.raw,
        "error_other": to_json({"type": "invalid_job", "message": other, "field": "id"}),
        "error_full": to_json({"type": "mailbox_full", "message": too_many}),
    }
    (row,) = await pool.rows(sql("intake/refuse"), values)
    same, position, turn_id, state, number = row
    if same:
        first_state = None if state is None else TurnState(state)
        return Accepted(Verdict.DUPLICATE, session_id, turn_id, position, first_state)
    if number is None:
        return None
    reason, field = (too_many, None) if same is None else (other, "id")
    return Accepted(Verdict.REJECTED, session_id, reason=reason, field=field, rejected_job=number)
