"""The running turn's door to the store: every write fenced by the lease, and told as news when it may not happen.

Only this file knows both the loop's words and the store's. It decides nothing: what to write comes from the loop,
whether it may be written is decided by the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from actors.lease import Lease
from insika.clock import NEVER
from insika.documents import plain
from insika.messages import Usage
from insika.storage.operations import (
    AppendStep,
    CallResult,
    CommitTurn,
    CrossBoundary,
    EndTurn,
    ModelCallKey,
    NewDelivery,
    Seen,
)
from insika.storage.port import OwnerStore
from insika.storage.rows import Loaded, Mail, TurnState, Verdict
from insika.turn.log import Answer, Failure, Superseded
from insika.turn.queue_policy import cuts_of

AddressAnswer = Callable[[Answer], tuple[NewDelivery, ...]]
"""What an answer becomes in the outbox: nothing, one delivery, or one for each piece."""


class HandOver(Exception):
    """The process is leaving: let the session go at this boundary, for another worker to go on."""


class OwnedTurnLog:
    """`leaving` is asked at each boundary whether to hand the turn over. After the turn has ended, `released` tells
    whether the lease went with it, `delivers` whether there is something to deliver, `ended` what it ended with."""

    def __init__(
        self,
        store: OwnerStore,
        lease: Lease,
        loaded: Loaded,
        *,
        turn_id: str,
        address: AddressAnswer,
        leaving: Callable[[], bool],
    ) -> None:
        self._store = store
        self._lease = lease
        self._turn_id = turn_id
        self._address = address
        self._leaving = leaving
        self._mail: Sequence[Mail] = loaded.mail
        self._seen = seen(loaded)
        self._log_seq = loaded.session.log_seq
        self.released = self.delivers = False
        self.ended: Answer | Failure | None = None

    def may_start(self) -> None:
        self._lease.may_start()

    def waiting(self) -> Sequence[Mail]:
        return [row for row in self._mail if row.verdict is Verdict.STEERED and row.turn_id == self._turn_id]

    async def look_again(self) -> None:
        loaded = await self._store.load(self._lease.fence, log_after=self._log_seq)
        if loaded is None or loaded.session.turn_id != self._turn_id or cuts_of(loaded.mail, self._turn_id):
            raise Superseded
        self._mail, self._seen, self._log_seq = loaded.mail, seen(loaded), loaded.session.log_seq

    async def retry_model(self, call: ModelCallKey, estimate: Usage) -> None:
        _must(await self._store.retry_model(self._lease.fence, self._seen, self._turn_id, call, estimate=estimate))

    async def append(self, step: AppendStep) -> int:
        return _known(await self._store.append(self._lease.fence, step))

    async def start_call(self, step: int, index: int) -> None:
        start = await self._store.start_call(self._lease.fence, self._seen, self._turn_id, step, index)
        _must(start.held and start.moved)

    async def finish_call(self, step: int, result: CallResult) -> None:
        finish = await self._store.finish_call(self._lease.fence, self._turn_id, step, result)
        _must(finish.held and finish.moved)

    async def cross_boundary(self, boundary: CrossBoundary) -> int | None:
        seq = await self._store.cross_boundary(self._lease.fence, self._seen, boundary)
        if seq is None:
            if boundary.nothing_unseen:
                return None
            raise Superseded
        taken = {row.position for row in boundary.absorbed}
        self._mail = [row for row in self._mail if row.position not in taken]
        if self._leaving():
            raise HandOver
        return seq

    async def commit(self, answer: Answer) -> None:
        deliveries = self._address(answer)
        committed = await self._store.commit(
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
        if committed is None:
            raise Superseded
        self.released = committed.released
        self.delivers = bool(deliveries)
        self.ended = answer

    async def fail(self, failure: Failure) -> None:
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
        self.ended = failure


def seen(loaded: Loaded) -> Seen:
    """What an owner that has loaded this has looked at."""
    return Seen(loaded.session.mail_seq, loaded.session.urgent_seq)


def _must(written: bool) -> None:
    if not written:
        raise Superseded


def _known(seq: int | None) -> int:
    if seq is None:
        raise Superseded
    return seq
