"""What a diagnosis finds in a database, on both stores: the same rows, the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from insika.clock import ManualClock
from insika.storage.inspection import Contents, FileFacts, Inspection, ServerFacts
from insika.storage.postgres import inspection as postgres
from insika.storage.postgres.schema import migrate as migrate_postgres
from insika.storage.rows import ApprovalDecision
from insika.storage.sqlite import inspection as sqlite
from insika.storage.sqlite.schema import migrate
from tests.outbox_world import OutboxWorld
from tests.store_world import ESTIMATE, LEASE_S, World

LATE_S = 60.0
MIGRATIONS = ("0001_initial", "0002_control", "0003_models_and_limits")

Look = Callable[[ManualClock], Inspection]


@pytest.fixture
def look(request: pytest.FixtureRequest, tmp_path: Path) -> Look:
    """The inspection of the database that the test's world or outbox is in."""
    store = request.node.callspec.params.get("world") or request.node.callspec.params["outbox"]
    if store == "postgres":
        url = request.getfixturevalue("migrated_postgres_url")
        return lambda clock: postgres.inspect(url, clock.now, late_s=LATE_S, answer_s=5)
    return lambda clock: sqlite.inspect(tmp_path / "insika.db", clock.now, late_s=LATE_S, answer_s=5)


def contents(found: Inspection) -> Contents:
    assert (found.pending, found.mismatch) == ((), "")
    assert found.contents is not None
    return found.contents


def sessions(found: Inspection) -> tuple[int, ...]:
    facts = contents(found).sessions
    assert facts is not None
    return (facts.owned, facts.expired, facts.overdue, facts.suspects, facts.held, facts.waiting)


def overdue_s(found: Inspection) -> float:
    facts = contents(found).sessions
    assert facts is not None
    return round(facts.overdue_s, 3)


async def test_nothing_is_nothing(world: World, look: Look) -> None:
    found = look(world.clock)
    assert sessions(found) == (0, 0, 0, 0, 0, 0)
    assert contents(found).settings is None
    assert contents(found).profiles == ()
    assert contents(found).rejected == 0


async def test_a_session_is_overdue_a_while_after_the_last_that_happened_to_it(world: World, look: Look) -> None:
    await world.say("one")
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 0, 1)
    world.clock.advance(LATE_S)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 0, 1)
    world.clock.advance(1)
    assert sessions(look(world.clock)) == (0, 0, 1, 0, 0, 1)
    assert overdue_s(look(world.clock)) == LATE_S + 1
    await world.say("two")
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 0, 2)


async def test_what_is_not_due_yet_and_what_is_held_are_not_overdue(world: World, look: Look) -> None:
    await world.say(session="later", mode="collect", debounce_ms=1_000_000, debounce_max_ms=1_000_000)
    await world.say(session="held")
    await world.store.set_paused("held", True)
    world.clock.advance(LATE_S + 1)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 1, 2)


async def test_a_held_turn_is_held_and_neither_overdue_nor_given_up(world: World, look: Look) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await world.store.set_paused("s", True)
    world.clock.advance(LEASE_S + LATE_S + 1)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 1, 0)
    assert await world.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)
    world.clock.advance(LATE_S + 1)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 1, 0)


async def test_a_request_to_a_held_session_must_be_settled_in_time(world: World, look: Look) -> None:
    said = await world.say(job_id="one")
    await world.store.set_paused("s", True)
    world.clock.advance(LATE_S + 1)
    await world.store.withdraw("s", "one", request_id="r")
    assert sessions(look(world.clock))[2:5] == (0, 0, 1)
    world.clock.advance(LATE_S + 1)
    assert sessions(look(world.clock))[2:5] == (1, 0, 1)
    await world.own(said.session_id)
    world.clock.advance(LEASE_S + LATE_S + 1)
    assert sessions(look(world.clock))[1] == 1


async def test_a_turn_that_waits_for_a_person_is_overdue_a_while_after_the_decision(world: World, look: Look) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await owner.look()
    await owner.ask("a", valid_s=1_000_000)
    assert await owner.suspend()
    world.clock.advance(LATE_S + 1)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 0, 0)
    await world.store.decide(owner.approval("a").id, ApprovalDecision.APPROVED, by="ops")
    world.clock.advance(LATE_S)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 0, 0)
    world.clock.advance(1)
    assert sessions(look(world.clock)) == (0, 0, 1, 0, 0, 0)
    assert overdue_s(look(world.clock)) == LATE_S + 1


async def test_an_owned_session_is_at_work_until_its_lease_is_long_over(world: World, look: Look) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert sessions(look(world.clock)) == (1, 0, 0, 0, 0, 0)
    world.clock.advance(LEASE_S + LATE_S)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 0, 0)
    world.clock.advance(1)
    assert sessions(look(world.clock)) == (0, 1, 0, 0, 0, 0)


async def test_a_turn_that_was_handed_over_counts_from_then(world: World, look: Look) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    world.clock.advance(LEASE_S)
    assert await world.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)
    world.clock.advance(LATE_S)
    assert sessions(look(world.clock)) == (0, 0, 0, 0, 0, 0)
    world.clock.advance(1)
    assert sessions(look(world.clock)) == (0, 0, 1, 0, 0, 0)


async def test_a_session_that_outlived_two_owners_is_a_suspect(world: World, look: Look) -> None:
    said = await world.say()
    await world.own(said.session_id)
    await world.take_over(said.session_id)
    assert sessions(look(world.clock))[3] == 0
    owner = await world.take_over(said.session_id)
    assert sessions(look(world.clock))[3] == 1
    await owner.start()
    assert sessions(look(world.clock))[3] == 0


