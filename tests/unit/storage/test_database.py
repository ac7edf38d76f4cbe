"""The writer thread: group commit, isolation of operations, failures, and two processes on one file."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from insika.clock import ManualClock
from insika.storage.port import StoreRefused, StoreUnavailable
from insika.storage.sqlite.database import Database
from insika.storage.sqlite.group import Undo, commit_group
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.times import to_micros

CLOCK = ManualClock()
Operation = Callable[[sqlite3.Connection], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    migrate(tmp_path / "insika.db", CLOCK.now)
    return tmp_path / "insika.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = Database.open(path, CLOCK.now, busy_timeout_s=0.2)
    yield opened
    opened.close()


def keep(name: str) -> Operation:
    def insert(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO sessions (name) VALUES (?)", (name,))
        return name

    return insert


def names(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM sessions ORDER BY id")]


def hold(entered: threading.Event, release: threading.Event) -> Operation:
    """Keeps the writer busy, so that what is asked for meanwhile gathers into one group."""

    def wait(_: sqlite3.Connection) -> None:
        entered.set()
        assert release.wait(10)

    return wait


class Gathered:
    """The writer is held until the block ends; everything asked for inside it goes as one group."""

    def __init__(self, database: Database) -> None:
        self._entered, self._release = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=database.write_sync, args=(hold(self._entered, self._release),))

    async def __aenter__(self) -> None:
        self._thread.start()
        await asyncio.to_thread(self._entered.wait)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)  # let the tasks that were made get as far as the queue
        self._release.set()
        self._thread.join()


async def test_a_write_is_answered_and_a_read_after_it_sees_it(database: Database) -> None:
    for n in range(50):
        assert await database.write(keep(f"s{n}")) == f"s{n}"
        assert (await database.read(names))[-1] == f"s{n}"


async def test_writes_are_applied_in_the_order_in_which_they_were_asked_for(database: Database) -> None:
    await asyncio.gather(*(database.write(keep(f"s{n}")) for n in range(500)))
    assert await database.read(names) == [f"s{n}" for n in range(500)]


async def test_what_gathers_while_a_group_commits_goes_as_one(database: Database) -> None:
    commits: list[str] = []
    async with Gathered(database):
        traced = asyncio.create_task(database.write(lambda connection: connection.set_trace_callback(commits.append)))
        tasks = [asyncio.create_task(database.write(keep(f"s{n}"))) for n in range(100)]
    await asyncio.gather(traced, *tasks)
    assert [statement for statement in commits if statement.startswith("COMMIT")] == ["COMMIT"]


async def test_an_operation_that_raises_undoes_only_itself_and_tells_only_its_caller(database: Database) -> None:
    def broken(connection: sqlite3.Connection) -> None:
        keep("broken")(connection)
        raise KeyError("mine")

    async with Gathered(database):
        tasks = [asyncio.create_task(database.write(operation)) for operation in (keep("a"), broken, keep("b"))]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[0] == "a"
    assert isinstance(outcomes[1], KeyError)
    assert outcomes[2] == "b"
    assert await database.read(names) == ["a", "b"]


async def test_an_operation_may_undo_itself_and_still_answer(database: Database) -> None:
    def changes_its_mind(connection: sqlite3.Connection) -> None:
        keep("gone")(connection)
        raise Undo("never mind")

    assert await database.write(changes_its_mind) == "never mind"
    assert await database.read(names) == []


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_no_exception_of_an_operation_ends_the_writer(database: Database, error: BaseException) -> None:
    def broken(_: sqlite3.Connection) -> None:
        raise error

    with pytest.raises((RuntimeError, type(error))):
        database.write_sync(broken)
    with pytest.raises((RuntimeError, type(error))):
        database.read_sync(broken)
    assert database.write_sync(keep("a")) == "a"


async def test_a_constraint_that_stops_a_write_is_no_error_of_sqlite(database: Database) -> None:
    await database.write(keep("a"))
    with pytest.raises(StoreRefused, match="UNIQUE"):
        await database.write(keep("a"))
    with pytest.raises(StoreRefused, match="no such table"):
        await database.write(lambda connection: connection.execute("SELECT * FROM elsewhere"))
    with pytest.raises(StoreUnavailable, match="readonly"):
        await database.read(keep("reader"))
    assert await database.read(names) == ["a"]


async def test_a_commit_that_fails_reaches_everyone_and_leaves_nothing(database: Database) -> None:
    def orphan(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA defer_foreign_keys = ON")  # found out only at COMMIT
        connection.execute("INSERT INTO job_ids VALUES (999, 'j', 0, 'd', 0, 1, 't')")

    async with Gathered(database):
        tasks = [asyncio.create_task(database.write(operation)) for operation in (keep("a"), orphan, keep("b"))]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert await database.read(names) == []
    assert await database.write(keep("after")) == "after"


async def test_a_full_disk_reaches_everyone_and_the_writer_goes_on(database: Database) -> None:
    def limit(pages: int) -> Operation:
        return lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    def large(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO rejected_jobs (at, source, raw, error) VALUES (0, 's', zeroblob(4000000), '{}')"
        )

    await database.write(keep("before"))
    await database.write(limit(1))  # SQLite takes the present size when that is more
    async with Gathered(database):
        tasks = [asyncio.create_task(database.write(operation)) for operation in (keep("a"), large)]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[1], StoreUnavailable)
    assert "full" in str(outcomes[1])
    kept = ["before", "a"] if outcomes[0] == "a" else ["before"]
    assert await database.read(names) == kept
    await database.write(limit(1_000_000))
    await database.write(large)


def test_when_sqlite_gives_up_the_transaction_nobody_is_told_that_he_wrote(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)

    def given_up(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")  # what SQLite does by itself on some I/O errors
        raise sqlite3.OperationalError("disk I/O error")

    outcomes = commit_group(connection, [keep("a"), given_up, keep("b")], 1.0)
    assert [type(outcome.error) for outcome in outcomes] == [StoreUnavailable] * 3
    assert names(connection) == []
    connection.close()


async def test_a_caller_that_is_cancelled_breaks_nothing(database: Database) -> None:
    async with Gathered(database):
        tasks = [asyncio.create_task(database.write(keep(f"s{n}"))) for n in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[3].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [outcomes[0], outcomes[2]] == ["s0", "s2"]
    assert await database.write(keep("after")) == "after"


def test_a_loop_that_was_closed_meanwhile_breaks_nothing(database: Database) -> None:
    entered, release = threading.Event(), threading.Event()

    async def ask_and_leave() -> None:
        tasks.append(asyncio.create_task(database.write(hold(entered, release))))
        tasks.append(asyncio.create_task(database.write(keep("a"))))
        await asyncio.to_thread(entered.wait)

    tasks: list[asyncio.Task[Any]] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ask_and_leave())
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    release.set()
    assert database.write_sync(keep("b")) == "b"


async def test_several_loops_and_threads_write_side_by_side(database: Database) -> None:
    def in_a_loop_of_its_own(k: int) -> None:
        async def many() -> None:
            await asyncio.gather(*(database.write(keep(f"{k}.{n}")) for n in range(20)))

        asyncio.run(many())

    def without_a_loop(k: int) -> None:
        for n in range(20):
            assert database.write_sync(keep(f"{k}.{n}")) == f"{k}.{n}"

    await asyncio.gather(
        *(asyncio.to_thread(in_a_loop_of_its_own, k) for k in range(3)),
        *(asyncio.to_thread(without_a_loop, k) for k in range(3, 6)),
    )
    assert len(await database.read(names)) == 120


async def test_a_long_read_holds_up_no_write_and_sees_one_instant(database: Database) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
        before = names(connection)
        reading.set()
        assert go_on.wait(10)
        return before, names(connection)

    await database.write(keep("a"))
    listing = asyncio.create_task(database.read(slow))
    await asyncio.to_thread(reading.wait)
    await database.write(keep("b"))
    assert await database.read(names) == ["a", "b"]
    go_on.set()
    assert await listing == (["a"], ["a"])


async def test_closing_finishes_what_is_queued_and_takes_no_more(path: Path) -> None:
    database = Database.open(path, CLOCK.now)
    async with Gathered(database):
        tasks = [asyncio.create_task(database.write(keep(f"s{n}"))) for n in range(10)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(database.close))
        await asyncio.sleep(0)
    assert await asyncio.gather(*tasks) == [f"s{n}" for n in range(10)]
    await closing
    database.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await database.write(keep("late"))
    with pytest.raises(StoreUnavailable, match="closed"):
        database.read_sync(names)


async def test_statements_take_their_time_from_the_given_clock(database: Database) -> None:
    def now(connection: sqlite3.Connection) -> int:
        (micros,) = connection.execute("SELECT insika_now()").fetchone()
        return int(micros)

    assert await database.write(now) == await database.read(now) == to_micros(CLOCK.now())
    CLOCK.advance(1.5)
    assert await database.write(now) == await database.read(now) == to_micros(CLOCK.now())


async def test_a_lock_that_is_never_given_back_makes_the_store_unavailable(database: Database, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await database.write(keep("a"))
    other.execute("ROLLBACK")
    other.close()
    assert await database.write(keep("b")) == "b"


WRITER = """
    import sys
    from insika.clock import SystemClock
    from insika.storage.sqlite.database import Database

    database = Database.open(sys.argv[1], SystemClock().now, busy_timeout_s=30)
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(150):
        database.write_sync(lambda connection: connection.execute(
            "INSERT INTO sessions (name) SELECT ? || count(*) FROM sessions", (sys.argv[2] + " saw ",)))
    database.close()
"""


def test_two_processes_write_to_one_file_and_each_sees_all_of_the_other(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    for writer in writers:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.close()
        writer.stdout.close()
    connection = sqlite3.connect(path)
    seen = [int(name.split(" saw ")[1]) for name in names(connection)]
    connection.close()
    assert seen == list(range(300))
