from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from actors.environment import Environment, QueueType, read_environment, sqlite_file
from insika.errors import InvalidConfiguration

SECRET = "whsec_" + base64.b64encode(b"0" * 24).decode()


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("INSIKA_"):
            monkeypatch.delenv(name)


def problems() -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as caught:
        read_environment()
    assert caught.value.where == "the environment"
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return dict(caught.value.problems)


def test_an_empty_environment_has_the_defaults_of_the_contract() -> None:
    environment = read_environment()
    assert environment.database_file == Path("insika.db")
    assert (environment.settings, environment.agents_dir, environment.tools, environment.webhook_secret) == (
        None,
        None,
        (),
        None,
    )
    assert (environment.egress_allow_http, environment.egress_allow_private, environment.egress_hosts) == (
        False,
        False,
        (),
    )
    assert (environment.lease_s, environment.drain_s, environment.slots, environment.turn_timing) == (
        15,
        20,
        200,
        False,
    )
    assert environment.subagent_depth_cap == 5


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "DATABASE_URL": "sqlite:////var/lib/insika/it%20is.db",
        "SETTINGS": "conf/settings.yaml",
        "AGENTS_DIR": "conf/agents",
        "TOOLS": "shop.tools, shop.more ,",
        "WEBHOOK_SECRET": SECRET,
        "EGRESS_ALLOW_HTTP": "1",
        "EGRESS_ALLOW_PRIVATE": "true",
        "EGRESS_HOSTS": "a.example,b.example",
        "LEASE_S": "7.5",
        "DRAIN_S": "0",
        "SLOTS": "3",
        "SUBAGENT_DEPTH_CAP": "0",
        "TURN_TIMING": "yes",
    }.items():
        monkeypatch.setenv(f"INSIKA_{name}", value)
    environment = read_environment()
    assert environment.database_file == Path("/var/lib/insika/it is.db")
    assert (environment.settings, environment.agents_dir) == (Path("conf/settings.yaml"), Path("conf/agents"))
    assert environment.tools == ("shop.tools", "shop.more")
    assert environment.subagent_depth_cap == 0
    assert environment.webhook_secret is not None
    assert environment.webhook_secret.get_secret_value() == SECRET
    assert (environment.egress_allow_http, environment.egress_allow_private) == (True, True)
    assert environment.egress_hosts == ("a.example", "b.example")
    assert (environment.lease_s, environment.drain_s, environment.slots, environment.turn_timing) == (7.5, 0, 3, True)
    assert SECRET not in repr(environment)


def test_empty_and_foreign_variables_count_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "DATABASE_URL",
        "SETTINGS",
        "AGENTS_DIR",
        "TOOLS",
        "WEBHOOK_SECRET",
        "EGRESS_HOSTS",
        "LEASE_S",
        "SLOTS",
    ):
        monkeypatch.setenv(f"INSIKA_{name}", "")
    monkeypatch.setenv("INSIKA_SOMETHING_ELSE", "x")
    monkeypatch.setenv("SLOTS", "5")
    assert read_environment().slots == 200


