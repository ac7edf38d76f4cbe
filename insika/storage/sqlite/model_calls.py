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
    values = {
        "session_id": session_id,
        "turn_id": turn_id,
        "step": key.step,
        "attempt": key.attempt,
        "purpose": key.purpose,
        "model": key.model,
    }
    return connection.execute(sql("turns/open_model_call"), values).rowcount == 1


def settle(connection: sqlite3.Connection, turn_id: str, call: SettledModelCall) -> None:
    """As measured, once; a row that is measured stays as it is."""
    key, usage = call.key, call.usage
    values = {
        "turn_id": turn_id,
        "step": key.step,
        "attempt": key.attempt,
        "purpose": key.purpose,
        "state": call.state,
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    }
    connection.execute(sql("turns/settle_model_call"), values)


def estimate_open(connection: sqlite3.Connection, turn_id: str, estimate: Usage) -> None:
    """Settle as estimated what nobody will measure any more."""
    values = {
        "turn_id": turn_id,
        "input": estimate.input,
        "output": estimate.output,
        "cache_read": estimate.cache_read,
        "cache_write": estimate.cache_write,
    }
    connection.execute(sql("turns/estimate_open_model_calls"), values)
