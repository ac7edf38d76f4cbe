"""`insika doctor` over real services: what is well, what is wrong, and that it ends and tells no secret."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from actors.broker.preflight import require_broker
from actors.environment import QueueType
from insika.storage.postgres.schema import migrate
from tests.amqp_wire import channel, declare
from tests.command_line import SECRET, SIGTERM, Folder, Result, folder, wait_for

AGENT = "id: shop\nmodel: offline/demo\n"
TOOLS = '''
from insika.tools import tool


@tool
def order_lookup(order_id: str) -> str:
    """Look up an order."""
    return "on its way"
'''
SETTINGS = {"channels": [{"id": "web", "url": "http://127.0.0.1:9/", "secret": SECRET}]}


@pytest.fixture
def empty(tmp_path: Path, fresh_postgres_url: str, clean_amqp_url: str, redis_url: str) -> Iterator[Folder]:
    """Services with nothing in them, and an environment that names them."""
    variables = {
        "INSIKA_DATABASE_URL": fresh_postgres_url,
        "INSIKA_AMQP_URL": clean_amqp_url,
        "INSIKA_REDIS_URL": redis_url,
        "INSIKA_TOOLS": "shop_tools.py",
        "INSIKA_EGRESS_ALLOW_HTTP": "true",
        "INSIKA_EGRESS_ALLOW_PRIVATE": "true",
    }
    with folder(tmp_path, **variables) as made:
        made.write("shop_tools.py", TOOLS)
        yield made


@pytest.fixture
def ready(empty: Folder) -> Folder:
    """As before the first process is started, when nothing was forgotten."""
    migrate(empty.environment["INSIKA_DATABASE_URL"])
    empty.must("agents", "apply", str(empty.write("shop.yaml", AGENT)))
    empty.must("settings", "apply", str(empty.write("settings.json", json.dumps(SETTINGS))))
    return empty


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Folder]:
    with folder(tmp_path) as made:
        yield made


def examined(place: Folder, code: int = 0) -> list[dict[str, Any]]:
    """All findings."""
    done = place.insika("doctor", "--json")
    assert (done.code, done.err) == (code, ""), done
    told = done.json
    levels = [finding["level"] for finding in told["findings"]]
    assert told["counts"] == {level: levels.count(level) for level in ("ok", "warn", "fail")}
    assert told["healthy"] is (code == 0)
    return list(told["findings"])


def wrong(findings: list[dict[str, Any]]) -> list[tuple[str, str]]:
    assert [finding for finding in findings if (finding["level"] == "ok") != (finding["do"] is None)] == []
    return [(finding["level"], finding["about"]) for finding in findings if finding["level"] != "ok"]


def whats(findings: list[dict[str, Any]], about: str) -> str:
    return "\n".join(finding["what"] for finding in findings if finding["about"] == about)


def test_before_the_first_process_only_processes_are_missing(ready: Folder) -> None:
    assert wrong(examined(ready)) == [("warn", "queues")]
    told = ready.must("doctor").out
    assert told.splitlines()[-1] == "0 failures, 1 warning."
    assert "Start a process" in told


def test_a_cluster_at_work_is_seen(ready: Folder) -> None:
    processes = [
        ready.start(name, stdin=subprocess.DEVNULL) for name in ("ingress", "worker", "worker", "outbox", "clock")
    ]
    for process in processes:
        process.until('"ready"')

    def read_by_all() -> bool:
        return whats(examined(ready), "queues").count("is read by") == 3

    wait_for(read_by_all, "their readers")
    findings = examined(ready)
    assert wrong(findings) == []
    assert whats(findings, "queues").splitlines() == [
        "insika.turns is read by one ingress; 0 jobs there.",
        "insika.sessions is read by 2 workers.",
        "insika.outbox is read by 1 of `insika outbox`.",
    ]
    assert "5 processes hear signals there" in whats(findings, "redis")
    assert ready.must("doctor").out.endswith("\nAll is well.\n")
    assert [process.signal(SIGTERM) for process in processes] == [0] * len(processes)


def test_a_database_that_is_not_migrated_is_a_fault(empty: Folder) -> None:
    findings = examined(empty, code=1)
    assert ("fail", "database") in wrong(findings)
    assert "pending: 0001_initial" in whats(findings, "database")
    assert [finding["do"] for finding in findings if finding["level"] == "fail"] == ["Run: insika migrate"]


def test_a_queue_with_other_arguments_is_a_fault(ready: Folder) -> None:
    asyncio.run(require_broker(ready.environment["INSIKA_AMQP_URL"], QueueType.QUORUM))
    with channel(ready.environment["INSIKA_AMQP_URL"]) as operating:
        operating.queue_delete("insika.turns")
    declare(ready.environment["INSIKA_AMQP_URL"], "insika.turns", x_queue_type="quorum")
    findings = examined(ready, code=1)
    (told,) = [finding for finding in findings if finding["level"] == "fail"]
    assert told["about"] == "queues"
    assert "insika.turns is not as this version declares it" in told["what"]
    assert "rabbitmqctl delete_queue" in told["do"]


def test_queues_of_the_other_type_are_a_fault_until_the_environment_says_so(ready: Folder) -> None:
    asyncio.run(require_broker(ready.environment["INSIKA_AMQP_URL"], QueueType.CLASSIC))
    assert wrong(examined(ready, code=1)).count(("fail", "queues")) == 4
    ready.environment["INSIKA_QUEUE_TYPE"] = "classic"
    assert {level for level, _ in wrong(examined(ready))} == {"warn"}


def test_an_exchange_of_another_kind_is_a_fault(ready: Folder) -> None:
    asyncio.run(require_broker(ready.environment["INSIKA_AMQP_URL"], QueueType.QUORUM))
    with channel(ready.environment["INSIKA_AMQP_URL"]) as operating:
        operating.exchange_delete("insika")
        operating.exchange_declare("insika", "fanout", durable=True)
    findings = examined(ready, code=1)
    assert "The exchange insika is not as this version declares it." in whats(findings, "queues")


def test_looking_makes_no_queue(ready: Folder) -> None:
    examined(ready)
    with channel(ready.environment["INSIKA_AMQP_URL"]) as asking, pytest.raises(Exception, match="NOT_FOUND"):
        asking.queue_declare("insika.turns", passive=True)


def test_jobs_that_nobody_reads_are_a_fault(ready: Folder) -> None:
    url = ready.environment["INSIKA_AMQP_URL"]
    asyncio.run(require_broker(url, QueueType.QUORUM))
    findings = examined(ready)
    assert wrong(findings) == [("warn", "queues")] * 3
    ready.must("send", "--amqp", "--session", "ana", "--agent", "shop", "hello")
    wait_for(
        lambda: "and 1 job wait" in whats(json.loads(ready.insika("doctor", "--json").out)["findings"], "queues"), "it"
    )
    assert ("fail", "queues") in wrong(examined(ready, code=1))


@pytest.mark.parametrize(("seconds", "code"), [(30, 0), (-300, 1)])
def test_a_database_whose_clock_is_off_is_told(ready: Folder, seconds: int, code: int) -> None:
    with psycopg.connect(ready.environment["INSIKA_DATABASE_URL"], autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION insika_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
            f"$$SELECT clock_timestamp() + interval '{seconds} s'$$"
        )
    findings = examined(ready, code=code)
    assert ("fail" if code else "warn", "clock") in wrong(findings)
    assert f"{'30 s ahead of' if seconds > 0 else '300 s behind'} this machine's" in whats(findings, "clock")
    assert "The clock of Redis and this machine's agree." in whats(findings, "clock")


def test_a_database_that_may_lose_what_was_committed_or_only_reads_is_a_fault(ready: Folder) -> None:
    for setting, said in (
        ("synchronous_commit = off", "synchronous_commit is off"),
        ("default_transaction_read_only = on", "takes no writes"),
    ):
        with psycopg.connect(ready.environment["INSIKA_DATABASE_URL"], autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            database = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL(f"ALTER DATABASE {{}} SET {setting}").format(database))
        assert said in whats(examined(ready, code=1), "database")


def test_sessions_that_nobody_comes_for_are_a_fault(ready: Folder) -> None:
    with psycopg.connect(ready.environment["INSIKA_DATABASE_URL"], autocommit=True) as connection:
        connection.execute(
            "INSERT INTO sessions (name, due_at, lease_id, lease_until, deaths) VALUES "
            "('dead', '-infinity', 'lease', insika_now() - interval '5 minutes', 2), "
            "('due', insika_now() - interval '5 minutes', NULL, NULL, 0)"
        )
        connection.execute(
            "INSERT INTO rejected_jobs (at, source, raw, error) VALUES (insika_now(), 'amqp', '{', '{}')"
        )
    findings = examined(ready, code=1)
    assert wrong(findings) == [
        ("warn", "queues"),
        ("fail", "sessions"),
        ("fail", "sessions"),
        ("warn", "sessions"),
        ("warn", "jobs"),
    ]


def test_what_the_guard_refuses_and_what_agents_lack_is_told(ready: Folder) -> None:
    ready.must(
        "agents", "apply", str(ready.write("more.yaml", "id: more\nmodel: offline/demo\ntools_allow: [refunds]\n"))
    )
    del ready.environment["INSIKA_EGRESS_ALLOW_PRIVATE"]
    ready.environment["INSIKA_RADIS_URL"] = "redis://somewhere"
    findings = examined(ready, code=1)
    assert wrong(findings) == [
        ("warn", "environment"),
        ("warn", "queues"),
        ("warn", "agents"),
        ("fail", "channels"),
    ]
    assert "INSIKA_RADIS_URL is not a variable that Insika reads; did you mean INSIKA_REDIS_URL?" in whats(
        findings, "environment"
    )


@contextlib.contextmanager
def silence() -> Iterator[int]:
    """A port on which somebody takes connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield listening.getsockname()[1]


