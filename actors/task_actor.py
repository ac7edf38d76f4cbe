"""The owner of one session, from the claim of its lease to the release.

It loads, lets the queue policy say what comes next, does that, and loads again until there is nothing to do. It keeps
no truth of its own: whenever a write comes to nothing, or its outcome cannot be known, it throws its memory away and
loads with the lease it holds. Who must never be stopped half-way is the store, not the actor: it may die anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog
import uuid_utils

from actors.lease import Lease, LeaseRanOut
from actors.stage import Addressee, Staged
from actors.turn_endings import TurnEndings
from actors.turn_events import Scope, ScopedEvents
from actors.turn_log import HandOver, OwnedTurnLog, seen
from actors.world import World
from insika.crash_points import CrashPoint
from insika.errors import InvalidConfiguration, LeaseLost, ProviderFatal, UnknownAgent
from insika.events import EventType
from insika.messages import NO_USAGE, Usage, user
from insika.storage.operations import ModelCallKey, Release, StartTurn
from insika.storage.port import StoreUnavailable
from insika.storage.rows import Loaded, LogEntry
from insika.tools.toolbox import TurnToolbox
from insika.turn.history import load_from
from insika.turn.log import Superseded
from insika.turn.ports import TurnPorts
from insika.turn.queue_policy import (
    Begin,
    CutRunning,
    GiveUpQueued,
    GiveUpRunning,
    LetGo,
    Resume,
    WithdrawQueued,
    cuts_of,
    next_move,
)
from insika.turn.run import TurnLoop
from insika.turn.state import TurnState, state_from_log

IN_VAIN_AT_MOST = 5
"""Loads in a row after which nothing had changed. More means that the store refuses for a reason that loading does not
show (a defect, or an answer that no longer fits on the disk): better to let the session go, and its turn fail visibly,
than to ask a model for ever."""

STORE_PAUSE_S = 0.2
"""Between two tries at a store that does not answer."""

OUTAGE_LEASES = 20
"""Leases for which an owner waits for a store that does not answer, before it lets its session go."""


NOTHING_OF_THE_LOG = 2**62
"""A sequence number behind every message."""

_NOT_STAGED = (UnknownAgent, InvalidConfiguration, ProviderFatal)
"""Why a turn cannot be run here, and will not be by trying again."""


class TaskActor:
    """Owns one session. `leaving` tells whether the process is about to end."""

    def __init__(self, lease: Lease, world: World, leaving: Callable[[], bool]) -> None:
        self._lease = lease
        self._world = world
        self._store = world.store
        self._leaving = leaving
        self._endings = TurnEndings(lease, world)
        self._log: tuple[LogEntry, ...] = ()
        self._toolbox: TurnToolbox | None = None
        self._loop: TurnLoop | None = None
        self._turn_id = ""
        self._looking = False
        self._notes = structlog.get_logger("insika.sessions").bind(session_id=lease.fence.session_id)

    async def run(self) -> None:
        """Returns when the session is released or lost. Cancelled at the end of a drain: hands the session over."""
        try:
            await self._own()
        except HandOver:
            await self._endings.hand_over(NO_USAGE)  # at a boundary nobody has been asked
        except LeaseLost as lost:
            self._notes.warning("session lost", reason=lost.message)
        except asyncio.CancelledError:
            # Only a drain hands over. Anything else that ends the loop is a death, and must be counted as one. And a
            # call in a thread cannot be stopped: whoever took the session now might run beside it.
            if self._leaving() and (self._toolbox is None or not self._toolbox.in_threads):
                await self._endings.hand_over(self._owed)
            raise

    async def look(self) -> None:
        """Something urgent may lie in the mailbox. While the model talks, and only then, this owner looks at once and
        cuts the request when the turn is meant; at every other moment it looks by itself before its next start."""
        loop, turn_id = self._loop, self._turn_id
        if loop is None or not loop.asking or self._looking:
            return
        self._looking = True
        try:
            loaded = await self._store.load(self._lease.fence, log_after=NOTHING_OF_THE_LOG)
        except StoreUnavailable:
            return  # the renewals tell again
        finally:
            self._looking = False
        if loop is self._loop and (loaded is None or cuts_of(loaded.mail, turn_id)):
            loop.cut()

    @property
    def _owed(self) -> Usage:
        """What a loop that did not come to its end may have spent."""
        return self._loop.owed if self._loop is not None else NO_USAGE

    async def _own(self) -> None:
        in_vain, last = 0, None
        while True:
            try:
                loaded = await self._load()
                stands = (loaded.session.mail_seq, loaded.session.log_seq, loaded.session.turn_id, loaded.calls)
                in_vain, last = (in_vain + 1 if stands == last else 0), stands
                if in_vain > IN_VAIN_AT_MOST:
                    self._notes.error("session stuck: its writes keep coming to nothing; letting its lease run out")
                    return
                if await self._move(loaded):
                    return
            except Superseded:
                continue
            except StoreUnavailable as error:
                await self._wait_for_the_store(error, in_vain)
            except LeaseRanOut:
                await self._ask_whose_it_is(in_vain)

    async def _ask_whose_it_is(self, in_vain: int) -> None:
        """After a pause of this process, or an outage that has just ended, nobody may have come for the session yet."""
        try:
            await self._still_ours()
        except StoreUnavailable as error:
            await self._wait_for_the_store(error, in_vain)

    async def _wait_for_the_store(self, error: StoreUnavailable, in_vain: int) -> None:
        """Until it takes writes again, and longer each time that it did so in vain. A store that can only be read
        would have this owner do again, and again, what it could not write.

        An outage may outlast the lease. That alone is no death: while nobody could renew, nobody took what ran out."""
        gives_up_at = self._world.clock.monotonic() + OUTAGE_LEASES * self._lease.length_s
        while self._world.clock.monotonic() < gives_up_at:
            self._notes.warning("store unavailable", reason=error.message)
            await asyncio.sleep(STORE_PAUSE_S * 2**in_vain)
            try:
                await self._still_ours()
                return
            except StoreUnavailable as again:
                error = again
        raise LeaseLost("the store has not answered for so long that this session is left to others")

    async def _still_ours(self) -> None:
        """Returns when the session is ours and the lease good: one that ran out is good again by its next renewal.
        Raises LeaseLost when another worker has the session, or when no renewal succeeds within a lease."""
        until = self._world.clock.monotonic() + self._lease.length_s
        while True:
            if not await self._store.confirm(self._lease.fence):
                raise LeaseLost("another worker has taken this session")
            if self._lease.good:
                return
            if self._world.clock.monotonic() >= until:
                raise LeaseLost("the lease was not renewed in time; another worker may have this session")
            await asyncio.sleep(STORE_PAUSE_S)

    async def _load(self) -> Loaded:
        known = self._log[-1].seq if self._log else 0
        loaded = await self._store.load(self._lease.fence, log_after=known)
        if loaded is None:
            raise LeaseLost("another worker has taken this session")
        self._world.crash(CrashPoint.LOADED)
        # A start whose outcome was not known may have moved the window.
        self._log = tuple(entry for entry in (*self._log, *loaded.log) if entry.seq >= loaded.session.load_from)
        return replace(loaded, log=self._log)

    async def _move(self, loaded: Loaded) -> bool:
        """Do what comes next. True: the session is released."""
        if self._leaving():
            raise HandOver
        move = next_move(loaded, lambda: str(uuid_utils.uuid7()))
        match move:
            case LetGo(due_at):
                released = await self._store.release(self._lease.fence, seen(loaded), Release(due_at))
                if released:
                    self._world.crash(CrashPoint.RELEASED)
                return released
            case Begin():
                return await self._begin(loaded, move)
            case Resume():
                return await self._resume(loaded)
            case CutRunning():
                await self._endings.cut(loaded, move, self._owed)
            case GiveUpRunning():
                await self._endings.give_up(loaded)
            case WithdrawQueued():
                await self._endings.withdraw(loaded, seen(loaded), move)
            case GiveUpQueued(begin):
                await self._endings.fail_queued(loaded, seen(loaded), begin, self._endings.lost())
        return False

    async def _begin(self, loaded: Loaded, begin: Begin) -> bool:
        first = begin.mail[0]
        await self._world.stage.know(first.agent, first.channel)
        try:
            staged = self._world.stage.begin(loaded.session, begin.turn_id, first.agent)
        except _NOT_STAGED as error:
            await self._endings.fail_queued(loaded, seen(loaded), begin, error)
            return False
        moved = load_from(loaded.log, [row.text for row in begin.mail], staged.identity.limits.context_budget)
        seq = await self._store.start(self._lease.fence, seen(loaded), _start(begin, staged, moved))
        if seq is None:
            raise Superseded
        self._world.crash(CrashPoint.TURN_STARTED)
        if moved is not None:
            self._log = tuple(entry for entry in self._log if entry.seq >= moved)
        emit = self._events(loaded, begin.turn_id, first.agent, 1)
        _tell_start(emit, begin, staged)
        opening = _opening(begin, seq, self._lease.epoch)
        state = state_from_log(begin.turn_id, (*self._log, *opening), (), (), fresh=True)
        taken = {row.position for row in begin.mail}
        left = replace(loaded, mail=tuple(row for row in loaded.mail if row.position not in taken))
        return await self._run(left, staged, state, Addressee(first.agent, first.channel, first.recipient), emit)

    async def _resume(self, loaded: Loaded) -> bool:
        turn = loaded.turn
        if turn is None:
            raise LeaseLost("the session names a running turn that the store does not have")
        await self._world.stage.know(turn.agent, turn.channel)
        try:
            staged = await self._world.stage.resume(loaded.session, turn)
        except _NOT_STAGED as error:
            await self._endings.fail_running(loaded, error)
            return False
        emit = self._events(loaded, turn.id, turn.agent, turn.attempt)
        emit(EventType.TURN_RESUMED, {"deaths": loaded.session.deaths})
        state = state_from_log(turn.id, loaded.log, loaded.calls, loaded.model_calls, fresh=False)
        state.lost = self._owed
        return await self._run(loaded, staged, state, Addressee(turn.agent, turn.channel, turn.recipient), emit)

    async def _run(self, loaded: Loaded, staged: Staged, state: TurnState, to: Addressee, emit: ScopedEvents) -> bool:
        turn_id = staged.identity.turn_id
        log = OwnedTurnLog(
            self._store,
            self._lease,
            loaded,
            turn_id=turn_id,
            address=lambda answer: self._world.stage.deliveries(loaded.session, turn_id, to, answer),
            leaving=self._leaving,
        )
        self._toolbox, self._turn_id = staged.toolbox, turn_id
        ports = TurnPorts(staged.provider, staged.toolbox, log, emit, self._world.clock, self._world.crash)
        self._loop = TurnLoop(staged.identity, state, ports)
        await self._loop.run()
        self._toolbox = self._loop = None
        self._endings.announce(emit, log)
        if log.released:
            self._world.crash(CrashPoint.RELEASED)
        return log.released

    def _events(self, loaded: Loaded, turn_id: str, agent: str, attempt: int) -> ScopedEvents:
        session = loaded.session
        scope = Scope(session.name, session.tenant, self._lease.epoch, turn_id, agent, attempt)
        return ScopedEvents(self._world.events, self._world.clock, scope)


def _start(begin: Begin, staged: Staged, moved: int | None) -> StartTurn:
    """Who answers, where to, and who may join: from the message that opens the turn."""
    first = begin.mail[0]
    return StartTurn(
        begin.turn_id,
        tuple(row.position for row in begin.mail),
        first.agent,
        first.channel,
        first.recipient,
        first.origin,
        staged.revision,
        staged.limits,
        ModelCallKey(1, 1, "answer", staged.identity.model),
        first.key if staged.identity.limits.steer_max_messages > 0 else None,
        begin.merging,
        load_from=moved,
    )


def _opening(begin: Begin, last_seq: int, epoch: int) -> tuple[LogEntry, ...]:
    """The turn's first messages, as the start has just written them; `last_seq` is the last one's."""
    first_seq = last_seq - len(begin.mail) + 1
    return tuple(
        LogEntry(first_seq + place, begin.turn_id, epoch, 0, user(row.text), row.position)
        for place, row in enumerate(begin.mail)
    )


def _tell_start(emit: ScopedEvents, begin: Begin, staged: Staged) -> None:
    if begin.steers_released:
        emit(EventType.TURN_STEER_RELEASED, {"released_as": begin.turn_id, "count": len(begin.mail)})
    elif len(begin.mail) > 1:
        emit(EventType.TURN_COALESCED, {"merged": len(begin.mail) - 1, "arrivals": len(begin.mail)})
    emit(EventType.TURN_STARTED, {"revision": staged.revision})
