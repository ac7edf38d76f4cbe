"""An alert on one line, as `insika receive` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.cli.output import how_long
from insika.events import EventType


def is_alert(payload: Mapping[str, Any]) -> bool:
    return payload.get("type") != "answer" and isinstance(payload.get("data"), Mapping)


def alert_said(payload: Mapping[str, Any]) -> str:
    """What its data say; all of them, as they stand, where the type is not known. The sender may be anybody."""
    data: Mapping[str, Any] = payload["data"]
    match payload.get("type"):
        case EventType.BUDGET_WARNING:
            of_tokens = f"{_of(data, 'spent')} of {_of(data, 'cap')} tokens spent"
            return f"{_of(data, 'window')} budget, level {_of(data, 'level')}: {of_tokens}"
        case EventType.BREAKER_OPEN:
            return f"{_of(data, 'model')} is not asked for {_wait(data.get('retry_after'))}"
        case EventType.DELIVERY_FAILED:
            what = f"delivery {_of(data, 'delivery_id')} to {_of(data, 'channel')}"
            return f"{what} {_of(data, 'outcome')}: {_of(data, 'reason')}"
        case _:
            return ", ".join(f"{name} {value}" for name, value in data.items())


def _of(data: Mapping[str, Any], name: str) -> str:
    return str(data.get(name, "?"))


def _wait(seconds: object) -> str:
    return how_long(seconds) if isinstance(seconds, int | float) and abs(seconds) < 1e9 else "?"
