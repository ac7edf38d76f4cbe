"""The store on SQLite: every operation of the port, each handed whole to the writer's next group or to a reader.

Nothing is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from insika.messages import Usage
from insika.storage import operations as ops
from insika.storage import rows
from insika.storage.sqlite import (
    asking,
    configuration,
    control,
    endings,
    intake,
    outgoing,
    ownership,
    reads,
    spend,
    turns,
)
from insika.storage.sqlite.connection import Now
from insika.storage.sqlite.database import Database
from insika.storage.sqlite.renewal import SqliteLeaseRenewal


class SqliteStore:
    """Satisfies `insika.storage.port.Store`. `database` is there for others that keep their rows in the same file."""

    def __init__(self, database: Database, now: Now) -> None:
        self.database = database
        self._now = now

    @classmethod
    def open(cls, path: str | Path, now: Now) -> SqliteStore:
        """Open a migrated file. Raises NotMigrated, SchemaMismatch or StoreUnavailable."""
        return cls(Database.open(path, now), now)

    def renewal(self) -> SqliteLeaseRenewal:
        return SqliteLeaseRenewal(self.database.path, self._now)

    async def close(self) -> None:
        await asyncio.to_thread(self.database.close)

    # --- intake

    async def accept(self, job: ops.AcceptJob) -> rows.Accepted:
        return await self.database.write(lambda connection: intake.accept(connection, job))

    async def accept_all(self, jobs: Sequence[ops.AcceptJob]) -> Sequence[rows.Accepted]:
        return await self.database.write(lambda connection: tuple(intake.accept(connection, job) for job in jobs))

    async def cancel(self, turn_id: str, *, request_id: str) -> rows.Accepted | None:
        return await self.database.write(lambda connection: control.cancel(connection, turn_id, request_id))

    async def withdraw(self, session: str, job_id: str, *, request_id: str, tenant: str = "") -> rows.Withdrawal | None:
        return await self.database.write(
            lambda connection: control.withdraw(connection, session, job_id, request_id=request_id, tenant=tenant)
        )

    async def decide(
        self, approval_id: str, decision: rows.ApprovalDecision, *, by: str, reason: str = ""
    ) -> rows.Decided | None:
        return await self.database.write(
            lambda connection: control.decide(connection, approval_id, decision, by=by, reason=reason)
        )

    async def set_paused(self, name: str, paused: bool, *, tenant: str = "") -> bool:
        return await self.database.write(lambda connection: control.set_paused(connection, name, paused, tenant))

    async def reject(self, raw: bytes, error: Mapping[str, Any], source: str) -> int:
        return await self.database.write(lambda connection: intake.reject(connection, raw, error, source))

    async def rejected_jobs(self, limit: int = 100) -> Sequence[rows.RejectedJob]:
        return await self.database.read(lambda connection: intake.rejected_jobs(connection, limit))

    async def rejected_job(self, number: int) -> rows.RejectedJob | None:
        return await self.database.read(lambda connection: intake.rejected_job(connection, number))

    async def mark_requeued(self, number: int) -> bool:
        return await self.database.write(lambda connection: intake.mark_requeued(connection, number))

    # --- owning

    async def claim(
        self,
        session_id: int,
        lease_s: float,
        *,
        take_expired: bool = True,
        take_suspects: bool = True,
        lease_id: str = "",
    ) -> rows.Claim | None:
        return await self.database.write(
            lambda connection: ownership.claim(
                connection,
                session_id,
                lease_s,
                take_expired=take_expired,
                take_suspects=take_suspects,
                lease_id=lease_id,
            )
        )

    async def load(self, fence: ops.Fence, *, log_after: int = 0) -> rows.Loaded | None:
        # With the writes, not beside them: an owner loads between two writes, and then shares their group.
        return await self.database.write(lambda connection: ownership.load(connection, fence, log_after))

    async def confirm(self, fence: ops.Fence) -> bool:
        return await self.database.write(lambda connection: ownership.confirm(connection, fence))

    async def release(self, fence: ops.Fence, seen: ops.Seen, release: ops.Release) -> bool:
        return await self.database.write(lambda connection: ownership.release(connection, fence, seen, release))

    async def release_for_drain(self, fence: ops.Fence, *, unknown_result: str, estimate: Usage) -> bool:
        return await self.database.write(
            lambda connection: ownership.release_for_drain(connection, fence, unknown_result, estimate)
        )

    async def due_sessions(self, limit: int = 500) -> Sequence[int]:
        if not await self.database.read(lambda connection: ownership.find_due(connection, 1)):
            return ()  # the usual answer costs no write
        return await self.database.write(lambda connection: ownership.nudge_due(connection, limit))

    async def wake_due(self) -> int:
        return await self.database.write(ownership.wake_due)

    async def next_due_at(self) -> datetime:
        return await self.database.read(ownership.next_due_at)

    # --- the turn

    async def start(self, fence: ops.Fence, seen: ops.Seen, turn: ops.StartTurn) -> rows.Begun | None:
        return await self.database.write(lambda connection: turns.start(connection, fence, seen, turn))

    async def route_turn(self, fence: ops.Fence, seen: ops.Seen, turn: ops.RouteTurn) -> bool:
        return await self.database.write(lambda connection: asking.route_turn(connection, fence, seen, turn))

    async def redirect_turn(self, fence: ops.Fence, seen: ops.Seen, turn: ops.RedirectTurn) -> bool:
        return await self.database.write(lambda connection: asking.redirect_turn(connection, fence, seen, turn))

    async def open_model_call(
        self,
        fence: ops.Fence,
        seen: ops.Seen,
        turn_id: str,
        step: int,
        *,
        purpose: str,
        model: str,
        estimate: Usage,
    ) -> ops.ModelCallKey | None:
        return await self.database.write(
            lambda connection: asking.open_model_call(
                connection, fence, seen, turn_id, step, purpose=purpose, model=model, estimate=estimate
            )
        )

    async def settle_model_call(self, turn_id: str, call: ops.SettledModelCall) -> bool:
        return await self.database.write(lambda connection: asking.settle_model_call(connection, turn_id, call))

    async def append(self, fence: ops.Fence, step: ops.AppendStep) -> int | None:
        return await self.database.write(lambda connection: turns.append(connection, fence, step))

    async def retry_model(
        self, fence: ops.Fence, seen: ops.Seen, turn_id: str, call: ops.ModelCallKey, *, estimate: Usage
    ) -> bool:
        return await self.database.write(
            lambda connection: turns.retry_model(connection, fence, seen, turn_id, call, estimate=estimate)
        )

    async def start_call(
        self,
        fence: ops.Fence,
        seen: ops.Seen,
        turn_id: str,
        step: int,
        index: int,
        *,
        arguments_hash: str | None = None,
    ) -> rows.CallStart:
        return await self.database.write(
            lambda connection: turns.start_call(
                connection, fence, seen, turn_id, step=step, index=index, arguments_hash=arguments_hash
            )
        )

    async def ask_approvals(
        self, fence: ops.Fence, seen: ops.Seen, turn_id: str, asks: Sequence[ops.AskApproval]
    ) -> bool:
        return await self.database.write(lambda connection: turns.ask_approvals(connection, fence, seen, turn_id, asks))

    async def suspend(self, fence: ops.Fence, seen: ops.Seen, turn_id: str) -> bool:
        return await self.database.write(lambda connection: turns.suspend(connection, fence, seen, turn_id))

    async def resume_turn(self, fence: ops.Fence, seen: ops.Seen, turn_id: str) -> bool:
        return await self.database.write(lambda connection: turns.resume_turn(connection, fence, seen, turn_id))

    async def finish_call(self, fence: ops.Fence, turn_id: str, step: int, result: ops.CallResult) -> rows.CallStart:
        return await self.database.write(lambda connection: turns.finish_call(connection, fence, turn_id, step, result))

    async def cross_boundary(self, fence: ops.Fence, seen: ops.Seen, boundary: ops.CrossBoundary) -> int | None:
        return await self.database.write(lambda connection: turns.cross_boundary(connection, fence, seen, boundary))

    async def commit(self, fence: ops.Fence, seen: ops.Seen, turn: ops.CommitTurn) -> rows.Committed | None:
        return await self.database.write(lambda connection: endings.commit(connection, fence, seen, turn))

    async def end(self, fence: ops.Fence, turn: ops.EndTurn) -> bool:
        return await self.database.write(lambda connection: endings.end(connection, fence, turn))

    async def fail_queued(self, fence: ops.Fence, seen: ops.Seen, turn: ops.FailQueued) -> rows.Begun | None:
        return await self.database.write(lambda connection: endings.fail_queued(connection, fence, seen, turn))

    async def finish_at_once(self, fence: ops.Fence, seen: ops.Seen, turn: ops.FinishAtOnce) -> rows.Begun | None:
        return await self.database.write(lambda connection: endings.finish_at_once(connection, fence, seen, turn))

    async def settle_mail(self, fence: ops.Fence, seen: ops.Seen, mail: ops.SettleMail) -> bool:
        return await self.database.write(lambda connection: endings.settle_mail(connection, fence, seen, mail))

    # --- what was spent, and what is told of

    async def spend(self, tenant: str, agent: str, day_start: datetime, month_start: datetime) -> rows.Spend:
        return await self.database.read(
            lambda connection: spend.spend(connection, tenant, agent, day_start, month_start)
        )

    async def roll_up_spend(self, until: datetime, *, limit: int = 1_000) -> int:
        return await self.database.write(lambda connection: spend.roll_up(connection, until, limit))

    async def raise_alerts(self, alerts: Sequence[ops.NewAlert]) -> frozenset[str]:
        return await self.database.write(lambda connection: outgoing.raise_alerts(connection, alerts, None))

    # --- configuration

    async def apply_profile(self, name: str, revision: str, data: Mapping[str, Any], source: str) -> bool:
        return await self.database.write(
            lambda connection: configuration.apply_profile(connection, name, revision, data, source)
        )

    async def current_profiles(self) -> Sequence[rows.Revision]:
        return await self.database.read(configuration.current_profiles)

    async def profile(self, revision: str) -> rows.Revision | None:
        return await self.database.read(lambda connection: configuration.profile(connection, revision))

    async def apply_settings(self, revision: str, data: Mapping[str, Any], source: str) -> bool:
        return await self.database.write(
            lambda connection: configuration.apply_settings(connection, revision, data, source)
        )

    async def current_settings(self) -> rows.Revision | None:
        return await self.database.read(configuration.current_settings)

    # --- reading

    async def sessions(self, limit: int = 100, *, tenant: str | None = None) -> Sequence[rows.SessionSummary]:
        return await self.database.read(lambda connection: reads.sessions(connection, limit, tenant))

    async def session(self, name: str, *, tenant: str = "") -> rows.SessionRow | None:
        return await self.database.read(lambda connection: reads.session(connection, name, tenant))

    async def session_by_id(self, session_id: int) -> rows.SessionRow | None:
        return await self.database.read(lambda connection: reads.session_by_id(connection, session_id))

    async def messages(self, session_id: int, *, after: int = 0) -> Sequence[rows.LogEntry]:
        return await self.database.read(lambda connection: reads.messages(connection, session_id, after))

    async def mail(self, session_id: int) -> Sequence[rows.Mail]:
        return await self.database.read(lambda connection: reads.mail(connection, session_id))

    async def turn(self, turn_id: str) -> rows.TurnRow | None:
        return await self.database.read(lambda connection: reads.turn(connection, turn_id))

    async def turns(self, session_id: int) -> Sequence[rows.TurnRow]:
        return await self.database.read(lambda connection: reads.turns(connection, session_id))

    async def latest_turns(self, limit: int = 100, *, session_id: int | None = None) -> Sequence[rows.TurnRow]:
        return await self.database.read(lambda connection: reads.latest_turns(connection, limit, session_id))

    async def turn_ids(self, prefix: str, limit: int) -> Sequence[str]:
        return await self.database.read(lambda connection: reads.turn_ids(connection, prefix, limit))

    async def calls(self, turn_id: str) -> Sequence[rows.CallRow]:
        return await self.database.read(lambda connection: reads.calls(connection, turn_id))

    async def model_calls(self, turn_id: str) -> Sequence[rows.ModelCallRow]:
        return await self.database.read(lambda connection: reads.model_calls(connection, turn_id))

    async def approvals(self, limit: int = 100, *, open_only: bool = False) -> Sequence[rows.ApprovalSummary]:
        return await self.database.read(lambda connection: reads.approvals(connection, limit, open_only))

    async def approval(self, approval_id: str) -> rows.ApprovalSummary | None:
        return await self.database.read(lambda connection: reads.approval(connection, approval_id))

    async def approval_ids(self, prefix: str, limit: int) -> Sequence[str]:
        return await self.database.read(lambda connection: reads.approval_ids(connection, prefix, limit))