async def test_jobs_that_were_handed_in_again_are_settled(world: World, look: Look) -> None:
    first = await world.store.reject(b"{", {"type": "invalid_job", "message": "?"}, "amqp")
    await world.store.reject(b"[", {"type": "invalid_job", "message": "?"}, "amqp")
    assert contents(look(world.clock)).rejected == 2
    await world.store.mark_requeued(first)
    assert contents(look(world.clock)).rejected == 1


async def test_what_is_in_force_is_told_as_it_is(world: World, look: Look) -> None:
    for revision, name in (("r1", "shop"), ("r2", "shop"), ("r3", "help")):
        await world.store.apply_profile(name, revision, {"id": name, "n": revision}, "operator")
    await world.store.apply_settings("s1", {"queue": {}}, "operator")
    found = contents(look(world.clock))
    assert [(row.name, row.revision, row.data["n"]) for row in found.profiles] == [
        ("help", "r3", "r3"),
        ("shop", "r2", "r2"),
    ]
    assert found.settings is not None
    assert found.settings.data == {"queue": {}}


def deliveries(found: Inspection) -> tuple[int, ...]:
    facts = contents(found).deliveries
    assert facts is not None
    return (facts.pending, facts.overdue, facts.abandoned, facts.failed, facts.uncertain)


async def test_deliveries_are_counted_by_how_they_are(outbox: OutboxWorld, look: Look) -> None:
    assert deliveries(look(outbox.clock)) == (0, 0, 0, 0, 0)
    await outbox.add("d1")
    outbox.clock.advance(LATE_S)
    assert deliveries(look(outbox.clock)) == (1, 0, 0, 0, 0)
    outbox.clock.advance(1)
    assert deliveries(look(outbox.clock)) == (1, 1, 0, 0, 0)
    facts = contents(look(outbox.clock)).deliveries
    assert facts is not None
    assert facts.overdue_s == LATE_S + 1
    claimed = await outbox.store.claim(10)
    assert claimed is not None
    assert deliveries(look(outbox.clock)) == (0, 0, 0, 0, 0)
    outbox.clock.advance(15 + 10 + LATE_S + 1)
    assert deliveries(look(outbox.clock)) == (0, 0, 1, 0, 0)
    await outbox.store.sweep_expired()
    assert deliveries(look(outbox.clock)) == (0, 0, 0, 0, 1)
    await outbox.add("d2", state="failed")
    assert deliveries(look(outbox.clock)) == (0, 0, 0, 1, 1)


async def test_a_server_tells_of_itself(postgres_world: World, migrated_postgres_url: str) -> None:
    clock = postgres_world.clock
    found = postgres.inspect(migrated_postgres_url, clock.now, late_s=LATE_S, answer_s=5)
    server = found.place
    assert isinstance(server, ServerFacts)
    assert server.version >= 150_000
    assert (server.encoding, server.writable) == ("UTF8", True)
    assert set(server.settings) == {"fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names"}
    assert 0 < server.connections <= server.connections_max
    assert abs(server.ahead_s) <= server.doubt_s + 1e-3

    clock_of_this_machine = ManualClock(clock.now())
    clock.jump(300)
    server = postgres.inspect(migrated_postgres_url, clock_of_this_machine.now, late_s=LATE_S, answer_s=5).place
    assert isinstance(server, ServerFacts)
    assert round(server.ahead_s) == 300


async def test_workers_are_known_by_their_renewals(postgres_world: World, migrated_postgres_url: str) -> None:
    def renewals() -> int:
        server = postgres.inspect(migrated_postgres_url, postgres_world.clock.now, late_s=LATE_S, answer_s=5).place
        assert isinstance(server, ServerFacts)
        return server.renewals

    owner = await postgres_world.own((await postgres_world.say()).session_id)
    assert renewals() == 0
    renewal = postgres_world.store.renewal()
    renewal.renew([owner.fence], LEASE_S)
    assert renewals() == 1
    renewal.close()


def test_a_database_that_is_empty_or_of_other_code_is_told_without_its_contents(fresh_postgres_url: str) -> None:
    def found() -> Inspection:
        return postgres.inspect(fresh_postgres_url, ManualClock().now, late_s=LATE_S, answer_s=5)

    assert (found().pending, found().mismatch, found().contents) == (MIGRATIONS, "", None)
    migrate_postgres(fresh_postgres_url)
    assert found().contents is not None
    with psycopg.connect(fresh_postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE schema_migrations SET checksum = 'other'")
    assert "was edited after it was applied" in found().mismatch
    assert found().contents is None


def test_a_database_that_only_reads_still_tells_of_itself(fresh_postgres_url: str) -> None:
    with psycopg.connect(fresh_postgres_url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(database))
    server = postgres.inspect(fresh_postgres_url, ManualClock().now, late_s=LATE_S, answer_s=5).place
    assert isinstance(server, ServerFacts)
    assert server.writable is False


def test_a_file_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    path, clock = tmp_path / "insika.db", ManualClock()
    found = sqlite.inspect(path, clock.now, late_s=LATE_S, answer_s=5)
    assert isinstance(found.place, FileFacts)
    assert (found.place.exists, found.place.writable, found.pending) == (False, True, MIGRATIONS)
    assert not path.exists()
    migrate(path, clock.now)
    found = sqlite.inspect(path, clock.now, late_s=LATE_S, answer_s=5)
    assert isinstance(found.place, FileFacts)
    assert found.place.exists is True
    assert found.place.free_bytes > 0
    assert replace(found.place, exists=False).version >= (3, 38, 0)
