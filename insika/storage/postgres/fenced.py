"""How a fenced statement is run, and how its values are handed over.

Each begins with the update of the session row by id and lease, and everything else in it selects from that. Lists go as
one text, so that a statement is the same statement however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from insika.messages import Usage
from insika.storage.json_text import to_json
from insika.storage.operations import CallResult, Fence, ModelCallKey, SettledModelCall
from insika.storage.postgres.errors import Undone
from insika.storage.postgres.pool import Pool, Row
from insika.storage.postgres.queries import sql
from insika.storage.rows import Begun

Values = dict[str, Any]


async def written(pool: Pool, name: str, values: Mapping[str, Any]) -> Row | None:
    """Run the statement of this name. None: the fence did not hold, or something that is named was not there; nothing
    was written."""
    try:
        return await pool.row(sql(name), values)
    except Undone:
        return None


def fenced(fence: Fence, turn_id: str | None) -> Values:
    return {"session_id": fence.session_id, "lease_id": fence.lease_id, "turn_id": turn_id}


def model_call(key: ModelCallKey | None, *, prefix: str = "call") -> Values:
    names = ("step", "attempt", "purpose", "model")
    return {f"{prefix}_{name}": None if key is None else getattr(key, name) for name in names}


def settled(call: SettledModelCall) -> Values:
    return {**model_call(call.key), "call_state": call.state, **spent(call.usage)}


def begun(row: Row | None) -> Begun | None:
    """Of a statement that answers the log's sequence and the keys of the alerts that were new."""
    return None if row is None else Begun(int(row[0]), frozenset(row[1] or ()))


def spent(usage: Usage) -> Values:
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    }


def numbers(values: Iterable[int]) -> str:
    """As an array of PostgreSQL's."""
    return "{" + ",".join(map(str, values)) + "}"


def results_json(results: Sequence[CallResult]) -> str:
    return to_json(
        [
            {
                "idx": result.index,
                "call_id": result.call_id,
                "state": result.state.value,
                "content": result.content,
                "is_error": result.is_error,
                "halts": result.halts,
                "approval": result.approval,
            }
            for result in results
        ]
    )
