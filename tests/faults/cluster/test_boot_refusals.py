"""What ends a process at its start, because waiting cannot help: exit code 1, and one line that says what to do."""

from __future__ import annotations

import dataclasses
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from actors.broker.topology import declare
from actors.environment import QueueType
from tests.amqp_wire import channel

ROLES = ("ingress", "worker", "outbox", "clock")
PASSWORD = "s3same-open"
ASKED_FOR = "host all locked 127.0.0.1/32 scram-sha-256\n"
"""A line of pg_hba.conf: of one user the password is asked for; all others are trusted."""


def at(url, *, user, password=PASSWORD, path=None):
    parts = urlsplit(url)
    netloc = f"{user}:{password}@{parts.hostname}:{parts.port}"
    return urlunsplit(parts._replace(netloc=netloc, path=parts.path if path is None else path))


def says(cluster, role, **services):
    """What a process says that will not start."""
    cluster.services = dataclasses.replace(cluster.services, **services)
    done = cluster.insika(role)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert PASSWORD not in line
    return line


@pytest.mark.parametrize("role", ROLES)
def test_a_database_that_is_not_migrated(cluster, role):
    with psycopg.connect(cluster.services.database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    line = says(cluster, role)
    assert line.startswith("Error: the database insika_test_")
    assert line.endswith("Run: insika migrate")


def test_a_database_that_is_not_there(cluster):
    line = says(cluster, "worker", database=f"{cluster.services.database}_not")
    assert 'FATAL: database "insika_test_' in line
    assert line.endswith("Create the database, then run: insika migrate")


def test_a_password_that_the_database_does_not_take(own, own_cluster):
    cluster, rules = own_cluster, own.postgres.folder / "data" / "pg_hba.conf"
    with psycopg.connect(cluster.services.database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS locked")
        connection.execute("CREATE ROLE locked LOGIN PASSWORD 'another'")
        if not rules.read_text().startswith(ASKED_FOR):
            rules.write_text(ASKED_FOR + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
    line = says(cluster, "worker", database=at(cluster.services.database, user="locked"))
    assert 'password authentication failed for user "locked"' in line
    assert line.endswith("Set a user and a password in INSIKA_DATABASE_URL that it knows")


def test_a_password_that_the_broker_does_not_take(cluster):
    line = says(cluster, "ingress", amqp=at(cluster.services.amqp, user="guest"))
    assert "does not know the user or the password that INSIKA_AMQP_URL names" in line


def test_a_virtual_host_that_is_not_there(cluster):
    line = says(cluster, "worker", amqp=at(cluster.services.amqp, user="guest", password="guest", path="/nowhere"))
    assert "nowhere" in line
    assert "create the virtual host" in line


def test_a_queue_of_another_type(cluster):
    with channel(cluster.services.amqp) as declaring:
        declare(declaring, QueueType.QUORUM)
    cluster.variables["INSIKA_QUEUE_TYPE"] = "classic"
    assert "Either set INSIKA_QUEUE_TYPE to quorum" in says(cluster, "ingress")
