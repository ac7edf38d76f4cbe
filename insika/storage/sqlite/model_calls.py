"""One row for every attempt at a model: opened before the request, settled by what ends it.

Spend is the sum of these rows, so none is ever missing and none is measured twice.
"""

from __future__ import annotations

import sqlite3

from insika.messages import Usage
from insika.storage.operations import ModelCallKey, SettledModelCall
from insika.storage.sqlite.queries import sql


def open_call(connection: sqlite3.Connection, session_id: int, turn_id: str, key: ModelCallKey) -> bool:
    """False: that attempt was opened before."""
    values = (turn_id, key.step, key.attempt, key.purpose, session_id, key.model)
    return connection.execute(sql("turns/open_model_call"), values).rowcount == 1


def settle(connection: sqlite3.Connection, turn_id: str, call: SettledModelCall) -> None:
    """As measured, once; a row that is measured stays as it is."""
    key = call.key
    values = (call.state, *_parts(call.usage), turn_id, key.step, key.attempt, key.purpose)
    connection.execute(sql("turns/settle_model_call"), values)


def settle_late(connection: sqlite3.Connection, turn_id: str, call: SettledModelCall) -> bool:
    """As measured where that is news, as estimated only where it is open."""
    key = call.key
    values = (call.state, *_parts(call.usage), turn_id, key.step, key.attempt, key.purpose)
    return connection.execute(sql("turns/settle_late"), values).rowcount == 1


def estimate_attempts(connection: sqlite3.Connection, turn_id: str, step: int, purpose: str, estimate: Usage) -> None:
    """As `estimate_open`, of one step and purpose."""
    connection.execute(sql("turns/estimate_open_attempts"), (*_parts(estimate), turn_id, step, purpose))


def estimate_open(connection: sqlite3.Connection, turn_id: str, estimate: Usage) -> None:
    """Settle as estimated what nobody will measure any more."""
    connection.execute(sql("turns/estimate_open_model_calls"), (*_parts(estimate), turn_id))


def _parts(usage: Usage) -> tuple[int, int, int, int]:
    return usage.input, usage.output, usage.cache_read, usage.cache_write
