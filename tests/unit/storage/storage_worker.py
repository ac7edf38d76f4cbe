"""One of several processes that own sessions on one file. It dies, or sleeps past its lease, where its dice say so.

Usage: storage_worker.py PATH SEED. Ends with 0 when nothing is left to do. On its output: for each message that it
could write, the session, the epoch of its own claim, and the message's place in the conversation.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import sys
import time

from insika.clock import NEVER, SystemClock
from insika.storage.rows import CallState, Verdict
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import Owner, World, done

LEASE_S = 0.15


class Worker:
    def __init__(self, store: SqliteStore, seed: int) -> None:
        self.store = store
        self.dice = random.Random(seed)
        self.world = World(store, None, None)  # type: ignore[arg-type]

    async def work(self) -> None:
        while True:
            ids = await self.store.database.read(self.left)
            if not ids:
                return
            claim = await self.store.claim(self.dice.choice(ids), LEASE_S)
            if claim is not None:
                owner = Owner(self.world, claim)
                while await self.step(owner):
                    self.misfortune()

    @staticmethod
    def left(connection: sqlite3.Connection) -> list[int]:
        return [
            row[0] for row in connection.execute("SELECT id FROM sessions WHERE waiting > 0 OR turn_id IS NOT NULL")
        ]

    def misfortune(self) -> None:
        fate = self.dice.random()
        if fate < 0.02:
            os._exit(9)
        if fate < 0.08:
            time.sleep(2 * LEASE_S)  # and go on as if nothing had happened

    @staticmethod
    def wrote(owner: Owner, log_seq: int | None) -> None:
        if log_seq is not None:
            print(owner.fence.session_id, owner.claim.epoch, log_seq, flush=True)

    async def step(self, owner: Owner) -> bool:
        """False: the session was let go, or is lost. An answer of nothing means looking again."""
        if await self.store.load(owner.fence) is None:
            return False
        try:
            await owner.look()
        except AssertionError:
            return False
        self.misfortune()
        session = owner.loaded.session
        if session.turn_id is None:
            mail = owner.loaded.mail
            if not mail:
                return not await owner.release()
            fresh = {"turn_id": f"steer {session.id}.{mail[0].position}", "positions": (mail[0].position,)}
            late = mail[0].verdict is Verdict.STEERED
            opening = owner.opening(**(fresh if late else {}))
            begun = await self.store.start(owner.fence, owner.seen, opening)
            self.wrote(owner, None if begun is None else begun.log_seq)
            return True
        await self.go_on(owner)
        return True

    async def go_on(self, owner: Owner) -> None:
        step = max(call.step for call in owner.loaded.model_calls)
        calls = [call for call in owner.loaded.calls if call.step == step]
        if not calls and step <= 2:
            self.wrote(owner, await owner.append(*(f"{step}.{n}" for n in range(step)), step=step))
        elif not calls:
            await owner.commit(step, release_due=NEVER)
        elif (first := next((call for call in calls if call.state is CallState.ANNOUNCED), None)) is not None:
            if (await owner.start_call(first.index, step)).moved:
                self.misfortune()
                await owner.finish_call(done(first.index, first.call_id), step)
        else:
            steers = [row.position for row in owner.loaded.mail if row.turn_id == owner.turn_id]
            results = (done(call.index, call.call_id, state=CallState.UNKNOWN) for call in calls)
            boundary = owner.boundary(*results, step=step, absorbed=owner.absorbing(*steers))
            self.wrote(owner, await self.store.cross_boundary(owner.fence, owner.seen, boundary))


async def main(path: str, seed: int) -> None:
    store = SqliteStore.open(path, SystemClock().now)
    await Worker(store, seed).work()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
