"""Looks at a server and its database for a diagnosis, on a connection of its own. It reads and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from insika.storage.inspection import Contents, DeliveryFacts, Inspection, ServerFacts, SessionFacts
from insika.storage.migrate import SchemaMismatch
from insika.storage.port import StoreUnavailable
from insika.storage.postgres import mapping
from insika.storage.postgres.connection import Bounds, adapt, parameters
from insika.storage.postgres.errors import DatabaseRefuses, told, what_to_do
from insika.storage.postgres.pool import SIZE
from insika.storage.postgres.queries import sql
from insika.storage.postgres.schema import OLDEST_SERVER, unapplied

_ROUNDS = 3
"""The clock is asked so often, and the quickest answer counts."""


def inspect(url: str, now: Callable[[], datetime], *, late_s: float, answer_s: float) -> Inspection:
    """`now` is this machine's clock. `late_s`: from when on something counts as late. `answer_s` bounds each statement
    in the server. Raises StoreUnavailable, or DatabaseRefuses, which says what to do."""
    bounds = Bounds(lock_s=answer_s, statement_s=answer_s, answer_s=answer_s, connect_s=int(answer_s), wait_s=0)
    known = parameters(url, bounds, "insika doctor")
    # As the server itself would plan: these statements look at whole tables.
    given = str(conninfo_to_dict(url).get("options") or "")
    known["options"] = f"{given} -c TimeZone=UTC -c DateStyle=ISO -c statement_timeout={int(answer_s * 1000)}".strip()
    try:
        with _connected(known) as connection:
            adapt(connection)
            return _inspection(connection, now, late_s)
    except psycopg.Error as error:
        why = told(error)
        if (remedy := what_to_do(error)) is not None:
            raise DatabaseRefuses(f"{why}. {remedy}") from None
        raise StoreUnavailable(why) from None


def _connected(known: dict[str, Any]) -> Connection[Any]:
    """Where it takes no writes, at least its answers."""
    try:
        return psycopg.connect(**known, autocommit=True, prepare_threshold=None)
    except psycopg.Error as refusal:
        try:
            return psycopg.connect(**{**known, "target_session_attrs": "any"}, autocommit=True, prepare_threshold=None)
        except psycopg.Error:
            raise refusal from None


def _inspection(connection: Connection[Any], now: Callable[[], datetime], late_s: float) -> Inspection:
    server = _server(connection, now)
    if server.version < OLDEST_SERVER * 10_000:
        return Inspection(server)
    try:
        pending = unapplied(connection)
    except SchemaMismatch as mismatch:
        return Inspection(server, mismatch=mismatch.message)
    if pending:
        return Inspection(server, tuple(f"{migration.number:04d}_{migration.name}" for migration in pending))
    return Inspection(server, contents=_contents(connection, late_s))


def _server(connection: Connection[Any], now: Callable[[], datetime]) -> ServerFacts:
    (version, text, encoding, writable, settings, used, most, renewals) = connection.execute(
        sql("inspection/server")
    ).fetchall()[0]
    ((known,),) = connection.execute("SELECT to_regprocedure('insika_now()') IS NOT NULL").fetchall()
    clock = "SELECT insika_now()" if known else "SELECT clock_timestamp()"  # what all statements go by, if it is there
    doubt_s, ahead_s = min(_compared(connection, clock, now) for _ in range(_ROUNDS))
    return ServerFacts(version, text, encoding, writable, settings, used, most, SIZE + 1, renewals, ahead_s, doubt_s)


def _compared(connection: Connection[Any], clock: str, now: Callable[[], datetime]) -> tuple[float, float]:
    """How far off the comparison may be, and by how much the server's clock is ahead."""
    sent = now()
    ((theirs,),) = connection.execute(clock).fetchall()
    half = (now() - sent) / 2
    return half.total_seconds(), (theirs - sent - half).total_seconds()


def _contents(connection: Connection[Any], late_s: float) -> Contents:
    settings = connection.execute(sql("configuration/current_settings")).fetchone()
    profiles = connection.execute(sql("configuration/current_profiles")).fetchall()
    late = {"late_s": late_s}
    sessions = _in_time(connection, "inspection/sessions", late)
    deliveries = _in_time(connection, "inspection/deliveries", late)
    rejected = _in_time(connection, "inspection/rejected", late)
    return Contents(
        settings=None if settings is None else mapping.revision(settings),
        profiles=tuple(map(mapping.revision, profiles)),
        sessions=None if sessions is None else SessionFacts(*sessions),
        deliveries=None if deliveries is None else DeliveryFacts(*deliveries),
        rejected=None if rejected is None else rejected[0],
    )


def _in_time(connection: Connection[Any], statement: str, values: dict[str, float]) -> tuple[Any, ...] | None:
    """None: there is too much to look at."""
    try:
        return connection.execute(sql(statement), values).fetchone()
    except psycopg.errors.QueryCanceled:
        return None
