"""Runs the turns of one session that its owner holds: begins one or takes one up, and lets its loop run to where it
stops. Here the loop, the staged turn and the door to the store are put together; what comes next is the owner's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from actors.lease import Lease
from actors.mailroom import Mailroom, SteerRoom, steer_room
from actors.stage import Addressee, Staged
from actors.turn_endings import TurnEndings
from actors.turn_events import ScopedEvents, events_of
from actors.turn_log import NOTHING_OF_THE_LOG, Held, OwnedTurnLog
from actors.turn_opening import NOT_STAGED, TurnOpening
from actors.world import World
from insika.crash_points import CrashPoint
from insika.events import EventType
from insika.messages import NO_USAGE, Usage
from insika.storage.port import StoreUnavailable
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
        self._opening = TurnOpening(lease, world, endings)
        self._leaving = leaving
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
        loop, log = self._loop, self._turn_log
        if loop is None or log is None or not loop.asking or self._looking:
            return
        self._looking = True
        try:
            cut = await log.cut_meanwhile()
        except (StoreUnavailable, Superseded):
            return  # the renewals tell again
        finally:
            self._looking = False
        if cut and loop is self._loop:
            loop.cut()

    @property
    def owed(self) -> Usage:
        """What a loop that did not come to its end may have spent."""
        return self._loop.owed if self._loop is not None else NO_USAGE

    async def begin(self, loaded: Loaded, begin: Begin) -> bool:
        opened = await self._opening.open(loaded, begin)
        if opened is None:
            return False
        first, staged = begin.mail[0], opened.staged
        state = state_from_log(begin.turn_id, opened.log, (), (), fresh=True)
        taken = {row.position for row in begin.mail}
        left = replace(loaded, mail=tuple(row for row in loaded.mail if row.position not in taken))
        steers = SteerRoom(first.key, staged.identity.limits.steer_max_messages)
        to = Addressee(first.agent, first.channel, first.recipient)
        times = await self._times_of(first.at, opened.emit)
        return await self._run(left, staged, state, steers, to, opened.emit, times)

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
        state.lost = self.owed
        to = Addressee(turn.agent, turn.channel, turn.recipient)
        times = await self._times_of(turn.created_at, emit, turn.started_at)
        return await self._run(loaded, staged, state, steer_room(loaded), to, emit, times)

    async def _run(  # noqa: PLR0917 - what one turn needs to run
        self,
        loaded: Loaded,
        staged: Staged,
        state: TurnState,
        steers: SteerRoom,
        to: Addressee,
        emit: ScopedEvents,
        times: TurnTimes,
    ) -> bool:
        turn_id = staged.identity.turn_id
        log = OwnedTurnLog(
            self._lease,
            self._world,
            self._mailroom,
            loaded,
            turn_id=turn_id,
            steers=steers,
            address=lambda answer: self._world.stage.deliveries(loaded.session, turn_id, to, answer),
            leaving=self._leaving,
        )
        self._toolbox, self._turn_log = staged.toolbox, log
        world = self._world
        session = loaded.session
        attempts = world.policies.attempts(staged.profile, session.tenant, turn_id, session.name, emit)
        ports = TurnPorts(
            staged.provider, staged.toolbox, log, emit, world.clock, world.crash, times, attempts, world.sleep
        )
        self._loop = TurnLoop(staged.identity, state, ports)
        try:
            await self._loop.run()
        except Suspended:
            await world.tokens.of(session.tenant, turn_id, to.agent)
            return True
        except Held:
            await self._endings.hold(loaded, turn_id, to.agent, NO_USAGE)  # at a boundary nobody has been asked
            return True
        self._toolbox = self._loop = self._turn_log = None
        self._endings.announce(emit, log)
        await world.tokens.of(session.tenant, turn_id, to.agent)
        if log.released:
            self._world.crash(CrashPoint.RELEASED)
        return log.released

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
