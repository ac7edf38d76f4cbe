"""The one door for jobs: read, checked, given its verdict, and kept, before its producer hears anything.

A job that cannot be read, names an agent or a channel that does not exist, or comes by a public channel to an agent
without a rate limit, is kept as it came with the reason, and never stops the one behind it. While the store does not
answer, the same job is tried again under the same id; nothing is dropped and nothing overtakes.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog
import uuid_utils
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from actors.agents import Agent
from actors.configuration import Configuration
from actors.wakes import Signals, Wakes
from insika.agents.precedence import job_queue_mode
from insika.choices import Origin
from insika.clock import Clock
from insika.crash_points import Crash, CrashPoint
from insika.errors import InvalidJob, UnknownAgent
from insika.events import Event, EventSink, EventType
from insika.jobs import TurnJob, digest, parse_job, turn_key
from insika.session_vars import remembered_vars, var_updates
from insika.storage.operations import AcceptJob
from insika.storage.port import IntakeStore, StoreUnavailable
from insika.storage.rows import Accepted, TurnState, Verdict

T = TypeVar("T")

PATIENCE_S = 10.0
"""Seconds for which a job is tried again before its producer is told that nobody knows."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A job that could not be accepted: it lies in rejected_jobs under `number`."""

    number: int
    error: InvalidJob


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that was read, and what the store is asked for it. Its id stays the same however often it is asked."""

    job: TurnJob
    accept: AcceptJob

    def anew(self) -> AcceptJob:
        # Ids of turns begin with the time, so that the rows of new turns lie beside one another in every index.
        return self.accept.tried_anew(str(uuid_utils.uuid7()))


class Ingress:
    def __init__(
        self,
        store: IntakeStore,
        configuration: Configuration,
        *,
        events: EventSink,
        clock: Clock,
        wakes: Wakes,
        signals: Signals,
        crash: Crash,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._events = events
        self._clock = clock
        self._wakes = wakes
        self._signals = signals
        self._crash = crash
        self._log = structlog.get_logger("insika.ingress")

    async def take(self, raw: bytes, *, message_id: str | None = None, source: str = "local") -> Accepted | Kept:
        """Accept one job. `message_id` is used where the job itself has no id; without either it may run twice when
        the store fails in between. Raises StoreUnavailable when the store has not answered for a while: then nobody
        knows, and the same job should be sent again with the same id."""
        try:
            job = parse_job(raw)
            asked = Asked(job, await self._request(job, raw, message_id))
        except InvalidJob as error:
            return await self.keep(raw, error, message_id=message_id, source=source)
        return await self.accept(asked)

    def read(self, raw: bytes, *, message_id: str | None = None) -> Asked | None:
        """What to ask for a job, where all that it names is known here. None: `take` has more to do for it."""
        try:
            job = parse_job(raw)
        except InvalidJob:
            return None
        agent = self._configuration.agents.current(job.agent)
        if agent is None or (job.channel is not None and self._configuration.settings().channel(job.channel) is None):
            return None
        if self._is_barred(job, agent):
            return None
        return Asked(job, self._accepting(job, raw, message_id, agent))

    async def accept(self, asked: Asked) -> Accepted:
        """Accept one job that was read. Raises as `take` does."""
        return self._told(asked, await _patiently(lambda: self._store.accept(asked.anew())))

    async def accept_all(self, asked: Sequence[Asked]) -> None:
        """Accept jobs in this order, as one. Raises what the store raises, at once: then nobody knows what became of
        any of them, and each is to be accepted again by itself."""
        accepted = await self._store.accept_all([each.anew() for each in asked])
        for one, verdict in zip(asked, accepted, strict=True):
            self._told(one, verdict)

    def _told(self, asked: Asked, accepted: Accepted) -> Accepted:
        """Tell whom it concerns."""
        self._crash(CrashPoint.ACCEPTED)
        self._tell(asked.job, accepted)
        if _wants_an_owner(accepted):
            self._wakes.session(accepted.session_id)
        if accepted.verdict is Verdict.INTERRUPTING:
            self._signals.publish(accepted.session_id)
        return accepted

    async def _request(self, job: TurnJob, raw: bytes, message_id: str | None) -> AcceptJob:
        agents = self._configuration.agents
        agent = agents.current(job.agent)
        if agent is None:
            await _patiently(agents.refresh)
            agent = agents.current(job.agent)
        if agent is None:
            raise UnknownAgent(f"agent: there is no agent {job.agent!r}; apply its profile first", field="agent")
        if job.channel is not None and not await self._has_channel(job.channel):
            raise InvalidJob(f"channel: there is no channel {job.channel!r} in the settings", field="channel")
        if self._is_barred(job, agent):
            await _patiently(self._configuration.refresh)  # a limit may have been applied a moment ago
            agent = agents.current(job.agent) or agent
            if self._is_barred(job, agent):
                raise InvalidJob(
                    f"channel: {job.channel!r} is public, and agent {job.agent!r} has no chat_rate_limit in force; set "
                    "limits.chat_rate_limit in its profile, or edge.chat_rate_limit in the settings",
                    field="channel",
                )
        return self._accepting(job, raw, message_id, agent)

    def _accepting(self, job: TurnJob, raw: bytes, message_id: str | None, agent: Agent) -> AcceptJob:
        limits = self._configuration.limits(agent)
        return AcceptJob(
            tenant=job.tenant,
            session=job.session,
            job_id=job.id or message_id or f"anonymous-{uuid.uuid4()}",
            digest=digest(job),
            turn_id="",
            text=job.text,
            agent=job.agent,
            key=turn_key(job.agent, job.channel, job.recipient, job.origin),
            raw=raw,
            mode=job_queue_mode(job.origin, job.queue_mode),
            default_mode=limits.queue_mode,
            channel=job.channel,
            recipient=job.recipient,
            origin=job.origin,
            customer=job.customer,
            sent_at=job.sent_at,
            debounce_ms=limits.debounce_ms if job.origin is Origin.CUSTOMER else 0,
            debounce_max_ms=limits.debounce_max_ms,
            mailbox_max=limits.mailbox_max,
            session_vars=remembered_vars(job.vars),
            var_updates=var_updates(job.vars),
        )

    async def _has_channel(self, id: str) -> bool:
        if self._configuration.settings().channel(id) is None:
            await _patiently(self._configuration.refresh)  # it may have been applied a moment ago
        return self._configuration.settings().channel(id) is not None

    def _is_barred(self, job: TurnJob, agent: Agent) -> bool:
        channel = self._configuration.settings().channel(job.channel) if job.channel is not None else None
        public = channel is not None and channel.public
        return public and not self._configuration.edge_rules(agent.profile).for_the_public

    async def keep(
        self, raw: bytes, error: InvalidJob, *, message_id: str | None = None, source: str = "local"
    ) -> Kept:
        """Keep a job aside as it came, with the reason and what the broker called it. Raises as `take` does."""
        told = error.as_dict() if message_id is None else {**error.as_dict(), "message_id": message_id}
        number = await _patiently(lambda: self._store.reject(raw, told, source))
        self._log.warning("job kept aside", number=number, type=error.type, field=error.field)
        return Kept(number, error)

    def _tell(self, job: TurnJob, accepted: Accepted) -> None:
        self._events.publish(
            Event(
                EventType.TURN_ACCEPTED,
                self._clock.now(),
                accepted.turn_id,
                job.session,
                job.agent,
                job.tenant or None,
                data={"verdict": str(accepted.verdict), "position": accepted.position, **_first(accepted)},
            )
        )


def _wants_an_owner(accepted: Accepted) -> bool:
    """Also where the first try was written and nobody was told of it, neither its producer nor an owner."""
    if accepted.verdict is Verdict.DUPLICATE:
        return accepted.turn_state is TurnState.QUEUED
    return accepted.verdict is not Verdict.REJECTED


def _first(accepted: Accepted) -> Mapping[str, str]:
    """Of a duplicate: how far the first one's turn has come."""
    return {} if accepted.turn_state is None else {"turn_state": str(accepted.turn_state)}


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask the store until it answers; raises StoreUnavailable when it has not for `PATIENCE_S`."""
    try:
        return await ask()
    except StoreUnavailable:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_random_exponential(multiplier=0.1, max=2.0),
            stop=stop_after_delay(PATIENCE_S),
            reraise=True,
        )
        async for attempt in tries:  # called as a function, it would not await what a lambda gives
            with attempt:
                return await ask()
        raise AssertionError("retrying neither answered nor raised") from None
