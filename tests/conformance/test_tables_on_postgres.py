"""What PostgreSQL's tables refuse, whoever asks; the same as SQLite's do."""

from __future__ import annotations

import pytest

from insika.storage.port import StoreRefused
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.store import PostgresStore
from tests.store_world import World
from tests.table_guards import ALLOWED, ONE_OF_EACH, REFUSED, in_dialect

_DIALECT = {"now": "'epoch'", "yes": "true"}


@pytest.fixture
async def tables(postgres_world: World) -> Pool:
    store = postgres_world.store
    assert isinstance(store, PostgresStore)
    for statement in in_dialect(ONE_OF_EACH, **_DIALECT).split(";\n"):
        await store.database.rows(statement, {})
    return store.database


@pytest.mark.parametrize("what", REFUSED)
async def test_postgres_refuses(tables: Pool, what: str) -> None:
    with pytest.raises(StoreRefused, match=r"\b23[0-9]{3}\b"):
        await tables.rows(in_dialect(REFUSED[what], **_DIALECT), {})


@pytest.mark.parametrize("what", ALLOWED)
async def test_postgres_allows(tables: Pool, what: str) -> None:
    assert await tables.rows(f"{in_dialect(ALLOWED[what], **_DIALECT)} RETURNING 1", {}) == [(1,)]
