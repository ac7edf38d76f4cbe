"""JSON as the stores keep it: short, and in the order in which it was given. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from insika.messages import NOTHING_VERBATIM, ToolCall, Verbatim


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
    return _encode([_call(call) for call in calls])


def _call(call: ToolCall) -> Mapping[str, Any]:
    named = {"id": call.id, "name": call.name}
    if call.cut_off:
        return {**named, "cut_off": True}
    return {**named, "arguments": call.arguments} if call.malformed is None else {**named, "malformed": call.malformed}


def verbatim_json(verbatim: Verbatim) -> str | None:
    """None when there is nothing to keep. Half a surrogate pair, which UTF-8 has no form for, is written as an escape,
    so that whatever a provider said comes back as it was."""
    if not verbatim:
        return None
    kept = {"model": verbatim.model, "parts": verbatim.parts}
    text = _encode(kept)
    return text if _is_utf8(text) else json.dumps(kept, separators=(",", ":"), default=_plain)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_verbatim(text: str | None) -> Verbatim:
    """What `verbatim_json` gave."""
    if text is None:
        return NOTHING_VERBATIM
    kept = json.loads(text)
    return Verbatim(kept["model"], tuple(kept["parts"]))
