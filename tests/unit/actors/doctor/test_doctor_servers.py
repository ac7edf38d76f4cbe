"""What is said of versions, clocks, the database, RabbitMQ's queues and Redis, from what each told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from actors.broker.inspection import BrokerFacts, QueueFacts
from actors.broker.topology import QUEUES
from actors.doctor import clocks, coordination, database, queues
from actors.doctor.finding import Finding, Level
from actors.doctor.versions import POSTGRES, RABBITMQ, new_enough
from insika.coordination.redis.inspection import RedisAway, RedisFacts, RedisRefuses
from insika.storage.inspection import Contents, DeliveryFacts, FileFacts, Inspection, ServerFacts, SessionFacts

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
}
SERVER = ServerFacts(150004, "15.4 (Debian 15.4-1)", "UTF8", True, SETTINGS, 20, 97, 11, 2, 0.0001, 0.0002)
FILE = FileFacts((3, 40, 1), "insika.db", True, True, 10**10)
CONTENTS = Contents(None, (), None, None, 0)
IDLE = SessionFacts(0, 0, 0, 0.0, 0, 0, 0)
NOTHING_DUE = DeliveryFacts(0, 0, 0.0, 0, 0, 0)
READ = QueueFacts(0, 2)
REDIS = RedisFacts("redis:6379/0", "7.0.15", "noeviction", 0, 4, 0.0, 0.001)


def wrong(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """The level and the sentence of all that is not well."""
    return [(finding.level.value, finding.what) for finding in findings if finding.level is not Level.OK]


def test_findings_that_are_not_well_say_what_to_do() -> None:
    broken = replace(SERVER, version_text="14", encoding="LATIN1", writable=False, connections=96, ahead_s=100)
    lax = replace(broken, settings={**SETTINGS, "fsync": "off", "synchronous_commit": "off"})
    findings = [*database.judged(Inspection(lax, ("0001_initial",)), "the database")]
    assert len(wrong(findings)) == 8
    assert [finding for finding in findings if finding.level is not Level.OK and not finding.do] == []


@pytest.mark.parametrize(
    ("found", "oldest", "level"),
    [
        ("15.4 (Debian 15.4-1.pgdg120+1)", POSTGRES, Level.OK),
        ("17beta1", POSTGRES, Level.OK),
        ("14.9", POSTGRES, Level.FAIL),
        ("9.6", POSTGRES, Level.FAIL),
        ("3.10.8", RABBITMQ, Level.OK),
        ("3.9.29", RABBITMQ, Level.FAIL),
        ("4.0.0-rc.1", RABBITMQ, Level.OK),
        ("4", RABBITMQ, Level.OK),
        ("", RABBITMQ, Level.WARN),
        ("unknown", RABBITMQ, Level.WARN),
    ],
)
def test_versions_are_compared_as_numbers(found: str, oldest: tuple[int, ...], level: Level) -> None:
    assert new_enough("server", "It", found, oldest).level is level


@pytest.mark.parametrize(
    ("ahead_s", "doubt_s", "level"),
    [
        (0.0, 0.0, Level.OK),
        (1.9, 0.0, Level.OK),
        (-1.9, 0.0, Level.OK),
        (2.5, 1.0, Level.OK),  # it may be that the answer took its time
        (2.1, 0.0, Level.WARN),
        (-59.0, 0.0, Level.WARN),
        (60.0, 0.0, Level.FAIL),
        (-3600.0, 0.1, Level.FAIL),
    ],
)
def test_a_clock_is_off_by_what_is_certain(ahead_s: float, doubt_s: float, level: Level) -> None:
    assert clocks.compared("the database", ahead_s, doubt_s).level is level


def test_a_clock_that_is_off_says_which_way() -> None:
    assert "is 100 s ahead of this machine's" in clocks.compared("Redis", 100.1, 0.1).what
    assert "is 20 minutes behind this machine's" in clocks.compared("Redis", -1200, 0).what


def of_server(**changes: Any) -> list[tuple[str, str]]:
    return wrong(database.judged(Inspection(replace(SERVER, **changes), contents=CONTENTS), "the database"))


def test_a_sound_server_is_well() -> None:
    assert of_server() == []


@pytest.mark.parametrize(
    ("changes", "level", "says"),
    [
        ({"version_text": "14.11"}, "fail", "PostgreSQL 14.11 is too old"),
        ({"encoding": "SQL_ASCII"}, "fail", "encoded in SQL_ASCII"),
        ({"writable": False}, "fail", "takes no writes"),
        ({"ahead_s": 10.0}, "warn", "10 s ahead"),
        ({"connections": 87}, "warn", "no room for another process"),
        ({"connections": 120}, "warn", "no room for another process"),
        ({"settings": {**SETTINGS, "fsync": "off"}}, "fail", "fsync is off"),
        ({"settings": {**SETTINGS, "full_page_writes": "off"}}, "fail", "full_page_writes is off"),
        ({"settings": {**SETTINGS, "synchronous_commit": "off"}}, "fail", "synchronous_commit is off"),
        (
            {"settings": {**SETTINGS, "synchronous_commit": "local", "synchronous_standby_names": "*"}},
            "warn",
            "a failover can lose",
        ),
    ],
)
def test_what_a_server_lacks_is_named(changes: dict[str, Any], level: str, says: str) -> None:
    ((told, what),) = of_server(**changes)
    assert (told, says in what) == (level, True), what


@pytest.mark.parametrize("commits", ["local", "remote_write", "remote_apply"])
def test_without_a_synchronous_standby_only_off_is_too_little(commits: str) -> None:
    assert of_server(settings={**SETTINGS, "synchronous_commit": commits}) == []


def test_tables_that_are_not_this_version_s_are_told() -> None:
    pending = Inspection(SERVER, ("0001_initial", "0002_more"))
    ((level, what),) = wrong(database.judged(pending, "the database"))
    assert (level, "pending: 0001_initial, 0002_more" in what) == ("fail", True)
    ((level, what),) = wrong(database.judged(Inspection(SERVER, mismatch="it is newer."), "the database"))
    assert (level, what) == ("fail", "the database was migrated by other code: it is newer.")


def test_a_file_is_writable_with_room_on_its_disk() -> None:
    assert wrong(database.judged(Inspection(FILE, contents=CONTENTS), "insika.db")) == []
    for changes, level in (
        ({"writable": False}, "fail"),
        ({"free_bytes": 1000}, "warn"),
        ({"version": (3, 37, 2)}, "fail"),
    ):
        told = wrong(database.judged(Inspection(replace(FILE, **changes), contents=CONTENTS), "insika.db"))  # type: ignore[arg-type]
        assert [one[0] for one in told] == [level]
    ((_, what),) = wrong(database.judged(Inspection(replace(FILE, exists=False), ("0001_initial",)), "insika.db"))
    assert what == "insika.db does not exist yet."


def of_queues(
    work: SessionFacts | None = IDLE, due: DeliveryFacts | None = NOTHING_DUE, /, **changed: QueueFacts | None
) -> list[tuple[str, str]]:
    """`changed`: by the last part of a queue's name."""
    found = {queue.name: changed.get(queue.name.rpartition(".")[2], READ) for queue in QUEUES}
    return wrong(queues.judged(BrokerFacts("rabbit:5672/", "3.10.8", found), work, due))


