"""What becomes of statements and connections when the server goes, comes back, or stops answering."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

from insika.storage.port import StoreBusy, StoreRefused, StoreUnavailable
from insika.storage.postgres.connection import Bounds
from insika.storage.postgres.pool import Pool, Statements
from scripts.private_services.postgres import PostgresServer
from tests.faults.postgres.conftest import LEASE_S

INSERT = "INSERT INTO numbers VALUES (%(n)s) RETURNING n"
INSERT_SLOWLY = "INSERT INTO numbers SELECT %(n)s FROM pg_sleep(0.2) RETURNING n"
RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'INSERT INTO numbers%'"
SLEEPER_CUT = "SELECT bool_or(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'"
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


async def all_at_once(pool: Pool, statement: str = INSERT_SLOWLY) -> list[object]:
    return await asyncio.gather(*(pool.row(statement, {"n": n}) for n in range(4)), return_exceptions=True)


async def until_it_works(pool: Pool) -> None:
    """The pool recovers by itself; a try in between may still fail, but only by saying so."""
    while True:
        try:
            await pool.row(INSERT, {"n": 0})
            return
        except StoreUnavailable:
            await asyncio.sleep(0.05)


async def until_told(url: str, statement: str, wanted: object) -> None:
    """Until an operator who asks that gets this one number."""

    def ask() -> None:
        with psycopg.connect(url, autocommit=True) as operator:
            while operator.execute(statement).fetchone() != (wanted,):
                time.sleep(0.01)

    await asyncio.to_thread(ask)


@contextmanager
def table_locked(url: str) -> Iterator[psycopg.Connection]:
    holder = psycopg.connect(url)
    try:
        holder.execute("LOCK TABLE numbers")
        yield holder
    finally:
        holder.close()


def count(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM numbers").fetchone()
    assert row is not None
    return int(row[0])


async def test_connections_that_broke_while_idle_cost_nobody_a_statement(pool: Pool, server: PostgresServer) -> None:
    assert await all_at_once(pool) == [(0,), (1,), (2,), (3,)]
    await asyncio.to_thread(server.restart)
    assert await all_at_once(pool) == [(0,), (1,), (2,), (3,)]


async def test_a_statement_whose_connection_is_cut_says_that_nobody_knows(pool: Pool, database: str) -> None:
    running = asyncio.create_task(pool.row("SELECT pg_sleep(600)", {}))
    await until_told(database, SLEEPER_CUT, True)
    with pytest.raises(StoreUnavailable):
        await running
    assert await all_at_once(pool) == [(0,), (1,), (2,), (3,)]


async def test_a_killed_server_is_unavailable_and_found_again(
    pool: Pool, server: PostgresServer, database: str
) -> None:
    with table_locked(database):
        running = [asyncio.create_task(pool.row(INSERT, {"n": n})) for n in range(4)]
        await until_told(database, RUNNING, 4)
        await asyncio.to_thread(server.kill)
        assert {type(outcome) for outcome in await asyncio.gather(*running, return_exceptions=True)} == {
            StoreUnavailable
        }
    with pytest.raises(StoreUnavailable):
        await pool.row(INSERT, {"n": 9})
    await asyncio.to_thread(server.start)
    await until_it_works(pool)
    assert await all_at_once(pool) == [(0,), (1,), (2,), (3,)]


async def test_who_asks_while_all_connections_are_in_use_waits_and_then_hears_that_it_was_no_outage(
    database: str,
) -> None:
    pool = Pool(database, replace(Bounds.within(LEASE_S), wait_s=0.1), size=1)
    assert await pool.row(INSERT, {"n": 0}) == (0,)  # its one connection is there
    long = asyncio.create_task(pool.row("SELECT pg_sleep(2)", {}))
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(2)'"
    await until_told(database, sleeping, 1)
    with pytest.raises(StoreBusy, match="in use"):
        await pool.row(INSERT, {"n": 1})
    await long
    assert await pool.row(INSERT, {"n": 2}) == (2,)
    await pool.close()


async def test_a_server_that_answers_nothing_any_more_is_given_up(pool: Pool, server: PostgresServer) -> None:
    assert await all_at_once(pool) == [(0,), (1,), (2,), (3,)]
    server.pause()
    outcomes = await all_at_once(pool, INSERT)
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    assert "no answer within" in str(outcomes[0])
    with pytest.raises(StoreUnavailable):
        await pool.row(INSERT, {"n": 9})
    server.resume()
    await until_it_works(pool)


async def test_a_pool_closes_while_the_server_answers_nothing(server: PostgresServer, database: str) -> None:
    pool = Pool(database, Bounds.within(LEASE_S), size=4)
    await all_at_once(pool)
    server.pause()
    running = asyncio.create_task(pool.row(INSERT, {"n": 9}))
    await asyncio.sleep(0)
    await pool.close()
    with pytest.raises(StoreUnavailable):
        await running
    with pytest.raises(StoreUnavailable, match="closed"):
        await pool.row(INSERT, {"n": 9})


class BlackHole:
    """Passes bytes on between clients and the server until it is told to swallow them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.swallows = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        for line in self._sockets:
            _end(line)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                there = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            self._sockets += [client, there]
            for one, other in ((client, there), (there, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                if not self.swallows.is_set():
                    other.sendall(data)
        except OSError:
            pass
        _end(other)


def _end(line: socket.socket) -> None:
    try:
        line.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended


async def test_a_network_that_swallows_everything_is_noticed(server: PostgresServer, database: str) -> None:
    hole = BlackHole(server.port)
    pool = Pool(database.replace(f":{server.port}/", f":{hole.port}/"), Bounds.within(LEASE_S), size=4)
    assert await all_at_once(pool) == [(0,), (1,), (2,), (3,)]
    hole.swallows.set()
    assert {type(outcome) for outcome in await all_at_once(pool, INSERT)} == {StoreUnavailable}
    hole.swallows.clear()
    await until_it_works(pool)
    await pool.close()
    hole.close()


async def test_a_cancelled_caller_leaves_no_connection_in_the_middle_of_a_statement(database: str) -> None:
    pool = Pool(database, Bounds.within(15), size=1)
    with table_locked(database) as holder:
        caller = asyncio.create_task(pool.row(INSERT, {"n": 7}))
        await until_told(database, RUNNING, 1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        behind = asyncio.create_task(pool.row(INSERT, {"n": 8}))
        await asyncio.sleep(0)
        holder.rollback()
    assert await behind == (8,)
    await pool.close()
    assert count(database) == 2, "what was cancelled was executed: callers must reckon with it"


async def test_a_caller_cancelled_again_and_again_loses_no_connection(database: str) -> None:
    pool = Pool(database, Bounds.within(15), size=2)
    for _ in range(20):
        callers = [asyncio.create_task(pool.row("SELECT pg_sleep(0.01)", {})) for _ in range(6)]
        await asyncio.sleep(0.005)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    assert await pool.row("SELECT 1", {}) == (1,)
    await pool.close()
    await until_told(database, OTHERS, 0)


async def test_a_lock_that_is_not_given_up_is_no_reason_to_wait_for_ever(pool: Pool, database: str) -> None:
    with table_locked(database), pytest.raises(StoreUnavailable, match="55P03"):
        await pool.row(INSERT, {"n": 1})
    assert await pool.row(INSERT, {"n": 1}) == (1,)


async def test_a_statement_that_takes_too_long_is_ended(pool: Pool) -> None:
    with pytest.raises(StoreUnavailable, match="57014"):
        await pool.row("SELECT pg_sleep(600)", {})
    assert await pool.row(INSERT, {"n": 1}) == (1,)


async def test_more_callers_than_connections_wait_their_turn(pool: Pool, database: str) -> None:
    outcomes = await asyncio.gather(*(pool.row(INSERT, {"n": n}) for n in range(200)))
    assert sorted(outcomes) == [(n,) for n in range(200)]
    assert count(database) == 200


async def refusal(pool: Pool) -> str:
    try:
        await pool.row(INSERT, {"n": 2})
    except StoreUnavailable as unavailable:
        return str(unavailable)
    return ""


async def test_a_connection_to_a_server_that_only_reads_is_not_kept(pool: Pool, database: str) -> None:
    """As after a failover, when the server that we know has become a standby."""
    assert await pool.row(INSERT, {"n": 1}) == (1,)
    with psycopg.connect(database, autocommit=True) as operator:
        operator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        operator.execute("SELECT pg_reload_conf()")
    try:
        while "25006" not in await refusal(pool):
            pass  # it has not heard of it yet
        while "session is read-only" not in await refusal(pool):
            pass  # each connection there was is given up when it is found out, until new ones are looked for
    finally:
        with psycopg.connect(database, autocommit=True, options="-c default_transaction_read_only=off") as operator:
            operator.execute("ALTER SYSTEM RESET default_transaction_read_only")
            operator.execute("SELECT pg_reload_conf()")
    await until_it_works(pool)


async def test_a_deadlock_is_a_reason_to_try_again(pool: Pool, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as operator:
        operator.execute("INSERT INTO numbers VALUES (1), (2)")
        operator.execute("ALTER SYSTEM SET deadlock_timeout = '50ms'")
        operator.execute("SELECT pg_reload_conf()")
    update = "UPDATE numbers SET n = n WHERE n = %(n)s"
    both = asyncio.Barrier(2)

    async def cross(first: int, second: int) -> None:
        async def work(run: Statements) -> None:
            await run(update, {"n": first})
            await both.wait()
            await run(update, {"n": second})

        await pool.in_transaction(work)

    outcomes = await asyncio.gather(cross(1, 2), cross(2, 1), return_exceptions=True)
    lost = [outcome for outcome in outcomes if outcome is not None]
    assert len(lost) == 1
    assert isinstance(lost[0], StoreUnavailable)
    assert "40P01" in str(lost[0])


async def test_what_a_transaction_s_work_raises_undoes_it(pool: Pool, database: str) -> None:
    async def work(run: Statements) -> None:
        await run(INSERT, {"n": 1})
        raise LookupError

    with pytest.raises(LookupError):
        await pool.in_transaction(work)
    assert count(database) == 0


async def test_refusals_tell_neither_values_nor_texts(pool: Pool) -> None:
    for statement in (
        "INSERT INTO numbers VALUES (%(said)s) RETURNING n",
        "INSERT INTO numbers SELECT n FROM (VALUES (%(said)s || 'x'), (NULL)) AS v (n) RETURNING n",
        "SELECT %(said)s::json",
        "SELECT no_such_function(%(said)s)",
    ):
        with pytest.raises(StoreRefused) as refused:
            await pool.row(statement, {"said": "my secret is 42"})
        assert "secret" not in str(refused.value)
        assert refused.value.__cause__ is None


async def test_connecting_without_a_password_in_any_message(server: PostgresServer) -> None:
    pool = Pool(f"postgresql://nobody:hush@127.0.0.1:{server.port}/nowhere", Bounds.within(LEASE_S))
    with pytest.raises(StoreUnavailable) as refused:
        await pool.row("SELECT 1", {})
    assert "hush" not in str(refused.value)
    await pool.close()
