"""The running turn's door to the store: every write fenced by the lease, and told as news when it may not happen.

Only this file knows both the loop's words and the store's. It decides nothing: what to write comes from the loop,
whether it may be written is decided by the store, and what arrives meanwhile goes by the queue policy and the guard.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from actors.lease import Lease
from actors.mailroom import Mailroom, SteerRoom, seen
from actors.world import World
from insika.clock import NEVER
from insika.crash_points import CrashPoint
from insika.documents import plain
from insika.messages import Usage
from insika.storage.operations import (
    Absorbed,
    AppendStep,
    AskApproval,
    CallResult,
    CommitTurn,
    CrossBoundary,
    EndTurn,
    ModelCallKey,
    NewDelivery,
    RedirectTurn,
    RouteTurn,
)
from insika.storage.port import NOTHING_OF_THE_LOG
from insika.storage.rows import Committed, Loaded, Mail, TurnState, Verdict
from insika.turn.input_guard import Refusal
from insika.turn.log import Answer, Failure, Superseded
from insika.turn.queue_policy import cuts_of, next_settlement

T = TypeVar("T")

AddressAnswer = Callable[[Answer], tuple[NewDelivery, ...]]
"""What an answer becomes in the outbox: nothing, one delivery, or one for each piece."""


class HandOver(Exception):
    """The process is leaving: let the session go at this boundary, for another worker to go on."""


class Held(Exception):
    """An operator holds the session: let it go at this boundary, until he lets it go on."""


class OwnedTurnLog:
    """`leaving` is asked at each boundary whether to hand the turn over. After the loop has ended, `released` tells
    whether the lease went with it, `suspended` whether the turn waits for a person, `delivers` whether there is
    something to deliver, `ended` what the turn ended with, `commit_ms` how long the write took that ended it."""

    def __init__(
        self,
        lease: Lease,
        world: World,
        mailroom: Mailroom,
        loaded: Loaded,
        *,
        turn_id: str,
        steers: SteerRoom,
        address: AddressAnswer,
        leaving: Callable[[], bool],
    ) -> None:
        self._lease = lease
        self._crash = world.crash
        self._clock = world.clock
        self._store = world.store
        self._mailroom = mailroom
        self._turn_id = turn_id
        self._steers = steers
        self._address = address
        self._leaving = leaving
        self._loaded = loaded
        self._mail: Sequence[Mail] = loaded.mail
        self._seen = seen(loaded)
        self._log_seq = loaded.session.log_seq
        self._passed: set[int] = set()
        self._handed_to: str | None = None
        self._held = False
        self.released = self.delivers = self.suspended = False
        self.ended: Answer | Failure | None = None
        self.commit_ms = 0.0

    def hand_to(self, agent: str) -> None:
        """The turn is this agent's, to whom it was not sent: its guard looks at what joins."""
        self._handed_to = agent

    async def moderated(self, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        """Those of the turn's messages that a moderator refuses: of the agent that the rows name."""
        return await self._mailroom.moderated(self._loaded, self._seen, self._turn_id, mail)

    def may_start(self) -> None:
        self._lease.may_start()

    def waiting(self) -> Sequence[Mail]:
        return [row for row in self._mail if row.verdict is Verdict.STEERED and row.turn_id == self._turn_id]

    async def look_again(self) -> None:
        self._held = (await self._look()).session.paused

    async def cut_meanwhile(self) -> bool:
        """While the model talks: is this turn cut? Nothing that was seen here counts as looked at: the loop goes on."""
        loaded = await self._store.load(self._lease.fence, log_after=NOTHING_OF_THE_LOG)
        if loaded is None:
            return True
        cuts = cuts_of(loaded.mail, self._turn_id)
        return bool(cuts and await self._mailroom.refuse_cuts(loaded, cuts, self._steers))

    async def route(self, turn: RouteTurn) -> None:
        """Keep what the classifier said. It was paid for: urgent mail that does not cut this turn must not cost it."""
        store, fence = self._store, self._lease.fence
        await self._paid_for(lambda: store.route_turn(fence, self._seen, turn))

    async def redirect(self, turn: RedirectTurn) -> None:
        _must(await self._store.redirect_turn(self._lease.fence, self._seen, turn))

    async def retry_model(self, call: ModelCallKey, estimate: Usage) -> None:
        _must(await self._store.retry_model(self._lease.fence, self._seen, self._turn_id, call, estimate=estimate))

    async def append(self, step: AppendStep) -> int:
        return _known(await self._store.append(self._lease.fence, step))

    async def start_call(self, step: int, index: int, *, arguments_hash: str | None = None) -> None:
        start = await self._store.start_call(
            self._lease.fence, self._seen, self._turn_id, step, index, arguments_hash=arguments_hash
        )
        _must(start.held and start.moved)

    async def ask_approvals(self, asks: Sequence[AskApproval]) -> None:
        _must(await self._store.ask_approvals(self._lease.fence, self._seen, self._turn_id, asks))
        self._crash(CrashPoint.APPROVAL_ASKED)

    async def suspend(self) -> None:
        _must(await self._store.suspend(self._lease.fence, self._seen, self._turn_id))
        self.released = self.suspended = True
        self._crash(CrashPoint.TURN_SUSPENDED)

    async def finish_call(self, step: int, result: CallResult) -> None:
        finish = await self._store.finish_call(self._lease.fence, self._turn_id, step, result)
        _must(finish.held and finish.moved)

    async def cross_boundary(self, boundary: CrossBoundary) -> int | None:
        seq = None
        if await self._may_join(boundary.absorbed):
            seq = await self._store.cross_boundary(self._lease.fence, self._seen, boundary)
        if seq is None:
            if boundary.nothing_unseen:
                return None
            raise Superseded
        taken = {row.position for row in boundary.absorbed}
        self._mail = [row for row in self._mail if row.position not in taken]
        self._steers.left -= len(taken)
        if self._leaving():
            raise HandOver
        if self._held:
            raise Held
        return seq

    async def commit(self, answer: Answer) -> None:
        deliveries = self._address(answer)
        began = self._clock.monotonic()
        committed = await self._paid_for(lambda: self._commit(answer, deliveries))
        self.released = committed.released
        self.delivers = bool(deliveries)
        self._ended(answer, began)

    async def _paid_for(self, write: Callable[[], Awaitable[T | None]]) -> T:
        """Write what was paid for, also while urgent mail comes that does not cut this turn."""
        while not (written := await write()):
            urgent = self._seen.urgent
            await self._look()
            if self._seen.urgent == urgent:
                raise Superseded
        return written

    async def _commit(self, answer: Answer, deliveries: tuple[NewDelivery, ...]) -> Committed | None:
        return await self._store.commit(
            self._lease.fence,
            self._seen,
            CommitTurn(
                self._turn_id,
                answer.step,
                answer.content,
                answer.outcome,
                deliveries,
                answer.results,
                answer.model_call,
                answer.synthesized,
                timing=answer.timing,
                release_due=NEVER,
            ),
        )

    async def fail(self, failure: Failure) -> None:
        began = self._clock.monotonic()
        _must(
            await self._store.end(
                self._lease.fence,
                EndTurn(
                    self._turn_id,
                    failure.step,
                    TurnState.FAILED,
                    "failed",
                    plain(failure.error.as_dict()),  # a provider's own words may be in it
                    failure.results,
                    estimate=failure.estimate,
                    timing=failure.timing,
                ),
            )
        )
        self._ended(failure, began)

    def _ended(self, ended: Answer | Failure, began: float) -> None:
        self.ended = ended
        self.commit_ms = round((self._clock.monotonic() - began) * 1000, 1)

    async def _look(self) -> Loaded:
        """Read the mailbox anew, and settle what concerns this turn before its next step. Raises Superseded when
        something in it cuts the turn."""
        while True:
            loaded = await self._store.load(self._lease.fence, log_after=self._log_seq)
            if loaded is None or loaded.session.turn_id != self._turn_id:
                raise Superseded
            cuts = cuts_of(loaded.mail, self._turn_id)
            if cuts:
                if await self._mailroom.refuse_cuts(loaded, cuts, self._steers):
                    raise Superseded
            elif (settlement := next_settlement(loaded)) is not None:
                await self._mailroom.settle(loaded, settlement)
            else:
                break
        self._loaded, self._mail, self._seen = loaded, loaded.mail, seen(loaded)
        self._log_seq = loaded.session.log_seq
        return loaded

    async def _may_join(self, absorbed: Sequence[Absorbed]) -> bool:
        """False: the guard has refused some of them, and they have ended."""
        joining = {each.position for each in absorbed} - self._passed
        rows = [self._as_guarded(row) for row in self._mail if row.position in joining]
        if rows and not await self._mailroom.screen_steers(self._loaded, self._seen, self._turn_id, rows):
            return False
        self._passed |= joining
        return True

    def _as_guarded(self, row: Mail) -> Mail:
        return row if self._handed_to is None else replace(row, agent=self._handed_to)


def _must(written: bool) -> None:
    if not written:
        raise Superseded


def _known(seq: int | None) -> int:
    if seq is None:
        raise Superseded
    return seq