def test_queues_that_are_read_are_well() -> None:
    assert of_queues() == []
    assert of_queues(turns=QueueFacts(12, 1), sessions=QueueFacts(0, 7), outbox=QueueFacts(0, 1)) == []


@pytest.mark.parametrize("name", ["turns", "sessions", "outbox"])
def test_nobody_reading_is_a_fault_only_where_something_waits(name: str) -> None:
    ((level, what),) = of_queues(**{name: QueueFacts(0, 0)})
    assert (level, what) == ("warn", f"Nobody reads insika.{name}.")
    waiting = QueueFacts(3 if name == "turns" else 0, 0)
    ((level, what),) = of_queues(replace(IDLE, overdue=2), replace(NOTHING_DUE, overdue=2), **{name: waiting})
    assert (level, what.startswith(f"Nobody reads insika.{name}, and ")) == ("fail", True)


def test_hints_that_nobody_reads_are_no_fault_by_themselves() -> None:
    """They expire, and say nothing that is not in the database."""
    assert [level for level, _ in of_queues(sessions=QueueFacts(500, 0))] == ["warn"]
    assert [level for level, _ in of_queues(None, None, sessions=QueueFacts(0, 0), outbox=QueueFacts(5, 0))] == [
        "warn",
        "warn",
    ]


def test_workers_without_a_free_slot_do_not_read() -> None:
    ((level, what),) = of_queues(replace(IDLE, owned=200), sessions=QueueFacts(9, 0))
    assert (level, "no worker has a free slot" in what) == ("warn", True)


def test_one_worker_has_nobody_to_take_over() -> None:
    ((level, what),) = of_queues(sessions=QueueFacts(0, 1))
    assert (level, what) == ("warn", "insika.sessions is read by one worker.")


def test_a_long_line_of_jobs_and_dead_letters_are_told() -> None:
    assert [level for level, _ in of_queues(turns=QueueFacts(1001, 1))] == ["warn"]
    assert [level for level, _ in of_queues(dead=QueueFacts(1, 1))] == ["warn"]
    assert [level for level, _ in of_queues(dead=QueueFacts(1, 0))] == ["fail"]


def test_queues_that_are_missing_or_different_are_told() -> None:
    everything = {queue.name: None for queue in QUEUES}
    ((level, what),) = wrong(queues.judged(BrokerFacts("rabbit:5672/", "3.10.8", everything), IDLE, NOTHING_DUE))
    assert (level, what.startswith("There are no queues yet")) == ("warn", True)
    ((level, what),) = of_queues(dead=None)
    assert (level, what) == ("fail", "insika.turns.dead is missing.")
    for exchange, says in ((None, "the exchange insika is missing."), ("another type", "The exchange insika is not")):
        broker = BrokerFacts("rabbit:5672/", "3.10.8", {queue.name: READ for queue in QUEUES}, exchange)
        ((level, what),) = wrong(queues.judged(broker, IDLE, NOTHING_DUE))
        assert (level, what.startswith(says)) == ("fail", True)
    different = QueueFacts(0, 1, "the queue insika.turns exists with another x-queue-type")
    ((level, what),) = of_queues(turns=different)
    assert (level, "is not as this version declares it" in what) == ("fail", True)


@pytest.mark.parametrize(
    ("changes", "levels"),
    [
        ({}, []),
        ({"eviction": None, "memory_max": None, "listeners": None}, []),
        ({"eviction": "volatile-lru"}, []),
        ({"eviction": "allkeys-lru"}, ["warn"]),
        ({"version": "6.2.14"}, ["fail"]),
        ({"ahead_s": 90.0}, ["fail"]),
    ],
)
def test_redis_is_judged_by_what_it_tells(changes: dict[str, Any], levels: list[str]) -> None:
    assert [level for level, _ in wrong(coordination.judged(replace(REDIS, **changes)))] == levels


def test_redis_away_is_a_warning_and_a_wrong_password_a_fault() -> None:
    assert coordination.away(RedisAway("redis:6379/0: Redis cannot be reached")).level is Level.WARN
    assert coordination.refused(RedisRefuses("redis:6379/0: Redis refuses")).level is Level.FAIL
