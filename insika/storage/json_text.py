"""JSON as the stores keep it: short, and in the order in which it was given. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from insika.messages import ToolCall


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode


def to_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Raises TypeError for what JSON has no form for."""
    return _encode(value) if value else ("{}" if isinstance(value, Mapping) else "[]")


def tool_calls_json(calls: Sequence[ToolCall]) -> str:
    """The calls that a message announces. What the model wrote and nobody could read is kept as text."""
    return _encode(
        [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            if call.malformed is None
            else {"id": call.id, "name": call.name, "malformed": call.malformed}
            for call in calls
        ]
    )
