"""Runs the sessions of one process: a bounded number at once, each by an actor that holds its lease.

A wake is only taken when a slot is free, and nothing but a claim decides who owns a session. A session that has been
killing its owners is a suspect: one of them at a time runs here, so that it cannot take the others along again.
"""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections import deque
from collections.abc import Callable

import structlog

from actors.lease import LeaseKeeper
from actors.task_actor import TaskActor
from actors.world import World
from insika.crash_points import CrashPoint
from insika.storage.port import StoreUnavailable
from insika.storage.rows import Claim

SUSPECT_DEATHS = 2
LOOP_TICKS_PER_LEASE = 4
CLAIM_TRIES = 100
"""How often a claim is made that gets no answer. The store has its own patience with each."""
CLAIM_PAUSE_S = 0.3


class Runtime:
    """`slots`: sessions at once, from 1. `room` is told False when the last slot is taken, and True when one is free
    again: whoever brings wakes from elsewhere leaves them there meanwhile."""

    def __init__(
        self, world: World, keeper: LeaseKeeper, slots: int, room: Callable[[bool], None] = lambda free: None
    ) -> None:
        self._room = room
        self._had_room = True
        self._world = world
        self._keeper = keeper
        self._slots = slots
        self._waiting: deque[int] = deque()
        self._queued: set[int] = set()
        self._again: set[int] = set()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._claiming: dict[int, asyncio.Future[None]] = {}
        self._actors: dict[int, TaskActor] = {}
        self._looks: set[asyncio.Task[None]] = set()
        self._suspect: int | None = None
        self._turned_away: dict[int, None] = {}
        self._leaving = False
        self._ticker: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("insika.runtime")

    @property
    def free(self) -> int:
        """Slots that nothing runs in or waits for."""
        return 0 if self._leaving else max(0, self._slots - len(self._running) - len(self._waiting))

    @property
    def busy(self) -> bool:
        return bool(self._running or self._waiting)

    def start(self) -> None:
        self._keeper.start()
        self._ticker = asyncio.create_task(self._tick())

    def wake(self, session_id: int) -> None:
        """There may be work in this session. Called from the loop's thread."""
        if self._leaving or session_id in self._queued:
            return
        if session_id in self._running:
            # Its owner sees new mail before it lets go; but it may have let go just now.
            self._again.add(session_id)
            return
        self._queued.add(session_id)
        self._waiting.append(session_id)
        self._fill()

    async def take(self, session_id: int) -> bool:
        """A wake that came from elsewhere: returns when it is decided who has the session, so that whoever brought it
        may forget it. False: there is no free slot here, and nothing was done."""
        if self.free == 0 and session_id not in self._running:
            return False
        self.wake(session_id)
        if (claiming := self._claiming.get(session_id)) is not None:
            await asyncio.shield(claiming)
        return True

    def signal(self, session_id: int) -> None:
        """Something urgent may lie in the mailbox of a session that runs here. Called from the loop's thread."""
        if (actor := self._actors.get(session_id)) is not None:
            look = asyncio.create_task(actor.look())
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)

    async def idle(self) -> None:
        """Returns when nothing runs and nothing waits here."""
        while self._running:
            await asyncio.wait(self._running.values())
            await asyncio.sleep(0)

    async def drain(self, drain_s: float) -> None:
        """Take nothing more; let turns come to a boundary within `drain_s` seconds, then hand the rest over."""
        self._leaving = True
        self._waiting.clear()
        self._queued.clear()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=drain_s)
        late = dict(self._running)
        for session_id, task in late.items():
            # A claim that was sent cannot be taken back; what it grants is handed over at once.
            if session_id not in self._claiming:
                task.cancel()
        if late:
            await asyncio.wait(late.values())
        await self._stop()

    async def abandon(self) -> None:
        """Cut everything and hand over nothing: the leases run out, and each counts a death."""
        self._slots = 0  # what the news of an end would wake has nowhere to run
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._stop()

    async def _stop(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        await asyncio.to_thread(self._keeper.stop)

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._slots:
            session_id = self._waiting.popleft()
            self._queued.discard(session_id)
            self._claiming[session_id] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._own(session_id))
            self._running[session_id] = task
            task.add_done_callback(functools.partial(self._ended, session_id))
        self._tell_room()

    def _tell_room(self) -> None:
        room = len(self._running) < self._slots
        if room != self._had_room:
            self._had_room = room
            self._room(room)

    def _ended(self, session_id: int, task: asyncio.Task[None]) -> None:
        del self._running[session_id]
        self._decided(session_id)  # a task that was cancelled before it began has decided nothing
        if self._suspect == session_id:
            self._no_suspect()
        if not task.cancelled() and (error := task.exception()) is not None:
            # The lease is left to run out: a death is counted, and at the third the turn fails where all can see it.
            self._log.error("actor died", session_id=session_id, exc_info=error)
        if session_id in self._again:
            self._again.discard(session_id)
            self.wake(session_id)
        self._fill()

    async def _own(self, session_id: int) -> None:
        try:
            claim, sent_at = await self._claim(session_id)
        finally:
            self._decided(session_id)
        if claim is None:
            return
        lease = self._keeper.hold(claim, sent_at)
        try:
            self._world.crash(CrashPoint.CLAIMED)
            actor = self._actors[session_id] = TaskActor(lease, self._world, lambda: self._leaving)
            await actor.run()
        finally:
            self._actors.pop(session_id, None)
            self._keeper.drop(lease)

    def _decided(self, session_id: int) -> None:
        claiming = self._claiming.pop(session_id, None)
        if claiming is not None and not claiming.done():
            claiming.set_result(None)

    async def _claim(self, session_id: int) -> tuple[Claim | None, float]:
        may_take_suspect = self._suspect is None
        if may_take_suspect:
            self._suspect = session_id  # until the claim says otherwise
        claim, sent_at = await self._ask_for(session_id, may_take_suspect)
        if may_take_suspect and (claim is None or claim.deaths < SUSPECT_DEATHS):
            self._no_suspect()
        if claim is None and not may_take_suspect:
            self._turned_away[session_id] = None  # perhaps because it is one
            if self._suspect is None:
                self._no_suspect()
        return claim, sent_at

    async def _ask_for(self, session_id: int, take_suspects: bool) -> tuple[Claim | None, float]:
        """Until the store answers: the claim may have been granted, and then nobody else would come for the session
        before its lease has run out, and would take its owner for dead."""
        lease_id = uuid.uuid4().hex
        for _ in range(CLAIM_TRIES):
            sent_at = self._world.clock.monotonic()
            try:
                claim = await self._world.store.claim(
                    session_id,
                    self._keeper.lease_s,
                    take_expired=not self._keeper.outage.just_over,
                    take_suspects=take_suspects,
                    lease_id=lease_id,
                )
            except StoreUnavailable as error:
                self._keeper.outage.noticed(error)
                self._log.warning("session not claimed", session_id=session_id, reason=error.message)
            else:
                return claim, sent_at
            if self._leaving:
                break
            await asyncio.sleep(CLAIM_PAUSE_S)
        return None, 0.0

    def _no_suspect(self) -> None:
        """The place is free: whoever was turned away may try again, one at a time."""
        self._suspect = None
        if self._turned_away:
            session_id = next(iter(self._turned_away))
            del self._turned_away[session_id]
            self.wake(session_id)

    async def _tick(self) -> None:
        while True:
            self._keeper.loop_ticked()
            await asyncio.sleep(self._keeper.lease_s / LOOP_TICKS_PER_LEASE)
