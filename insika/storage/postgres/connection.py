"""How a connection to the server is set up, and how long anything on it may take. Every connection comes from here.

What is set here the statements rely on: read committed, times in UTC and ISO form, one plan for all values. No wait
here is without an end: a server that answers nothing any more is noticed while the lease still holds.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper

from insika.clock import DUE_NOW, NEVER
from insika.storage.port import StoreUnavailable

PREPARED_MAX = 500
"""Prepared statements that one connection keeps; there are fewer, also with every way their values can be typed."""

_LOCK_MAX_S = 5.0
_STATEMENT_MAX_S = 30.0
_CONNECT_MIN_S = 2  # psycopg waits no shorter


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long things may take, in seconds.

    `lock_s`: a statement for a lock, and a transaction for its client. `statement_s`: a statement in the server.
    `answer_s`: the client for the server's answer, whatever has become of the server. `connect_s`: a new connection.
    `wait_s`: a caller for a free connection.
    """

    lock_s: float
    statement_s: float
    answer_s: float
    connect_s: int
    wait_s: float

    @classmethod
    def within(cls, lease_s: float) -> Bounds:
        """Locks under a third of the lease, so that a stopped client does not hold a session for long; answers under
        the lease, so that an owner hears of a silent server while it still has its sessions."""
        lock_s = min(lease_s * 0.3, _LOCK_MAX_S)
        statement_s = min(lease_s * 0.7, _STATEMENT_MAX_S)
        answer_s = statement_s + min(lease_s * 0.1, 2.0)
        return cls(
            lock_s=lock_s,
            statement_s=statement_s,
            answer_s=answer_s,
            connect_s=max(_CONNECT_MIN_S, int(lock_s)),
            # By then the longest statement before it has ended. Who gives up sooner only comes back, and asks for more.
            wait_s=answer_s,
        )


def parameters(url: str, bounds: Bounds, application_name: str) -> dict[str, Any]:
    """The connection parameters of libpq for `url`, which may add its own. Raises StoreUnavailable, without the URL,
    when it cannot be read.

    https://www.postgresql.org/docs/15/libpq-connect.html and .../runtime-config-client.html"""
    try:
        given: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:
        raise StoreUnavailable(
            "the database URL cannot be read; it must be like postgresql://user:password@host:5432/insika"
        ) from None
    settings = {
        "default_transaction_isolation": r"read\ committed",
        "TimeZone": "UTC",
        "DateStyle": "ISO",
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
        # Every statement goes by an index. Of a table that has just grown the planner knows nothing, and would rather
        # read, hash and sort all of it.
        **{f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort")},
        "lock_timeout": _ms(bounds.lock_s),
        "idle_in_transaction_session_timeout": _ms(bounds.lock_s),
        "statement_timeout": _ms(bounds.statement_s),
    }
    ours = " ".join(f"-c {name}={value}" for name, value in settings.items())
    keepalive_s = max(1, int(bounds.lock_s))
    return {
        "target_session_attrs": "read-write",  # of several hosts, the one that takes writes
        "fallback_application_name": application_name,
        **given,
        "options": f"{given.get('options', '')} {ours}".strip(),
        "client_encoding": "utf8",
        "connect_timeout": bounds.connect_s,
        "keepalives": 1,
        "keepalives_idle": keepalive_s,
        "keepalives_interval": keepalive_s,
        "keepalives_count": 2,
        "tcp_user_timeout": _ms(bounds.answer_s),
    }


def adapt(context: AdaptContext) -> None:
    """Teach a connection our two ends of time, and to send whole numbers always as the same type: a type of its own
    for each size would prepare each statement several times."""
    context.adapters.register_dumper(int, Int8Dumper)
    context.adapters.register_dumper(datetime, _TimeDumper)
    context.adapters.register_loader("timestamptz", _TimeLoader)


def hang_up(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """End the connection under whoever waits for it, who is told that it was closed. To cancel the statement would be
    to ask the same silent server."""
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        pass  # it has ended by itself


class _TimeDumper(Dumper):
    oid = psycopg.adapters.types["timestamptz"].oid

    def dump(self, obj: datetime) -> Buffer:
        if obj >= NEVER:
            return b"infinity"
        return b"-infinity" if obj <= DUE_NOW else obj.isoformat().encode()


class _TimeLoader(Loader):
    def load(self, data: Buffer) -> datetime:
        return read_time(bytes(data).decode())


def read_time(text: str) -> datetime:
    """A time as the server writes it, in a row or in JSON."""
    if text == "infinity":
        return NEVER
    return DUE_NOW if text == "-infinity" else datetime.fromisoformat(text)


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1000))
