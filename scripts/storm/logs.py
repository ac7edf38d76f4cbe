"""What the processes logged, searched for what nobody foresaw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.storm.books import Entry

_UNFORESEEN = ("error", "critical")


def unforeseen(logs: Path) -> list[Entry]:
    """Lines at the level of errors, and lines that are no JSON: most likely the traceback of an interpreter that ended.
    What is foreseen is logged as a warning. A kill may cut a line, and whoever comes next writes behind its
    beginning."""
    return [{"process": log.stem, "line": line} for log in sorted(logs.glob("*-*.log")) for line in _bad(log)]


def _bad(log: Path) -> Iterator[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    for line in lines:
        entry = _entry(line)
        if entry is None:
            entry = _entry_behind_a_cut(line)
        if entry is None or entry.get("level") in _UNFORESEEN:
            yield line.rstrip("\n")


def _entry_behind_a_cut(line: str) -> Mapping[str, Any] | None:
    """None: this is no line of ours that was cut."""
    if not line.startswith("{"):
        return None
    if not line.endswith("\n"):
        return {}  # the last there is: nobody came after it
    begins = (at for at in range(1, len(line)) if line.startswith("{", at))
    return next((entry for at in begins if (entry := _entry(line[at:])) is not None and "level" in entry), None)


def _entry(line: str) -> Mapping[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