def test_every_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "DATABASE_URL": "mysql://user:t0ken@db/insika",
        "AMQP_URL": "http://user:t0ken@rabbit",
        "REDIS_URL": "redis:///t0ken",
        "QUEUE_TYPE": "mirrored",
        "WEBHOOK_SECRET": "t0ken",
        "EGRESS_ALLOW_HTTP": "perhaps",
        "LEASE_S": "nan",
        "DRAIN_S": "-1",
        "SLOTS": "many",
        "TURN_TIMING": "2",
    }.items():
        monkeypatch.setenv(f"INSIKA_{name}", value)
    found = problems()
    assert set(found) == {
        "INSIKA_DATABASE_URL",
        "INSIKA_AMQP_URL",
        "INSIKA_REDIS_URL",
        "INSIKA_QUEUE_TYPE",
        "INSIKA_WEBHOOK_SECRET",
        "INSIKA_EGRESS_ALLOW_HTTP",
        "INSIKA_LEASE_S",
        "INSIKA_DRAIN_S",
        "INSIKA_SLOTS",
        "INSIKA_TURN_TIMING",
    }
    assert found["INSIKA_SLOTS"] == "must be a whole number, got 'many'"
    assert found["INSIKA_DRAIN_S"] == "must be at least 0, got '-1'"
    assert "got a mysql URL" in found["INSIKA_DATABASE_URL"]
    assert "t0ken" not in str(found)


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///insika.db", "insika.db"),
        ("sqlite:///./data/x.db", "data/x.db"),
        ("sqlite:////tmp/x.db", "/tmp/x.db"),
        ("SQLITE:///x.db", "x.db"),
    ],
)
def test_a_sqlite_url_names_a_file(url: str, file: str) -> None:
    assert sqlite_file(url) == Path(file)


@pytest.mark.parametrize(
    "url",
    [
        "postgres://h/db",
        "mysql://h/db",
        "sqlite+aiosqlite:///x.db",
        "insika.db",
        "/tmp/x.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://host/x.db",
        "sqlite:///x.db?mode=ro",
        "sqlite:///folder/",
        "sqlite:x.db",
        "sqlite:/x.db",
        "sqlite:///x%00.db",
    ],
)
def test_anything_else_is_no_database_of_this_version(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite:///"):
        sqlite_file(url)


def test_an_environment_cannot_be_changed() -> None:
    environment = read_environment()
    with pytest.raises(ValidationError):
        environment.slots = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:t0ken@db/insika?sslmode=require", "postgresql://db:5432/insika"),
        ("postgresql://user:t0ken@db:6000/insika", "postgresql://db:6000/insika"),
        ("postgresql://user:t0ken@db1:6000,db2/insika", "postgresql://db1:6000,db2:5432/insika"),
        ("postgresql://user:t0ken@[::1]/insika", "postgresql://[::1]:5432/insika"),
        ("postgresql:///insika", "postgresql://localhost:5432/insika"),
    ],
)
def test_a_database_is_shown_by_its_hosts_and_name(url: str, shown: str) -> None:
    assert Environment.model_validate({"database_url": url}).database_shown == shown


def test_the_services_of_a_cluster_are_read_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "DATABASE_URL": "postgresql://user:t0ken@db:5432/insika?sslmode=require",
        "AMQP_URL": "amqps://user:t0ken@rabbit:5671/shop",
        "REDIS_URL": "redis://:t0ken@redis:6379/2",
        "QUEUE_TYPE": "classic",
    }.items():
        monkeypatch.setenv(f"INSIKA_{name}", value)
    environment = read_environment()
    assert environment.on_postgres
    assert environment.amqp_url is not None
    assert environment.amqp_url.get_secret_value() == "amqps://user:t0ken@rabbit:5671/shop"
    assert environment.redis_url is not None
    assert environment.queue_type is QueueType.CLASSIC
    assert "t0ken" not in repr(environment)
    with pytest.raises(ValueError, match="SQLite"):
        _ = environment.database_file


def test_a_postgresql_url_must_name_its_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSIKA_DATABASE_URL", "postgresql://user:t0ken@db")
    assert "must name a database" in problems()["INSIKA_DATABASE_URL"]


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://u:a/t0ken@127.0.0.1/db"),
        ("DATABASE_URL", "postgresql://u:a?t0ken@127.0.0.1/db"),
        ("AMQP_URL", "amqp://u:a/t0ken@127.0.0.1"),
        ("REDIS_URL", "redis://u:a#t0ken@127.0.0.1"),
    ],
)
def test_a_password_that_is_not_escaped_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, url: str
) -> None:
    monkeypatch.setenv(f"INSIKA_{name}", url)
    found = problems()
    assert "write / as %2F" in found[f"INSIKA_{name}"]
    assert "t0ken" not in str(found)
