"""Where the time of a turn went, for people: from the numbers in its row, which are there once it has ended.

The row holds what its last owner measured. The steps are among it where INSIKA_TURN_TIMING was set; the time of the
commit is not, because the commit writes the row: events and the log have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_PARTS = (
    ("queued_ms", "queued"),
    ("prepare_ms", "prepared"),
    ("routing_ms", "routing"),
    ("model_ms", "model"),
    ("tools_ms", "tools"),
)
STEPS = ("step", "tries", "time", "first token")


def times_shown(timing: Mapping[str, Any]) -> str | None:
    """On one line; None of a turn that nobody has measured."""
    if "total_ms" not in timing:
        return None
    parts = ", ".join(f"{name} {_time(timing[part])}" for part, name in _PARTS if part in timing)
    return f"{_time(timing['total_ms'])} ({parts})" if parts else _time(timing["total_ms"])


def step_rows(timing: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """A row for each step's model requests, under `STEPS`; none where the steps were not measured."""
    return [
        (str(step["step"]), str(step["attempts"]), _time(step["ms"]), _time(step["ttft_ms"]))
        for step in timing.get("model", ())
    ]


def _time(ms: float | None) -> str:
    if ms is None:
        return "-"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"
