"""Server-Sent Events as bytes."""

from __future__ import annotations

import json
from typing import Any


def named(data: dict[str, Any]) -> bytes:
    """Anthropic's way: the event's name is its type."""
    return f"event: {data['type']}\ndata: {_json(data)}\n\n".encode()


def bare(data: dict[str, Any]) -> bytes:
    """OpenAI's way: data alone."""
    return f"data: {_json(data)}\n\n".encode()


def comment(text: str) -> bytes:
    return f": {text}\n\n".encode()


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)
