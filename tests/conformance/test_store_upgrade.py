"""A database of before, with a turn in the midst of its batch: after the migration it is loaded, and goes on."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from insika.clock import ManualClock
from insika.messages import NOTHING_VERBATIM, Role, ToolCall, Usage
from insika.storage.migrate import Migration, available
from insika.storage.operations import CommitTurn, CrossBoundary, Fence, ModelCallKey, Seen, SettledModelCall
from insika.storage.port import Store
from insika.storage.postgres.schema import migrate as migrate_postgres
from insika.storage.postgres.store import PostgresStore
from insika.storage.rows import CallState, Committed, Spend
from insika.storage.sqlite.schema import migrate as migrate_sqlite
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import LEASE_S, assert_valid_conversation, done
from tests.table_guards import in_dialect

BEFORE = """
INSERT INTO sessions (tenant, name, epoch, due_at, mail_seq, log_seq, open_calls, turn_id) VALUES
  ('acme', 's', 1, $now, 2, 4, 2, 'running'), ('', 'other', 0, $now, 0, 0, 0, NULL);
INSERT INTO turns (id, session_id, position, state, agent, origin, profile_revision, limits, route, created_at,
  started_at, ended_at) VALUES
  ('ended', 1, 1, 'completed', 'shop', 'customer', 'r', '{}', 'old', $now, $now, $now),
  ('running', 1, 2, 'running', 'shop', 'customer', 'r', '{"max_tool_calls":5}', NULL, $now, $now, NULL);
INSERT INTO mailbox (session_id, position, job_id, mode, text, at, verdict, turn_id, agent, origin, ended, consumed_by)
VALUES (1, 1, 'i', 'followup', 'hello', $now, 'accepted', 'ended', 'shop', 'customer', 'turn', 'ended'),
  (1, 2, 'j', 'followup', 'and?', $now, 'accepted', 'running', 'shop', 'customer', 'turn', 'running');
INSERT INTO tool_calls (turn_id, step, idx, session_id, call_id, name, arguments, side_effect, state, result,
  announced_at) VALUES ('running', 1, 0, 1, 'a', 'look_up', '{"n":1}', $yes, 'done', 'found', $now),
  ('running', 1, 1, 1, 'b', 'look_up', '{}', $yes, 'announced', NULL, $now);
INSERT INTO messages (session_id, seq, turn_id, epoch, step, role, content, tool_calls, batch_open, position, at) VALUES
  (1, 1, 'ended', 1, 0, 'user', 'hello', NULL, 0, 1, $now),
  (1, 2, 'ended', 1, 1, 'assistant', 'hi', NULL, 0, NULL, $now),
  (1, 3, 'running', 1, 0, 'user', 'and?', NULL, 0, 2, $now),
  (1, 4, 'running', 1, 1, 'assistant', 'let me see',
   '[{"id":"a","name":"look_up","arguments":{"n":1}},{"id":"b","name":"look_up","arguments":{}}]', 2, NULL, $now);
INSERT INTO model_calls (turn_id, step, attempt, purpose, session_id, agent, model, state, started_at, settled_at,
  input) VALUES ('ended', 1, 1, 'answer', 1, 'shop', 'offline/demo', 'estimated', $now, $now, 5),
  ('running', 1, 1, 'answer', 1, 'shop', 'offline/demo', 'measured', $now, $now, 7);
"""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def of_before(dialect: str) -> tuple[Migration, ...]:
    return available(dialect)[:2]


@asynccontextmanager
async def sqlite_store(folder: Path) -> AsyncIterator[Store]:
    path, now = folder / "insika.db", ManualClock().now
    migrate_sqlite(path, now, migrations=of_before("sqlite"))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(in_dialect(BEFORE, now="0", yes="1"))
    connection.close()
    migrate_sqlite(path, now)
    store = SqliteStore.open(path, now)
    yield store
    await store.close()


@asynccontextmanager
async def postgres_store(url: str) -> AsyncIterator[Store]:
    migrate_postgres(url, migrations=of_before("postgres"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(in_dialect(BEFORE, now="'epoch'", yes="true").encode())
    migrate_postgres(url)
    store = PostgresStore.open(url, lease_s=LEASE_S)
    yield store
    await store.close()


@pytest.fixture(params=["postgres", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    on_postgres = request.param == "postgres"
    url = request.getfixturevalue("fresh_postgres_url") if on_postgres else ""
    async with postgres_store(url) if on_postgres else sqlite_store(tmp_path) as opened:
        yield opened


async def test_a_batch_that_was_open_is_loaded_and_its_turn_goes_on(store: Store) -> None:
    claim = await store.claim(1, LEASE_S)
    assert claim is not None
    fence = Fence(1, claim.lease_id)
    loaded = await store.load(fence)
    assert loaded is not None
    assert loaded.turn is not None
    assert (loaded.turn.model, loaded.turn.depth, loaded.turn.routes) == (None, 0, ())
    assert [call.state for call in loaded.calls] == [CallState.DONE, CallState.ANNOUNCED]
    assert [entry.message.verbatim for entry in loaded.log] == [NOTHING_VERBATIM] * 4
    assert loaded.log[-1].message.tool_calls == (ToolCall("a", "look_up", {"n": 1}), ToolCall("b", "look_up"))
    seen, key = Seen(2, 0), ModelCallKey(2, 1, "answer", "offline/demo")
    boundary = CrossBoundary("running", 1, (done(0, "a"), done(1, "b")), key)
    assert await store.cross_boundary(fence, seen, boundary) == 6
    answer = CommitTurn("running", 2, "there", "completed", (), model_call=SettledModelCall(key, Usage(1)))
    assert await store.commit(fence, seen, answer) == Committed(released=False)
    log = await store.messages(1)
    assert_valid_conversation(log)
    assert [entry.message.content for entry in log if entry.message.role is Role.TOOL] == ["found", "ok"]
    turns = {turn.id: turn for turn in await store.turns(1)}
    assert (turns["ended"].route, turns["running"].model) == ("old", "offline/demo")


async def test_what_was_spent_before_counts_for_its_tenant(store: Store) -> None:
    for added in (2, 0):
        assert await store.spend("acme", "shop", EPOCH, EPOCH) == Spend(12, 12)
        assert await store.spend("", "shop", EPOCH, EPOCH) == Spend()
        assert await store.roll_up_spend(datetime(2040, 1, 1, tzinfo=UTC)) == added
    assert await store.spend("acme", "shop", EPOCH, EPOCH) == Spend(12, 12)
