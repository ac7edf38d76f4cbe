"""Runs the turns of one session that its owner holds: begins one or takes one up, and lets its loop run to where it
stops. Here the loop, the staged turn and the door to the store are put together; what comes next is the owner's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from actors.lease import Lease
from actors.mailroom import Mailroom, SteerRoom, steer_room
from actors.stage import NOT_STAGED, Addressee
from actors.turn_endings import TurnEndings
from actors.turn_events import ScopedEvents, events_of
from actors.turn_log import Held, OwnedTurnLog
from actors.turn_opening import TurnOpening
from actors.turn_routing import TurnRouting
from actors.turn_start import CLASSIFY, applicant_again, first_call, opening_mail_again
from actors.unanswered import UnansweredTurn
from actors.world import World
from insika.crash_points import CrashPoint
from insika.events import EventType
from insika.messages import NO_USAGE, Usage
from insika.storage.port import NOTHING_OF_THE_LOG, StoreUnavailable
from insika.storage.rows import Loaded, TurnRow
from insika.tools.toolbox import TurnToolbox
from insika.turn.log import Superseded, Suspended
from insika.turn.ports import TurnPorts
from insika.turn.queue_policy import Begin
from insika.turn.run import TurnLoop
from insika.turn.state import TurnState, state_from_log
from insika.turn.times import DetailedTimes, TurnTimes


class TurnRunner:
    """`leaving` tells whether the process is about to end. What runs a turn answers whether the session was let go."""

    def __init__(
        self, lease: Lease, world: World, mailroom: Mailroom, endings: TurnEndings, leaving: Callable[[], bool]
    ) -> None:
        self._lease = lease
        self._world = world
        self._store = world.store
        self._mailroom = mailroom
        self._endings = endings
        self._opening = TurnOpening(lease, world, mailroom, endings)
        self._leaving = leaving
        self._routing = TurnRouting(world)
        self._toolbox: TurnToolbox | None = None
        self._loop: TurnLoop | None = None
        self._turn_log: OwnedTurnLog | None = None
        self._looking = False

    @property
    def in_threads(self) -> bool:
        """A call is in a thread, and cannot be stopped."""
        return self._toolbox is not None and self._toolbox.in_threads > 0

    async def look(self) -> None:
        """Something urgent may lie in the mailbox. While the model talks, and only then, this owner looks at once and
        cuts the request when the turn is meant; at every other moment it looks by itself before its next start."""
        asker, log = self._asker, self._turn_log
        if log is None or not asker.asking or self._looking:
            return
        self._looking = True
        try:
            cut = await log.cut_meanwhile()
        except (StoreUnavailable, Superseded):
            return  # the renewals tell again
        finally:
            self._looking = False
        if cut and asker is self._asker:
            asker.cut()

    @property
    def owed(self) -> Usage:
        """What a turn that did not come to its end may have spent beyond what is booked."""
        return self._asker.owed

    @property
    def _asker(self) -> TurnRouting | TurnLoop:
        return self._loop or self._routing

    async def begin(self, loaded: Loaded, begin: Begin) -> bool:
        opened = await self._opening.open(loaded, begin)
        if opened is None:
            return False
        first, staged = begin.mail[0], opened.staged
        taken = {row.position for row in begin.mail}
        left = replace(loaded, mail=tuple(row for row in loaded.mail if row.position not in taken))
        steers = SteerRoom(first.key, staged.identity.limits.steer_max_messages)
        to = Addressee(first.agent, first.channel, first.recipient)
        times = await self._times_of(first.at, opened.emit)
        log = self._log(left, begin.turn_id, steers, to)
        call, session = first_call(staged), loaded.session
        turn = UnansweredTurn(session, opened.applicant, begin.mail, log, opened.emit, times, staged, call)
        turn.classified = int(call.purpose == CLASSIFY)
        return await self._go(left, turn, state_from_log(begin.turn_id, opened.log, (), (), fresh=False), steers)

    async def resume(self, loaded: Loaded, turn: TurnRow) -> bool:
        await self._world.stage.know(turn.agent, turn.channel)
        try:
            staged = await self._world.stage.resume(loaded.session, turn, loaded.now)
        except NOT_STAGED as error:
            await self._endings.fail_running(loaded, error)
            return False
        emit = self._events(loaded, turn.id, turn.agent)
        emit(EventType.TURN_RESUMED, {"deaths": loaded.session.deaths})
        state = state_from_log(
            turn.id,
            loaded.log,
            loaded.calls,
            loaded.model_calls,
            fresh=False,
            approvals=loaded.approvals,
            now=loaded.now,
            model=turn.model or "",
        )
        state.lost = self._loop.owed if self._loop is not None else NO_USAGE
        to = Addressee(turn.agent, turn.channel, turn.recipient)
        times = await self._times_of(turn.created_at, emit, turn.started_at)
        steers = steer_room(loaded)
        log = self._log(loaded, turn.id, steers, to)
        applicant, opening = applicant_again(loaded, turn), opening_mail_again(loaded, turn)
        unanswered = UnansweredTurn(loaded.session, applicant, opening, log, emit, times, staged, None)
        unanswered.classified = max((row.attempt for row in loaded.model_calls if row.purpose == CLASSIFY), default=0)
        unanswered.unbooked, unanswered.lost = state.unbooked, self._routing.owed
        return await self._go(loaded, unanswered, state, steers)

    def _log(self, loaded: Loaded, turn_id: str, steers: SteerRoom, to: Addressee) -> OwnedTurnLog:
        return OwnedTurnLog(
            self._lease,
            self._world,
            self._mailroom,
            loaded,
            turn_id=turn_id,
            steers=steers,
            address=lambda answer: self._world.stage.deliveries(loaded.session, turn_id, to, answer),
            leaving=self._leaving,
        )

    async def _go(self, loaded: Loaded, turn: UnansweredTurn, state: TurnState, steers: SteerRoom) -> bool:
        """Find out who answers, and let him; `state` is how the turn stood before that."""
        log, depth = turn.log, turn.staged.depth
        self._toolbox, self._loop, self._turn_log = None, None, log
        self._routing = TurnRouting(self._world)
        if await self._routing.route(turn):
            if turn.staged.depth:
                log.hand_to(turn.staged.profile.id)
            if turn.staged.depth > depth:
                steers.left = turn.staged.identity.limits.steer_max_messages
            if turn.opened is not None:
                state.opened(turn.usage)
            if not await self._run(loaded, turn, state):
                return True
        self._toolbox = self._loop = self._turn_log = None
        self._endings.announce(turn.emit, log)
        await self._count(turn)
        if log.released:
            self._world.crash(CrashPoint.RELEASED)
        return log.released

    async def _run(self, loaded: Loaded, turn: UnansweredTurn, state: TurnState) -> bool:
        """False: the session was let go before the turn had ended."""
        world, session, staged, emit = self._world, turn.session, turn.staged, turn.emit
        attempts = world.policies.attempts(staged.profile, session.tenant, turn.turn_id, session.name, emit)
        ports = TurnPorts(
            staged.provider,
            staged.toolbox,
            turn.log,
            emit,
            world.clock,
            world.crash,
            turn.times,
            attempts,
            world.sleep,
            world.outgoing(staged.profile.guards),
        )
        self._toolbox = staged.toolbox
        self._loop = TurnLoop(staged.identity, state, ports)
        try:
            await self._loop.run()
        except Suspended:
            await self._count(turn)
            return False
        except Held:
            # At a boundary nobody has been asked.
            await self._endings.hold(loaded, turn.turn_id, staged.profile.id, NO_USAGE)
            return False
        return True

    async def _count(self, turn: UnansweredTurn) -> None:
        staged = turn.staged
        alone = None if staged.depth else staged.profile.id
        await self._world.tokens.of(turn.session.tenant, turn.turn_id, alone)

    async def _times_of(
        self, arrived_at: datetime, emit: ScopedEvents, started_at: datetime | None = None
    ) -> TurnTimes:
        """Measures the running turn. When it was started is read once more, but only where somebody wants to know:
        the store's own clock has the word on how long its message had waited."""
        world = self._world
        if not world.turn_timing:
            return TurnTimes(world.clock)
        if started_at is None:
            begun = await self._store.load(self._lease.fence, log_after=NOTHING_OF_THE_LOG)
            if begun is None or begun.turn is None or begun.turn.started_at is None:
                raise Superseded
            started_at = begun.turn.started_at
        return DetailedTimes(world.clock, emit, round((started_at - arrived_at).total_seconds() * 1000, 1))

    def _events(self, loaded: Loaded, turn_id: str, agent: str) -> ScopedEvents:
        return events_of(loaded, self._lease.epoch, self._world.events, self._world.clock, turn_id, agent)
