"""Leases are renewed past locked rows, and renewal comes back after the server does."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest

from insika.storage.operations import Fence
from insika.storage.port import StoreUnavailable
from insika.storage.postgres.renewal import PostgresLeaseRenewal
from insika.storage.postgres.schema import migrate
from scripts.private_services.postgres import PostgresServer
from tests.faults.postgres.conftest import LEASE_S

OWNED = 20


@pytest.fixture
def migrated(database: str) -> str:
    migrate(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO sessions (name, lease_id, lease_until, mail_seq, urgent_seq)"
            " SELECT n, 'lease ' || n, '2000-01-01', n, n FROM generate_series(1, %s) AS n",
            (OWNED,),
        )
    return database


@pytest.fixture
def renewal(migrated: str) -> Iterator[PostgresLeaseRenewal]:
    renewal = PostgresLeaseRenewal(migrated, LEASE_S)
    yield renewal
    renewal.close()


FENCES = [Fence(n, f"lease {n}") for n in range(1, OWNED + 1)]
ALL = {f"lease {n}": n for n in range(1, OWNED + 1)}


def until_renewed(renewal: PostgresLeaseRenewal) -> None:
    while True:
        try:
            assert renewal.renew(FENCES, LEASE_S) == ALL
            return
        except StoreUnavailable:
            time.sleep(0.05)


def test_one_locked_session_holds_up_none_of_the_others(renewal: PostgresLeaseRenewal, migrated: str) -> None:
    with psycopg.connect(migrated) as holder:
        holder.execute("SELECT 1 FROM sessions WHERE id = 7 FOR NO KEY UPDATE")
        assert renewal.renew(FENCES, LEASE_S) == {lease: n for lease, n in ALL.items() if n != 7}
    assert renewal.renew(FENCES, LEASE_S) == ALL


def test_a_lease_goes_by_its_session_and_its_id(renewal: PostgresLeaseRenewal) -> None:
    crossed = [Fence(1, "lease 2"), Fence(2, "lease 1"), Fence(3, "lease 3"), Fence(999, "lease 4")]
    assert renewal.renew(crossed, LEASE_S) == {"lease 3": 3}


def test_a_renewal_is_found_again_after_a_restart(renewal: PostgresLeaseRenewal, server: PostgresServer) -> None:
    assert renewal.renew(FENCES, LEASE_S) == ALL
    server.kill()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            renewal.renew(FENCES, LEASE_S)
    server.start()
    until_renewed(renewal)


def test_a_server_that_answers_nothing_does_not_keep_the_thread(
    renewal: PostgresLeaseRenewal, server: PostgresServer
) -> None:
    assert renewal.renew(FENCES, LEASE_S) == ALL
    server.pause()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            renewal.renew(FENCES, LEASE_S)
    server.resume()
    until_renewed(renewal)
