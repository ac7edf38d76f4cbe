"""How many statements a turn takes on PostgreSQL, and that the driver remembers how to read each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from insika.clock import NEVER
from insika.storage.postgres.connection import Bounds
from insika.storage.postgres.pool import Pool, Row
from insika.storage.postgres.queries import sql
from insika.storage.postgres.store import PostgresStore
from insika.storage.rows import Committed
from tests.store_world import LEASE_S, World, delivery, done

TURN = (
    *("intake/accept", "ownership/claim", "ownership/load", "turns/start", "turns/append", "turns/start_call"),
    *("turns/finish_call", "turns/cross_boundary", "endings/commit"),
)

REMEMBERED_BYTES, REMEMBERED_VALUES = 4096, 50
"""psycopg 3 parses the text of a longer statement, or of one with more values, anew each time."""


class CountingPool(Pool):
    def __init__(self, url: str) -> None:
        super().__init__(url, Bounds.within(LEASE_S))
        self.ran: Counter[str] = Counter()
        self.named = 0

    async def rows(self, statement: str, params: Mapping[str, Any]) -> list[Row]:
        self.ran[statement] += 1
        self.named = max(self.named, sum(f"%({name})s" in statement for name in params))
        return await super().rows(statement, params)


@pytest.fixture
async def pool(migrated_postgres_url: str) -> AsyncIterator[CountingPool]:
    pool = CountingPool(migrated_postgres_url)
    yield pool
    await pool.close()


async def test_a_turn_with_one_tool_takes_nine_statements(postgres_world: World, pool: CountingPool) -> None:
    store = PostgresStore(pool, "", LEASE_S)
    world = World(store, postgres_world.clock, postgres_world.peek)
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a")
    await owner.start_call()
    await owner.finish_call(done(0, "a"))
    await owner.cross(done(0, "a"))
    assert await owner.commit(2, release_due=NEVER) == Committed(released=True)
    pool.ran[sql("ownership/load")] = 1  # these tests look again after each step, an owner does not
    assert pool.ran == Counter(dict.fromkeys(map(sql, TURN), 1))
    assert pool.named <= REMEMBERED_VALUES


@pytest.mark.parametrize("name", TURN)
def test_the_driver_reads_the_text_of_a_turn_s_statements_once(name: str) -> None:
    assert len(sql(name).encode()) <= REMEMBERED_BYTES


async def test_the_parts_of_an_answer_are_listed_in_their_order(postgres_world: World) -> None:
    """Lists go by the ids, and the clock may stand still within a statement."""
    owner = await postgres_world.own((await postgres_world.say()).session_id)
    await owner.start()
    await owner.commit(deliveries=tuple(delivery("lane", f"part {n}") for n in range(12)))
    ids = [row["id"] for row in await postgres_world.deliveries()]
    assert ids == sorted(ids)
