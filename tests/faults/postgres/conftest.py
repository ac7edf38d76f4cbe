"""A PostgreSQL server that these tests may stop, kill and freeze, and a store's pool on a database of it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from insika.storage.postgres.connection import Bounds
from insika.storage.postgres.pool import Pool
from scripts.private_services import PrivateServices
from scripts.private_services.postgres import PostgresServer

LEASE_S = 3.0
"""Short, for the tests that wait until a bound is reached."""


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    with PrivateServices.start(which=["postgres"], postgres_settings={"fsync": "off"}) as services:
        yield services.postgres


@pytest.fixture
def server(own_server: PostgresServer) -> Iterator[PostgresServer]:
    """It runs when a test begins, whatever the test before did to it."""
    own_server.resume()
    own_server.start()
    yield own_server
    own_server.resume()


@pytest.fixture
def database(server: PostgresServer) -> str:
    """The URL of a new, empty database with one table of numbers."""
    url = server.create_database(f"faults_{uuid.uuid4().hex[:12]}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE numbers (n bigint NOT NULL)")
    return url


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    pool = Pool(database, Bounds.within(LEASE_S), size=4)
    yield pool
    await pool.close()
