"""Waits until a cluster has nothing left to do, and looks with eyes of its own: at the tables and the queues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import psycopg

from scripts.private_services import PrivateServices

MUST_BE_EMPTY = ("insika.turns", "insika.turns.dead")
_LOOKS_S = 0.5
_OPEN = """
SELECT (SELECT count(*) FROM sessions
        WHERE waiting > 0 OR turn_id IS NOT NULL OR lease_id IS NOT NULL OR due_at < 'infinity')
     + (SELECT count(*) FROM outbox WHERE state IN ('pending', 'delivering'))
     + (SELECT count(*) FROM model_calls WHERE state = 'open')
"""


async def come_to_rest(services: PrivateServices, database: str, within_s: float) -> float | None:
    """How many seconds it took; None when there was still something to do `within_s` seconds later."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while loop.time() - begun < within_s:
        if await asyncio.to_thread(_at_rest, services, database):
            return loop.time() - begun
        await asyncio.sleep(_LOOKS_S)
    return None


def queues(services: PrivateServices) -> Mapping[str, int]:
    """Messages, waiting or handed out, in each queue that must be empty in the end."""
    listed = json.loads(services.rabbitmq.ctl("list_queues", "--formatter", "json", "name", "messages"))
    found = {queue["name"]: queue["messages"] for queue in listed}
    return {name: found.get(name, 0) for name in MUST_BE_EMPTY}


def _at_rest(services: PrivateServices, database: str) -> bool:
    # The tables once more: what had just been taken from a queue was in no table yet.
    return _open(database) == 0 and not any(queues(services).values()) and _open(database) == 0


def _open(database: str) -> int:
    with psycopg.connect(database, connect_timeout=5) as connection:
        row = connection.execute(_OPEN).fetchone()
        return int(row[0]) if row is not None else 0
