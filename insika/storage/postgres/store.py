"""The store on PostgreSQL: every operation of the port, each handed to the module that knows its statement.

Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from insika.messages import Usage
from insika.storage import operations as ops
from insika.storage import rows
from insika.storage.postgres import (
    asking,
    configuration,
    endings,
    intake,
    outgoing,
    ownership,
    reads,
    spend,
    turns,
)
from insika.storage.postgres.connection import Bounds
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.renewal import PostgresLeaseRenewal
from insika.storage.postgres.schema import require_current_schema


class PostgresStore:
    """Satisfies `insika.storage.port.Store`. `database` is there for others that keep their rows in the same place.

    Belongs to the loop in which it is first used."""

    def __init__(self, database: Pool, url: str, lease_s: float) -> None:
        self.database = database
        self._url = url
        self._lease_s = lease_s

    @classmethod
    def open(cls, url: str, *, lease_s: float, application_name: str = "insika") -> PostgresStore:
        """Open a migrated database. `lease_s` is the lease that sessions are claimed for here, in seconds: it bounds
        how long anything may wait for the server.

        Raises NotMigrated, SchemaMismatch, InvalidConfiguration or StoreUnavailable."""
        require_current_schema(url)
        return cls(Pool(url, Bounds.within(lease_s), application_name=application_name), url, lease_s)

    def renewal(self) -> PostgresLeaseRenewal:
        return PostgresLeaseRenewal(self._url, self._lease_s)

    async def close(self) -> None:
        await self.database.close()

    # --- intake

    async def accept(self, job: ops.AcceptJob) -> rows.Accepted:
        return await intake.accept(self.database, job)

    async def accept_all(self, jobs: Sequence[ops.AcceptJob]) -> Sequence[rows.Accepted]:
        return await intake.accept_all(self.database, jobs)

    async def cancel(self, turn_id: str, *, request_id: str) -> rows.Accepted | None:
        return await intake.cancel(self.database, turn_id, request_id)

    async def withdraw(self, session: str, job_id: str, *, request_id: str, tenant: str = "") -> rows.Withdrawal | None:
        return await intake.withdraw(self.database, session, job_id, request_id, tenant)

    async def decide(
        self, approval_id: str, decision: rows.ApprovalDecision, *, by: str, reason: str = ""
    ) -> rows.Decided | None:
        return await intake.decide(self.database, approval_id, decision, by, reason)

    async def set_paused(self, name: str, paused: bool, *, tenant: str = "") -> bool:
        return await intake.set_paused(self.database, name, paused, tenant)

    async def reject(self, raw: bytes, error: Mapping[str, Any], source: str) -> int:
        return await intake.reject(self.database, raw, error, source)

    async def rejected_jobs(self, limit: int = 100) -> Sequence[rows.RejectedJob]:
        return await intake.rejected_jobs(self.database, limit)

    async def rejected_job(self, number: int) -> rows.RejectedJob | None:
        return await intake.rejected_job(self.database, number)

    async def mark_requeued(self, number: int) -> bool:
        return await intake.mark_requeued(self.database, number)

    # --- ownership

    async def claim(
        self,
        session_id: int,
        lease_s: float,
        *,
        take_expired: bool = True,
        take_suspects: bool = True,
        lease_id: str = "",
    ) -> rows.Claim | None:
        return await ownership.claim(
            self.database,
            session_id,
            lease_s,
            take_expired=take_expired,
            take_suspects=take_suspects,
            lease_id=lease_id,
        )

    async def load(self, fence: ops.Fence, *, log_after: int = 0) -> rows.Loaded | None:
        return await ownership.load(self.database, fence, log_after)

    async def confirm(self, fence: ops.Fence) -> bool:
        return await ownership.confirm(self.database, fence)

    async def release(self, fence: ops.Fence, seen: ops.Seen, release: ops.Release) -> bool:
        return await ownership.release(self.database, fence, seen, release)

    async def release_for_drain(self, fence: ops.Fence, *, unknown_result: str, estimate: Usage) -> bool:
        return await endings.release_for_drain(self.database, fence, unknown_result=unknown_result, estimate=estimate)

    async def due_sessions(self, limit: int = 500) -> Sequence[int]:
        return await ownership.nudge_due(self.database, limit)

    async def wake_due(self) -> int:
        return await ownership.wake_due(self.database)

    async def next_due_at(self) -> datetime:
        return await ownership.next_due_at(self.database)

    # --- the turn

    async def start(self, fence: ops.Fence, seen: ops.Seen, turn: ops.StartTurn) -> rows.Begun | None:
        return await turns.start(self.database, fence, seen, turn)

    async def route_turn(self, fence: ops.Fence, seen: ops.Seen, turn: ops.RouteTurn) -> bool:
        return await asking.route_turn(self.database, fence, seen, turn)

    async def redirect_turn(self, fence: ops.Fence, seen: ops.Seen, turn: ops.RedirectTurn) -> bool:
        return await asking.redirect_turn(self.database, fence, seen, turn)

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
        return await asking.open_model_call(
            self.database, fence, seen, turn_id, step, purpose=purpose, model=model, estimate=estimate
        )

    async def settle_model_call(self, turn_id: str, call: ops.SettledModelCall) -> bool:
        return await asking.settle_model_call(self.database, turn_id, call)

    async def append(self, fence: ops.Fence, step: ops.AppendStep) -> int | None:
        return await turns.append(self.database, fence, step)

    async def retry_model(
        self, fence: ops.Fence, seen: ops.Seen, turn_id: str, call: ops.ModelCallKey, *, estimate: Usage
    ) -> bool:
        return await turns.retry_model(self.database, fence, seen, turn_id, call, estimate=estimate)

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
        return await turns.start_call(
            self.database, fence, seen, turn_id, step=step, index=index, arguments_hash=arguments_hash
        )

    async def ask_approvals(
        self, fence: ops.Fence, seen: ops.Seen, turn_id: str, asks: Sequence[ops.AskApproval]
    ) -> bool:
        return await turns.ask_approvals(self.database, fence, seen, turn_id, asks)

    async def suspend(self, fence: ops.Fence, seen: ops.Seen, turn_id: str) -> bool:
        return await turns.suspend(self.database, fence, seen, turn_id)

    async def resume_turn(self, fence: ops.Fence, seen: ops.Seen, turn_id: str) -> bool:
        return await turns.resume_turn(self.database, fence, seen, turn_id)

    async def finish_call(self, fence: ops.Fence, turn_id: str, step: int, result: ops.CallResult) -> rows.CallStart:
        return await turns.finish_call(self.database, fence, turn_id, step, result)

    async def cross_boundary(self, fence: ops.Fence, seen: ops.Seen, boundary: ops.CrossBoundary) -> int | None:
        return await turns.cross_boundary(self.database, fence, seen, boundary)

    async def commit(self, fence: ops.Fence, seen: ops.Seen, turn: ops.CommitTurn) -> rows.Committed | None:
        return await endings.commit(self.database, fence, seen, turn)

    async def end(self, fence: ops.Fence, turn: ops.EndTurn) -> bool:
        return await endings.end(self.database, fence, turn)

    async def fail_queued(self, fence: ops.Fence, seen: ops.Seen, turn: ops.FailQueued) -> rows.Begun | None:
        return await endings.fail_queued(self.database, fence, seen, turn)

    async def finish_at_once(self, fence: ops.Fence, seen: ops.Seen, turn: ops.FinishAtOnce) -> rows.Begun | None:
        return await endings.finish_at_once(self.database, fence, seen, turn)

    async def settle_mail(self, fence: ops.Fence, seen: ops.Seen, mail: ops.SettleMail) -> bool:
        return await endings.settle_mail(self.database, fence, seen, mail)

    # --- what was spent, and what is told of

    async def spend(self, tenant: str, agent: str, day_start: datetime, month_start: datetime) -> rows.Spend:
        return await spend.spend(self.database, tenant, agent, day_start, month_start)

    async def roll_up_spend(self, until: datetime, *, limit: int = 1_000) -> int:
        return await spend.roll_up(self.database, until, limit)

    async def raise_alerts(self, alerts: Sequence[ops.NewAlert]) -> frozenset[str]:
        return await outgoing.raise_alerts(self.database, alerts)

    # --- configuration

    async def apply_profile(self, name: str, revision: str, data: Mapping[str, Any], source: str) -> bool:
        return await configuration.apply_profile(self.database, name, revision, data, source)

    async def current_profiles(self) -> Sequence[rows.Revision]:
        return await configuration.current_profiles(self.database)

    async def profile(self, revision: str) -> rows.Revision | None:
        return await configuration.profile(self.database, revision)

    async def apply_settings(self, revision: str, data: Mapping[str, Any], source: str) -> bool:
        return await configuration.apply_settings(self.database, revision, data, source)

    async def current_settings(self) -> rows.Revision | None:
        return await configuration.current_settings(self.database)

    # --- reading

    async def sessions(self, limit: int = 100, *, tenant: str | None = None) -> Sequence[rows.SessionSummary]:
        return await reads.sessions(self.database, limit, tenant)

    async def session(self, name: str, *, tenant: str = "") -> rows.SessionRow | None:
        return await reads.session(self.database, name, tenant)

    async def session_by_id(self, session_id: int) -> rows.SessionRow | None:
        return await reads.session_by_id(self.database, session_id)

    async def messages(self, session_id: int, *, after: int = 0) -> Sequence[rows.LogEntry]:
        return await reads.messages(self.database, session_id, after)

    async def mail(self, session_id: int) -> Sequence[rows.Mail]:
        return await reads.mail(self.database, session_id)

    async def turn(self, turn_id: str) -> rows.TurnRow | None:
        return await reads.turn(self.database, turn_id)

    async def turns(self, session_id: int) -> Sequence[rows.TurnRow]:
        return await reads.turns(self.database, session_id)

    async def latest_turns(self, limit: int = 100, *, session_id: int | None = None) -> Sequence[rows.TurnRow]:
        return await reads.latest_turns(self.database, limit, session_id)

    async def turn_ids(self, prefix: str, limit: int) -> Sequence[str]:
        return await reads.turn_ids(self.database, prefix, limit)

    async def calls(self, turn_id: str) -> Sequence[rows.CallRow]:
        return await reads.calls(self.database, turn_id)

    async def model_calls(self, turn_id: str) -> Sequence[rows.ModelCallRow]:
        return await reads.model_calls(self.database, turn_id)

    async def approvals(self, limit: int = 100, *, open_only: bool = False) -> Sequence[rows.ApprovalSummary]:
        return await reads.approvals(self.database, limit, open_only)

    async def approval(self, approval_id: str) -> rows.ApprovalSummary | None:
        return await reads.approval(self.database, approval_id)

    async def approval_ids(self, prefix: str, limit: int) -> Sequence[str]:
        return await reads.approval_ids(self.database, prefix, limit)
