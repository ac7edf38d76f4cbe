"""Ends messages that a guard has refused. A turn of which nothing is left ends with them: it is refused, and the person
is told so in the same write, by the safe reply of what was refused first. It counts in its session's rate limit; past
that it is refused all the same, and nobody is told.

Neither the text nor the reply enters the conversation: a model that reads later that something was refused would be
asked about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from actors.admission import Applicant, Limited
from actors.lease import Lease
from actors.stage import Addressee
from actors.turn_events import ScopedEvents, events_of
from actors.turn_start import tell_completed
from actors.world import World
from insika.crash_points import CrashPoint
from insika.events import EventType
from insika.messages import user
from insika.storage.operations import NewDelivery, Seen, SettleMail
from insika.storage.rows import Ended, Loaded, Mail, TurnState
from insika.turn.estimate import estimate_usage
from insika.turn.input_guard import Refusal
from insika.turn.log import Answer, Superseded

OUTCOME = "refused"


@dataclass(frozen=True, slots=True)
class EndsTurn:
    """The queued turn `turn_id`. `merging`: messages still merge into it. `steerable_key` is given back to the running
    turn, from which it had taken that."""

    turn_id: str
    merging: bool
    steerable_key: str | None = None


class Refusing:
    """For one session. Raises Superseded when it may not write: load again."""

    def __init__(self, lease: Lease, world: World) -> None:
        self._lease = lease
        self._world = world

    async def some(
        self, loaded: Loaded, seen: Seen, of: Mail, turn_id: str | None, refused: Mapping[int, Refusal]
    ) -> None:
        """Others are left. `of`: one of those who belong together; the news is of `turn_id`."""
        await self._write(seen, SettleMail(tuple(sorted(refused)), Ended.REFUSED, None, TurnState.REFUSED))
        tell_blocked(self._events(loaded, turn_id, of.agent), refused)

    async def all(self, loaded: Loaded, seen: Seen, of: Mail, ends: EndsTurn, refused: Mapping[int, Refusal]) -> None:
        """Nothing is left of a turn. `of`: what opened it."""
        session = loaded.session
        applicant = Applicant(session.tenant, session.name, ends.turn_id, loaded.now)
        counted = await self._world.admissions.attempt(of.agent, applicant)
        reply = "" if isinstance(counted, Limited) else reply_of(refused)
        answer = Answer(0, reply, OUTCOME, agent=of.agent)
        deliveries = await self._deliveries(loaded, of, ends.turn_id, answer)
        positions = tuple(sorted(refused))
        await self._write(
            seen,
            SettleMail(
                positions,
                Ended.REFUSED,
                ends.turn_id,
                TurnState.REFUSED,
                merging=ends.merging,
                steerable_key=ends.steerable_key,
                estimate=estimate_usage("", [user(of.text)]),
                deliveries=deliveries,
            ),
        )
        if deliveries:
            self._world.wakes.delivery()
        emit = self._events(loaded, ends.turn_id, of.agent)
        tell_blocked(emit, refused)
        if isinstance(counted, Limited):
            emit(EventType.LIMIT_BREACHED, counted.breached)
        if answer.content:
            emit(EventType.CONTENT, {"step": answer.step, "attempt": 1, "text": answer.content})
        tell_completed(emit, answer)

    async def _deliveries(self, loaded: Loaded, of: Mail, turn_id: str, answer: Answer) -> tuple[NewDelivery, ...]:
        if not answer.content:
            return ()
        await self._world.stage.know(of.agent, of.channel)
        to = Addressee(of.agent, of.channel, of.recipient)
        return self._world.stage.deliveries(loaded.session, turn_id, to, answer)

    async def _write(self, seen: Seen, mail: SettleMail) -> None:
        if not await self._world.store.settle_mail(self._lease.fence, seen, mail):
            raise Superseded
        self._world.crash(CrashPoint.MAIL_SETTLED)

    def _events(self, loaded: Loaded, turn_id: str | None, agent: str) -> ScopedEvents:
        return events_of(loaded, self._lease.epoch, self._world.events, self._world.clock, turn_id, agent)


def tell_blocked(emit: ScopedEvents, refused: Mapping[int, Refusal]) -> None:
    found = Counter((refusal.reason, refusal.pattern) for refusal in refused.values())
    for (reason, pattern), count in found.items():
        named = {"pattern": pattern} if pattern else {}
        emit(EventType.GUARDRAIL_BLOCKED, {"reason": reason, **named, "count": count})


def reply_of(refused: Mapping[int, Refusal]) -> str:
    """Of the first that has one."""
    return next((refused[position].reply for position in sorted(refused) if refused[position].reply), "")
