"""Ending mailbox rows, by explicit positions. A row that was not there to be ended undoes the whole operation."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from insika.storage.rows import Ended
from insika.storage.sqlite.group import Undo
from insika.storage.sqlite.queries import sql


def take(
    connection: sqlite3.Connection, session_id: int, positions: Sequence[int], turn_id: str, otherwise: bool | None
) -> list[str]:
    """Consume these for a turn; answers their texts, in the given order. Undoes with `otherwise`."""
    texts = []
    for position in positions:
        values = {"session_id": session_id, "position": position, "turn_id": turn_id}
        row = connection.execute(sql("turns/take_mail"), values).fetchone()
        if row is None:
            raise Undo(otherwise)
        texts.append(row[0])
    return texts


def end(
    connection: sqlite3.Connection, session_id: int, positions: Sequence[int], how: Ended, otherwise: bool | None
) -> None:
    """End these without a turn. Undoes with `otherwise`."""
    for position in positions:
        values = {"session_id": session_id, "position": position, "how": how}
        if connection.execute(sql("turns/end_mail"), values).rowcount == 0:
            raise Undo(otherwise)
