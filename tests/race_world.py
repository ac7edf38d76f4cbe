"""Two connections that meet in the middle of a statement, on PostgreSQL.

One store's statement has run and is not committed, or stands still at a lock; then the other's begins. Under read
committed that one sees all tables as they were when it began, but for the rows it waited for. Each race is run twice:
with the statement as it is, and with one rule taken out of it, to see that the race can be lost at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import psycopg
import pytest
from psycopg import AsyncConnection

from insika.storage.postgres.connection import Bounds, adapt, parameters
from insika.storage.postgres.errors import as_store_error
from insika.storage.postgres.pool import Pool, Row
from insika.storage.postgres.queries import sql
from insika.storage.postgres.store import PostgresStore
from insika.storage.rows import Verdict
from outbox.postgres_store import PostgresOutboxStore
from outbox.statements import statements
from tests.store_world import LEASE_S, Owner, World, done

T = TypeVar("T")
S = TypeVar("S")
Altered = Mapping[str, str]
"""Statements as they are, and what is run in their stead."""

AS_IT_IS: Altered = {}
_BOUNDS = Bounds(lock_s=60, statement_s=60, answer_s=60, connect_s=10, wait_s=60)
"""Far away: a busy machine must not end what is being held."""
_WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def naive(name: str, *changes: tuple[str, str]) -> Altered:
    """The store's statement of this name, with these texts replaced."""
    return _changed(sql(name), changes)


def naive_outbox(name: str, *changes: tuple[str, str]) -> Altered:
    return _changed(statements("postgres")[name], changes)


def _changed(statement: str, changes: tuple[tuple[str, str], ...]) -> Altered:
    altered = statement
    for old, new in changes:
        assert old in altered, f"the statement has no {old!r} any more: what is the naive one now?"
        altered = altered.replace(old, new)
    return {statement: altered}


def variants(altered: Altered) -> pytest.MarkDecorator:
    """The statement as it is, and as it loses."""
    return pytest.mark.parametrize(
        ("statement", "lost"), [(AS_IT_IS, False), (altered, True)], ids=["as it is", "naive"]
    )


class AlteredPool(Pool):
    """Runs some statements otherwise than they are written."""

    def __init__(self, url: str, altered: Altered, options: str = "") -> None:
        super().__init__(f"{url}?options={options}" if options else url, _BOUNDS, application_name="altered")
        self._altered = altered

    async def rows(self, statement: str, params: Mapping[str, Any]) -> list[Row]:
        return await super().rows(self._altered.get(statement, statement), params)


class PausingPool(Pool):
    """Does something else after a statement has answered, and before its caller hears of it."""

    def __init__(self, url: str, after: str, do: Callable[[], Awaitable[None]]) -> None:
        super().__init__(url, _BOUNDS, application_name="pausing")
        self._after = after
        self._do = do

    async def rows(self, statement: str, params: Mapping[str, Any]) -> list[Row]:
        rows = await super().rows(statement, params)
        if statement == self._after:
            await self._do()
        return rows


class Held:
    """A store, and an outbox, all of whose statements are one transaction that stays open until it is let go."""

    def __init__(self, url: str, connection: AsyncConnection[Row]) -> None:
        self._connection = connection
        pool = cast(Pool, self)  # in what its stores ask of it
        self.store = PostgresStore(pool, url, LEASE_S)
        self.outbox = PostgresOutboxStore(pool)

    async def row(self, statement: str, params: Mapping[str, Any]) -> Row | None:
        rows = await self.rows(statement, params)
        return rows[0] if rows else None

    async def rows(self, statement: str, params: Mapping[str, Any]) -> list[Row]:
        try:
            return await (await self._connection.execute(statement, params)).fetchall()
        except psycopg.Error as error:
            raise as_store_error(error) from None

    async def run(self, statement: str) -> None:
        await self._connection.execute(statement)

    async def let_go(self) -> None:
        await self._connection.commit()

    async def take_back(self) -> None:
        """As if nothing had been done."""
        await self._connection.rollback()


