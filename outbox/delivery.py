"""Delivers one row: claim it, POST it at once, settle what came of it.

The order of these three is the guarantee. The claim is written before the first byte leaves, so that a process that
dies leaves a row that nobody sends again by itself; what came of it is written before anything else is told of it.
Whoever changes this file must not add a second POST under one claim, nor a settle that says more than is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from insika.clock import Clock
from insika.crash_points import Crash, CrashPoint, no_crash
from insika.events import EventSink
from insika.storage.port import StoreUnavailable
from insika.tools.egress_session import CONNECT_S
from outbox.event import overtook_event, settled_event
from outbox.message import ClaimedDelivery
from outbox.policy import RetryWaits, delivery_waits
from outbox.signing import UnusableSecret, body_of, signature_headers
from outbox.states import AttemptResult, Decision, Failed, Forbidden, NotSent, Uncertain, Waits, decide
from outbox.store import AlertsOf, OutboxStore, no_alerts
from outbox.webhook import Attempt

GRACE_S = CONNECT_S + 10.0
"""What a claim runs for beyond its delivery's own timeout. A POST that would begin later than this after its claim
does not begin: it could outlive the claim, and then an operator might have been told already."""

_SETTLE_TRIES = 30
_SETTLE_PAUSE_S = 0.1
"""Before the second; those after it grow."""

_log = structlog.get_logger("insika.outbox")


class Post(Protocol):
    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, timeout_s: float, attempt: Attempt
    ) -> AttemptResult: ...


class SigningSecrets(Protocol):
    def __call__(self, delivery: ClaimedDelivery, /) -> Sequence[str]:
        """The secrets that sign this delivery now; several while they are rotated, none when the settings that were
        in force when it was written have lost its channel."""
        ...


class Deliverer:
    """Collaborators as in the house: the store says what may be sent, `post` sends it, `waits` says when again,
    `alerts` who is told with an outcome.

    `sleep` waits between tries to settle while the store is away."""

    def __init__(
        self,
        store: OutboxStore,
        post: Post,
        secrets: SigningSecrets,
        clock: Clock,
        events: EventSink,
        *,
        waits: Waits | None = None,
        alerts: AlertsOf = no_alerts,
        crash: Crash = no_crash,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._post = post
        self._secrets = secrets
        self._waits = waits or RetryWaits(delivery_waits())
        self._alerts = alerts
        self._clock = clock
        self._events = events
        self._crash = crash
        self._sleep = sleep

    async def run_once(self) -> bool:
        """Claim one row and deliver it. False when none was due. Raises StoreUnavailable when it could not claim."""
        return await self.deliver_next() is not None

    async def deliver_next(self) -> Decision | None:
        """As `run_once`, and tells what became of it."""
        claimed = await self.claim()
        return await claimed() if claimed is not None else None

    async def claim(self) -> Callable[[], Awaitable[Decision]] | None:
        """Claim one row. What comes back delivers it, and must be called at once."""
        asked_at = self._clock.monotonic()
        asking = asyncio.ensure_future(self._store.claim(GRACE_S))
        try:
            delivery = await asyncio.shield(asking)
        except asyncio.CancelledError:
            await self._give_back(asking)
            raise
        if delivery is None:
            return None
        return lambda: self._deliver(delivery, start_before=asked_at + GRACE_S)

    async def _give_back(self, asking: asyncio.Future[ClaimedDelivery | None]) -> None:
        try:
            delivery = await asking
        except StoreUnavailable:
            return
        if delivery is not None:
            await self._settle_once(delivery, NotSent("the process was shutting down"))

    async def _deliver(self, delivery: ClaimedDelivery, start_before: float) -> Decision:
        self._crash(CrashPoint.DELIVERY_CLAIMED)
        if delivery.overtook:
            self._events.publish(overtook_event(delivery, self._clock.now()))
        attempt = Attempt(may_start=lambda: self._clock.monotonic() <= start_before)
        try:
            result = await self._send(delivery, attempt)
        except asyncio.CancelledError:
            await self._settle_once(delivery, attempt.known("the sending was cut short by a shutdown"))
            raise
        self._crash(CrashPoint.DELIVERY_SENT)
        decision = self._decide(delivery, result)
        await self._settle(delivery, decision)
        return decision

    async def _send(self, delivery: ClaimedDelivery, attempt: Attempt) -> AttemptResult:
        body = body_of(delivery.payload)
        try:
            signature = signature_headers(
                self._secrets(delivery), delivery_id=delivery.id, at=delivery.claimed_at, body=body
            )
        except UnusableSecret as error:
            return Forbidden(f"channel {delivery.channel} cannot sign: {error.message}")
        headers = {"content-type": "application/json", "insika-attempt": str(delivery.attempts), **signature}
        if delivery.possible_duplicate:
            headers["insika-possible-duplicate"] = "true"
        return await self._post.post(delivery.url, headers, body, timeout_s=delivery.timeout_s, attempt=attempt)

    def _decide(self, delivery: ClaimedDelivery, result: AttemptResult) -> Decision:
        return decide(
            result,
            attempts=delivery.tries,
            max_attempts=delivery.max_attempts,
            guarantee=delivery.guarantee,
            waits=self._waits,
        )

    async def _settle(self, delivery: ClaimedDelivery, decision: Decision) -> None:
        """Until it is written or the tries are used up: then the claim runs out, and the row becomes uncertain."""
        written: bool
        try:
            written = await self._write(delivery, decision)
        except StoreUnavailable:
            _log.warning("store_away", doing="settle", attempt=1)
            written = await self._settle_again(delivery, decision)
        self._crash(CrashPoint.DELIVERY_SETTLED)
        self._tell(delivery, decision, written=written)

    async def _settle_again(self, delivery: ClaimedDelivery, decision: Decision) -> bool:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_exponential_jitter(multiplier=0.1, max=5, jitter=0.1),
            stop=stop_after_attempt(_SETTLE_TRIES - 1),
            sleep=self._sleep,
            before_sleep=_store_away,
            reraise=True,
        )
        written: bool
        await self._sleep(_SETTLE_PAUSE_S)
        try:
            written = await tries(self._write, delivery, decision)
        except StoreUnavailable:
            written = False
        return written

    async def _settle_once(self, delivery: ClaimedDelivery, result: AttemptResult) -> None:
        """In a hurry, because the process is on its way out: one try, and a second cancellation does not undo it."""
        decision = self._decide(delivery, result)
        try:
            written = await asyncio.shield(self._write(delivery, decision))
        except StoreUnavailable:
            written = False
        self._tell(delivery, decision, written=written)

    async def _write(self, delivery: ClaimedDelivery, decision: Decision) -> bool:
        alerts = self._alerts(delivery, decision)
        return await self._store.settle(delivery.id, delivery.claim, decision, alerts=alerts)

    def _tell(self, delivery: ClaimedDelivery, decision: Decision, *, written: bool) -> None:
        log = _log.bind(delivery_id=delivery.id, channel=delivery.channel, attempt=delivery.attempts)
        reason = getattr(decision, "reason", None)
        if not written:
            log.warning("delivery_outcome_not_written", decision=type(decision).__name__, reason=reason)
            return
        ended_badly = isinstance(decision, Failed | Uncertain)
        (log.warning if ended_badly else log.info)(
            "delivery_attempted", decision=type(decision).__name__, reason=reason
        )
        event = settled_event(delivery, decision, self._clock.now())
        if event is not None:
            self._events.publish(event)


def _store_away(state: RetryCallState) -> None:
    _log.warning("store_away", doing="settle", attempt=state.attempt_number + 1)  # the first is not tenacity's