@contextlib.contextmanager
def nobody() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("away", [silence, nobody])
def test_services_that_are_away_are_told_and_nothing_hangs(empty: Folder, away: Any) -> None:
    with away() as port:
        empty.environment["INSIKA_DATABASE_URL"] = f"postgresql://insika:hidden@127.0.0.1:{port}/insika"
        empty.environment["INSIKA_AMQP_URL"] = f"amqp://insika:hidden@127.0.0.1:{port}/vhost"
        empty.environment["INSIKA_REDIS_URL"] = f"redis://:hidden@127.0.0.1:{port}/3"
        done = empty.insika("doctor", "--json")
    assert done.code == 1
    assert "hidden" not in done.out + done.err
    assert wrong(done.json["findings"]) == [("fail", "database"), ("fail", "rabbitmq"), ("warn", "redis")]


def _with_password(url: str, user: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{user}:hidden@{parts.hostname}:{parts.port}"))


def test_a_wrong_password_or_virtual_host_is_a_fault_and_not_shown(ready: Folder) -> None:
    right = ready.environment["INSIKA_AMQP_URL"]
    for url, says in (
        (_with_password(right, "guest"), "does not know the user or the password"),
        (f"{right}-hidden-vhost", "refuses"),
    ):
        ready.environment["INSIKA_AMQP_URL"] = url
        done = ready.insika("doctor", "--json")
        assert done.code == 1
        assert says in whats(done.json["findings"], "rabbitmq")
        assert "hidden@" not in done.out + done.err
    ready.environment["INSIKA_AMQP_URL"] = right
    ready.environment["INSIKA_REDIS_URL"] = _with_password(ready.environment["INSIKA_REDIS_URL"], "nobody")
    done = ready.insika("doctor", "--json")
    assert ("fail", "redis") in wrong(done.json["findings"])
    assert "hidden" not in done.out + done.err


def test_a_variable_that_is_wrong_is_the_only_thing_told(alone: Folder) -> None:
    alone.environment |= {"INSIKA_SLOTS": "many", "INSIKA_AMQP_URL": "http://user:hidden@host/"}
    done = alone.insika("doctor", "--json")
    assert done.code == 1
    assert wrong(done.json["findings"]) == [("fail", "environment")] * 2
    assert "hidden" not in done.out


def test_one_file_alone_is_well_once_it_is_there(alone: Folder) -> None:
    assert wrong(examined(alone, code=1)) == [("fail", "database")]
    assert not (alone.path / "insika.db").exists()
    alone.must("migrate")
    alone.must("agents", "apply", str(alone.write("shop.yaml", AGENT)))
    findings = examined(alone)
    assert wrong(findings) == [("warn", "channels")]
    assert "RabbitMQ and Redis do not apply" in whats(findings, "environment")
    alone.write("insika.db", "no database at all")
    assert ("fail", "database") in wrong(examined(alone, code=1))


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("import time\ntime.sleep(3600)\n", "was not imported within"),
        ("raise RuntimeError('hidden')\n", "RuntimeError"),
        ("import nothing_of_that_name\n", "nothing_of_that_name"),
    ],
)
def test_a_module_of_tools_that_cannot_be_used_is_a_fault(alone: Folder, module: str, says: str) -> None:
    alone.must("migrate")
    alone.write("tools.py", module)
    alone.environment["INSIKA_TOOLS"] = "tools.py"
    findings = examined(alone, code=1)
    assert ("fail", "tools") in wrong(findings)
    assert says in whats(findings, "tools")


def test_files_that_no_process_could_apply_are_a_fault(alone: Folder) -> None:
    alone.must("migrate")
    (alone.path / "agents").mkdir()
    alone.write("agents/shop.yaml", "id: shop\n")
    alone.write("settings.yaml", "channel: []\n")
    alone.environment |= {"INSIKA_AGENTS_DIR": "agents", "INSIKA_SETTINGS": "settings.yaml"}
    findings = examined(alone, code=1)
    assert wrong(findings)[:2] == [("fail", "settings"), ("fail", "agents")]
    assert "shop.yaml: model" in whats(findings, "agents")


def told_by(result: Result) -> list[str]:
    return result.out.splitlines()


def test_a_finding_is_one_line_where_nobody_looks_at_a_terminal(alone: Folder) -> None:
    lines = told_by(alone.insika("doctor"))
    (line,) = [line for line in lines if line.startswith("fail")]
    assert line.split() == [
        "fail",
        "database",
        "insika.db",
        "does",
        "not",
        "exist",
        "yet.",
        "Run:",
        "insika",
        "migrate",
    ]
