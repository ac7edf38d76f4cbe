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
from actors.mailroom import Mailroom, seen, steer_room
from actors.store_patience import StorePatience
from actors.turn_endings import TurnEndings
from actors.turn_log import HandOver
from actors.turn_runner import TurnRunner
from actors.world import World
from insika.crash_points import CrashPoint
from insika.errors import LeaseLost
from insika.messages import NO_USAGE
from insika.storage.operations import Release
from insika.storage.port import StoreUnavailable
from insika.storage.rows import Loaded, LogEntry, TurnRow
from insika.turn.log import Superseded
from insika.turn.queue_policy import (
    Begin,
    CutRunning,
    GiveUpQueued,
    GiveUpRunning,
    Hold,
    LetGo,
    Move,
    Resume,
    ResumeWaiting,
    SuspendAgain,
    TakeBack,
    WithdrawQueued,
    cuts_of,
    next_move,
)

IN_VAIN_AT_MOST = 5
"""Loads in a row after which nothing had changed. More means that the store refuses for a reason that loading does not
show (a defect, or an answer that no longer fits on the disk): better to let the session go, and its turn fail visibly,
than to ask a model for ever."""


class TaskActor:
    """Owns one session. `leaving` tells whether the process is about to end."""

    def __init__(self, lease: Lease, world: World, leaving: Callable[[], bool]) -> None:
        self._lease = lease
        self._world = world
        self._store = world.store
        self._leaving = leaving
        self._mailroom = Mailroom(lease, world)
        self._endings = TurnEndings(lease, world)
        self._patience = StorePatience(lease, world)
        self._runner = TurnRunner(lease, world, self._mailroom, self._endings, leaving)
        self._log: tuple[LogEntry, ...] = ()
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
            if self._leaving() and not self._runner.in_threads:
                await self._endings.hand_over(self._runner.owed + self._mailroom.owed)
            raise

    async def look(self) -> None:
        """Something urgent may lie in the mailbox."""
        await self._mailroom.look()
        await self._runner.look()

    async def _own(self) -> None:
        in_vain, last = 0, None
        while True:
            try:
                loaded = await self._load()
                stands = _stands(loaded)
                in_vain, last = (in_vain + 1 if stands == last else 0), stands
                if in_vain > IN_VAIN_AT_MOST:
                    self._notes.error("session stuck: its writes keep coming to nothing; letting its lease run out")
                    return
                if await self._move(loaded):
                    return
            except Superseded:
                continue
            except StoreUnavailable as error:
                await self._patience.wait(error, in_vain)
            except LeaseRanOut:
                await self._patience.ask_whose_it_is(in_vain)

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
                return self._let_go(await self._store.release(self._lease.fence, seen(loaded), Release(due_at)))
            case TakeBack() | WithdrawQueued():
                await self._mailroom.settle(loaded, move)
                return False
            case Begin():
                return await self._mailroom.screen(loaded, move) and await self._runner.begin(loaded, move)
            case GiveUpQueued(begin):
                if await self._mailroom.screen(loaded, begin):
                    await self._endings.fail_queued(loaded, seen(loaded), begin, self._endings.lost())
                return False
            case _:
                return await self._go_on(loaded, _running(loaded), move)

    async def _go_on(self, loaded: Loaded, turn: TurnRow, move: Move) -> bool:
        """The same for a session with a turn that runs or waits."""
        match move:
            case CutRunning():
                cuts = cuts_of(loaded.mail, turn.id)
                if len(await self._mailroom.refuse_cuts(loaded, cuts, steer_room(loaded))) == len(cuts):
                    await self._endings.cut(loaded, move, self._runner.owed)
            case Hold():
                await self._endings.hold(loaded, turn.id, turn.agent, self._runner.owed)
                return True
            case GiveUpRunning():
                await self._endings.give_up(loaded)
            case SuspendAgain():
                return self._let_go(await self._store.suspend(self._lease.fence, seen(loaded), turn.id))
            case ResumeWaiting():
                if await self._store.resume_turn(self._lease.fence, seen(loaded), turn.id):
                    self._world.crash(CrashPoint.WAITING_RESUMED)
            case Resume():
                return await self._runner.resume(loaded, turn)
        return False

    def _let_go(self, released: bool) -> bool:
        if released:
            self._world.crash(CrashPoint.RELEASED)
        return released


def _running(loaded: Loaded) -> TurnRow:
    if loaded.turn is None:
        raise LeaseLost("the session names a running turn that the store does not have")
    return loaded.turn


def _stands(loaded: Loaded) -> object:
    """What changes when a write comes to something."""
    session, turn = loaded.session, loaded.turn
    open_mail = tuple(row.position for row in loaded.mail)
    running = (turn.id, turn.state) if turn is not None else None
    return session.mail_seq, session.log_seq, open_mail, running, loaded.calls, loaded.approvals
