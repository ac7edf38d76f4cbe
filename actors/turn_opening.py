"""Begins a turn of the session that its owner holds: by the profile as it is now, if limits, budget and moderator let
it, in one fenced write; or ends it at once, in one fenced write too, with an error, or an answer that no model gave.
"""

from __future__ import annotations

from dataclasses import dataclass

from actors.admission import Admitted, Applicant, Limited, Refused, Warnings
from actors.lease import Lease
from actors.mailroom import Mailroom, seen
from actors.stage import NOT_STAGED, Addressee, Staged
from actors.turn_endings import TurnEndings
from actors.turn_events import ScopedEvents, events_of
from actors.turn_start import applicant_of, finish_of, opening_of, start_of, tell_completed, tell_start, tell_warnings
from actors.world import World
from insika.crash_points import CrashPoint
from insika.events import EventType
from insika.storage.rows import Loaded, LogEntry
from insika.turn.history import load_from
from insika.turn.log import Answer, Superseded
from insika.turn.queue_policy import Begin


@dataclass(frozen=True, slots=True)
class Opened:
    """A turn that runs from now on. `applicant` is as it asked to, `log` what its first request says, its own first
    messages among it."""

    staged: Staged
    applicant: Applicant
    log: tuple[LogEntry, ...]
    emit: ScopedEvents


class TurnOpening:
    """Every operation raises Superseded when it may not write: load again."""

    def __init__(self, lease: Lease, world: World, mailroom: Mailroom, endings: TurnEndings) -> None:
        self._lease = lease
        self._world = world
        self._mailroom = mailroom
        self._endings = endings

    async def open(self, loaded: Loaded, begin: Begin) -> Opened | None:
        """None: the turn has ended already, or has lost messages; load again."""
        first = begin.mail[0]
        await self._world.stage.know(first.agent, first.channel)
        try:
            staged = self._world.stage.begin(loaded.session, begin.turn_id, first.agent)
        except NOT_STAGED as error:
            await self._endings.fail_queued(loaded, seen(loaded), begin, error)
            return None
        applicant = applicant_of(loaded, begin)
        match await self._world.admissions.ask(staged.profile, applicant):
            case Limited() as limited:
                await self._limit(loaded, begin, staged, limited)
            case Refused() as refused:
                await self._endings.fail_queued(loaded, seen(loaded), begin, refused.error, refused.warnings)
            case Admitted(warnings, past_budget) if await self._mailroom.moderate(loaded, begin):
                staged = staged.past_budget() if past_budget else staged
                return await self._start(loaded, begin, staged, applicant, warnings)
        return None

    async def _start(
        self, loaded: Loaded, begin: Begin, staged: Staged, applicant: Applicant, warnings: Warnings
    ) -> Opened:
        budget = staged.identity.limits.context_budget
        moved = load_from(loaded.log, [row.text for row in begin.mail], budget)
        start = start_of(begin, staged, moved, warnings.alerts)
        begun = await self._world.store.start(self._lease.fence, seen(loaded), start)
        if begun is None:
            raise Superseded
        self._world.crash(CrashPoint.TURN_STARTED)
        emit = self._events(loaded, begin)
        tell_warnings(emit, warnings, begun.raised)
        tell_start(emit, begin, staged)
        kept = loaded.log if moved is None else tuple(entry for entry in loaded.log if entry.seq >= moved)
        return Opened(staged, applicant, (*kept, *opening_of(begin, begun.log_seq, self._lease.epoch)), emit)

    async def _limit(self, loaded: Loaded, begin: Begin, staged: Staged, limited: Limited) -> None:
        """Answer in the model's place. Nobody is asked, and nothing runs afterwards."""
        first, world = begin.mail[0], self._world
        answer = Answer(0, limited.response, "limited")
        to = Addressee(first.agent, first.channel, first.recipient)
        deliveries = world.stage.deliveries(loaded.session, begin.turn_id, to, answer)
        finish = finish_of(begin, staged, answer, deliveries)
        if await world.store.finish_at_once(self._lease.fence, seen(loaded), finish) is None:
            raise Superseded
        world.crash(CrashPoint.COMMITTED)
        if deliveries:
            world.wakes.delivery()
        emit = self._events(loaded, begin)
        emit(EventType.LIMIT_BREACHED, limited.breached)
        tell_completed(emit, answer)

    def _events(self, loaded: Loaded, begin: Begin) -> ScopedEvents:
        world = self._world
        return events_of(loaded, self._lease.epoch, world.events, world.clock, begin.turn_id, begin.mail[0].agent)
