"""The ways a turn ends, or is handed on, other than by its own loop: each one fenced write, and then the news of it.

However a turn ends, the calls of its open batch get the results they lack, so that the conversation stays one that
every vendor accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from actors.admission import NO_WARNINGS, Warnings
from actors.lease import Lease
from actors.turn_events import ScopedEvents, events_of
from actors.turn_log import OwnedTurnLog
from actors.turn_start import completed, on_route, tell_warnings
from actors.world import World
from insika.crash_points import CrashPoint
from insika.errors import Cancelled, InsikaError, Interrupted, WorkerLost
from insika.events import EventType
from insika.messages import NO_USAGE, Usage, user
from insika.storage.operations import EndTurn, FailQueued, Seen
from insika.storage.port import StoreUnavailable
from insika.storage.rows import ApprovalDecision, Loaded, TurnState
from insika.turn import sentences
from insika.turn.call_results import closing_results
from insika.turn.estimate import estimate_usage
from insika.turn.log import Answer, Failure, Superseded
from insika.turn.queue_policy import LOST_AFTER_DEATHS, Begin, CutRunning
from insika.turn.state import state_from_log


class TurnEndings:
    def __init__(self, lease: Lease, world: World) -> None:
        self._lease = lease
        self._world = world
        self._store = world.store

    async def cut(self, loaded: Loaded, cut: CutRunning, owed: Usage) -> None:
        """End the running turn because somebody said so. Nothing is published. `owed`: what its open request cost, if
        this owner knows."""
        error: InsikaError = (
            Interrupted("a newer message from the person took this turn's place")
            if cut.interrupted
            else Cancelled("the turn was cancelled")
        )
        await self._end(loaded, TurnState.CANCELLED, error, cut.control, owed)
        emit = self._events(loaded)
        if cut.interrupted:
            emit(EventType.TURN_INTERRUPTED, {"replaced_by": cut.replaced_by})
        emit(EventType.TURN_CANCELLED, {"outcome": "cancelled", "error": error.type, **_route_of(loaded)})

    async def give_up(self, loaded: Loaded) -> None:
        """End a running turn that has outlived too many owners."""
        await self.fail_running(loaded, self.lost())

    async def fail_running(self, loaded: Loaded, error: InsikaError) -> None:
        await self._end(loaded, TurnState.FAILED, error, ())
        self._events(loaded)(EventType.TURN_FAILED, {"outcome": "failed", "error": error.type, **_route_of(loaded)})

    async def fail_queued(
        self, loaded: Loaded, seen: Seen, begin: Begin, error: InsikaError, warnings: Warnings = NO_WARNINGS
    ) -> None:
        """Start and fail a turn at once: what was said is kept, nothing is run; `warnings` are raised with it."""
        first = begin.mail[0]
        failed = await self._store.fail_queued(
            self._lease.fence,
            seen,
            FailQueued(
                begin.turn_id,
                tuple(row.position for row in begin.mail),
                first.agent,
                first.channel,
                first.recipient,
                first.origin,
                error.as_dict(),
                begin.merging,
                warnings.alerts,
                estimate_usage("", [user(row.text) for row in begin.mail]),
            ),
        )
        if failed is None:
            raise Superseded
        self._world.crash(CrashPoint.TURN_ENDED)
        emit = self._events(loaded, begin.turn_id, first.agent)
        tell_warnings(emit, warnings, failed.raised)
        emit(EventType.TURN_FAILED, {"outcome": "failed", "error": error.type})

    async def hand_over(self, owed: Usage) -> None:
        """Let the session go in whatever state it is, due now, for another worker to go on from the log. `owed` is
        what an open request is booked at."""
        with suppress(StoreUnavailable):  # the lease runs out by itself then; that only takes longer
            await self._let_go(owed)

    async def hold(self, loaded: Loaded, turn_id: str, agent: str, owed: Usage) -> None:
        """Let the session go in the middle of its turn, until its operator lets it go on."""
        if not await self._let_go(owed):
            raise Superseded
        self._world.crash(CrashPoint.TURN_HELD)
        if loaded.turn is None or loaded.turn.state is not TurnState.WAITING:
            self._events(loaded, turn_id, agent)(EventType.TURN_HELD, {})

    async def _let_go(self, owed: Usage) -> bool:
        released = await self._store.release_for_drain(
            self._lease.fence, unknown_result=sentences.UNKNOWN_OUTCOME, estimate=owed
        )
        if released:
            self._world.wakes.session(self._lease.fence.session_id)
        return released

    def announce(self, emit: ScopedEvents, log: OwnedTurnLog) -> None:
        """Tell how the loop ended its turn."""
        match log.ended:
            case Answer() as answer:
                self._world.crash(CrashPoint.COMMITTED)
                if log.delivers:
                    self._world.wakes.delivery()
                emit(EventType.TURN_COMPLETED, {**completed(answer), "timing": self._timing(answer, log)})
            case Failure() as failure:
                self._world.crash(CrashPoint.TURN_ENDED)
                emit(
                    EventType.TURN_FAILED,
                    {
                        "outcome": "failed",
                        "error": failure.error.type,
                        **on_route(failure.route),
                        "step": failure.step,
                        "usage": asdict(failure.usage + failure.estimate),
                        "timing": self._timing(failure, log),
                    },
                )
            case None:
                raise AssertionError("a loop returned without ending its turn")

    def _timing(self, ended: Answer | Failure, log: OwnedTurnLog) -> Mapping[str, Any]:
        """With the time of the write that ended the turn, which its own row cannot have."""
        return {**ended.timing, "commit_ms": log.commit_ms} if self._world.turn_timing else dict(ended.timing)

    @staticmethod
    def lost() -> WorkerLost:
        return WorkerLost(
            f"the workers that ran this turn died {LOST_AFTER_DEATHS} times; it is not tried again by itself"
        )

    async def _end(
        self, loaded: Loaded, state: TurnState, error: InsikaError, control: tuple[int, ...], owed: Usage = NO_USAGE
    ) -> None:
        turn = loaded.turn
        if turn is None:
            raise Superseded
        stands = state_from_log(turn.id, loaded.log, loaded.calls, loaded.model_calls, fresh=False)
        results = closing_results(stands.batch.calls, error.type) if stands.batch is not None else ()
        ended = await self._store.end(
            self._lease.fence,
            EndTurn(
                turn.id,
                stands.step,
                state,
                "cancelled" if state is TurnState.CANCELLED else "failed",
                error.as_dict(),
                results,
                control,
                owed if owed != NO_USAGE else estimate_usage("", stands.history),
            ),
        )
        if not ended:
            raise Superseded
        self._world.crash(CrashPoint.TURN_ENDED)
        await self._world.tokens.of(loaded.session.tenant, turn.id, None if turn.depth else turn.agent)
        for approval in loaded.approvals:
            if approval.decision is None:
                asked = {"approval_id": approval.id, "call_id": approval.call_id, "tool": approval.tool}
                self._events(loaded)(EventType.APPROVAL_DECIDED, {**asked, "decision": str(ApprovalDecision.VOID)})

    def _events(self, loaded: Loaded, turn_id: str | None = None, agent: str | None = None) -> ScopedEvents:
        return events_of(loaded, self._lease.epoch, self._world.events, self._world.clock, turn_id, agent)


def _route_of(loaded: Loaded) -> Mapping[str, Any]:
    return on_route(loaded.turn.route if loaded.turn is not None else None)
