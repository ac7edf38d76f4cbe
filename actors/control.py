"""What people ask of sessions that exist: stop a turn, take a message back, approve a call, hold a session.

Each request is written first, in one order with the messages of its session, and then told of: the wake, the signal
and the event are hints, and the owner would find what was written without them. What comes of a request is the
owner's business; here it is only made a fact that somebody asked.
"""

from __future__ import annotations

from typing import Protocol

from actors.wakes import Signals, Wakes
from insika.clock import Clock
from insika.events import Event, EventSink, EventType
from insika.storage.port import IntakeStore, ReadStore
from insika.storage.rows import Accepted, ApprovalDecision, Decided, Withdrawal
from insika.text import clean_text


class ControlStore(IntakeStore, ReadStore, Protocol):
    """Where requests are written, and where it is read whom they concern."""


class Control:
    """Every operation raises StoreUnavailable when the store did not say whether it wrote; asking again is safe."""

    def __init__(self, store: ControlStore, wakes: Wakes, signals: Signals, events: EventSink, clock: Clock) -> None:
        self._store = store
        self._wakes = wakes
        self._signals = signals
        self._events = events
        self._clock = clock

    async def cancel(self, turn_id: str, *, request_id: str) -> Accepted | None:
        """Ask for the end of a turn, queued, running or waiting for a person. None: there is no such turn, or it has
        ended. The same `request_id` again asks nothing more."""
        asked = await self._store.cancel(turn_id, request_id=request_id)
        if asked is not None:
            self._wakes.session(asked.session_id)
            self._signals.publish(asked.session_id)
        return asked

    async def withdraw(self, session: str, job_id: str, *, request_id: str, tenant: str = "") -> Withdrawal | None:
        """Ask that a message be taken back, by the id its producer gave it. None: no such message is known. Whether
        it came in time, the message's row tells once the owner has looked: until then the answer's `ended` is None."""
        asked = await self._store.withdraw(session, job_id, request_id=request_id, tenant=tenant)
        if asked is not None and asked.control is not None:
            self._wakes.session(asked.session_id)
        return asked

    async def decide(
        self, approval_id: str, decision: ApprovalDecision, *, by: str, reason: str = ""
    ) -> Decided | None:
        """A person's word on a call that waits for it: approved or rejected. None: there is no such approval. Only the
        first decision counts; of a later one the answer is the first (`won` False), or that its time was over. NUL and
        lone surrogates in `by` and `reason` are replaced: no store could keep them."""
        decided = await self._store.decide(approval_id, decision, by=clean_text(by), reason=clean_text(reason))
        if decided is None:
            return None
        self._wakes.session(decided.approval.session_id)
        if decided.won:
            await self._tell_decided(decided)
        return decided

    async def pause(self, session: str, *, tenant: str = "") -> bool:
        """Hold a session: its turn goes no further than the next boundary, and none begins. False: there is none of
        that name."""
        return await self._set_paused(session, tenant, paused=True)

    async def resume(self, session: str, *, tenant: str = "") -> bool:
        """End the hold; what was held goes on where it stopped. False: there is no session of that name."""
        return await self._set_paused(session, tenant, paused=False)

    async def _set_paused(self, session: str, tenant: str, *, paused: bool) -> bool:
        if not await self._store.set_paused(session, paused, tenant=tenant):
            return False
        row = await self._store.session(session, tenant=tenant)
        if row is not None:
            self._wakes.session(row.id)
        return True

    async def _tell_decided(self, decided: Decided) -> None:
        approval = decided.approval
        summary = await self._store.approval(approval.id)
        if summary is None:
            return
        self._events.publish(
            Event(
                EventType.APPROVAL_DECIDED,
                self._clock.now(),
                approval.turn_id,
                summary.session,
                summary.agent,
                summary.tenant or None,
                data={
                    "approval_id": approval.id,
                    "call_id": approval.call_id,
                    "tool": approval.tool,
                    "decision": str(approval.decision),
                },
            )
        )