class Race:
    """`world` is for what happens before and after."""

    def __init__(self, url: str, world: World) -> None:
        self.url = url
        self.world = world
        self._pools: list[Pool] = []

    def pool(self, altered: Altered = AS_IT_IS, options: str = "") -> Pool:
        pool = AlteredPool(self.url, altered, options)
        self._pools.append(pool)
        return pool

    def store(self, altered: Altered = AS_IT_IS, options: str = "") -> PostgresStore:
        return PostgresStore(self.pool(altered, options), self.url, LEASE_S)

    def outbox(self, altered: Altered = AS_IT_IS) -> PostgresOutboxStore:
        return PostgresOutboxStore(self.pool(altered))

    def outbox_that_pauses(self, after: str, do: Callable[[], Awaitable[None]]) -> PostgresOutboxStore:
        """After its statement of that name it lets `do` happen."""
        pool = PausingPool(self.url, statements("postgres")[after], do)
        self._pools.append(pool)
        return PostgresOutboxStore(pool)

    def outbox_behind_a_gate(self) -> PostgresOutboxStore:
        """Its statements stand still where they ask for the time, for as long as the gate is held."""
        return PostgresOutboxStore(self.pool(options="-c%20insika.gate%3D1"))

    async def close(self) -> None:
        for pool in self._pools:
            await pool.close()

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[Held]:
        connection = await AsyncConnection.connect(**parameters(self.url, _BOUNDS, "held"))
        adapt(connection)
        try:
            yield Held(self.url, connection)
        finally:
            await connection.close()

    async def overlap(self, first: Callable[[Held], Awaitable[T]], second: Awaitable[S]) -> tuple[T, S]:
        """`first` has done all its work and holds what it locked; `second` begins, and waits if it must; then `first`
        is committed. Answers what each answered."""
        async with self.holding() as held:
            answer = await first(held)
            task = asyncio.ensure_future(second)
            await self.waits(task)
            await held.let_go()
            return answer, await task

    async def takeover_of_what_stands_still(self, *, at: str, write: Awaitable[T], owner: Owner) -> tuple[T, Owner]:
        """`write` begins and stands still at the rows that `at` locks; then another claims the session and loads it,
        as soon as it can; then `write` goes on. Answers what it answered, and the new owner."""
        async with self.holding() as held:
            await held.run(at)
            writing = asyncio.ensure_future(write)
            assert await self.waits(writing), "it does not come to that lock"
            taking = asyncio.ensure_future(self.world.own(owner.fence.session_id))
            await self.waits(taking, others=1)
            await held.let_go()
            return await writing, await taking

    async def waits(self, task: asyncio.Future[Any], others: int = 0) -> bool:
        """Until the task's statement waits for a lock (beside `others` that do already): True. False: it has ended."""
        async with await AsyncConnection.connect(self.url, autocommit=True) as observer:
            while not task.done():
                row = await (await observer.execute(_WAITING)).fetchone()
                if row is not None and row[0] > others:
                    return True
                await asyncio.sleep(0.002)
        return False

    # --- places to begin at

    async def waiting(self, **values: Any) -> Owner:
        """An owner who has seen one message that waits."""
        return await self.world.own((await self.world.say("one", **values)).session_id)

    async def running(self) -> Owner:
        owner = await self.waiting()
        await owner.start()
        return owner

    async def call_started(self) -> Owner:
        owner = await self.running()
        await owner.append("a")
        await owner.start_call()
        return await owner.look()

    async def call_done(self) -> Owner:
        owner = await self.call_started()
        await owner.finish_call(done(0, "a"))
        return await owner.look()

    async def idle(self) -> Owner:
        owner = await self.running()
        await owner.commit(deliveries=())
        return await owner.look()

    # --- what must hold afterwards

    async def waiting_is_counted(self) -> bool:
        session = await self.world.session()
        mail = await self.world.store.mail(session.id)
        return session.waiting == sum(row.ended is None for row in mail if row.verdict is not Verdict.CONTROL)

    async def stranded(self) -> bool:
        """Something waits, nobody owns the session, and it is never due."""
        rows = await self.world.peek(
            "SELECT 1 AS one FROM sessions AS s WHERE lease_id IS NULL AND due_at = 'infinity' AND EXISTS "
            "(SELECT FROM mailbox AS m WHERE m.session_id = s.id AND m.ended IS NULL)"
        )
        return bool(rows)
