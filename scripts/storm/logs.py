"""What the processes logged, searched for what nobody foresaw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from scripts.storm.books import Entry

_UNFORESEEN = ("error", "critical")


def unforeseen(logs: Path) -> list[Entry]:
    """Lines at the level of errors, and lines that are no JSON: most likely the traceback of an interpreter that ended.
    What is foreseen is logged as a warning."""
    return [{"process": log.stem, "line": line} for log in sorted(logs.glob("*-*.log")) for line in _bad(log)]


def _bad(log: Path) -> Iterator[str]:
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            yield line
        else:
            if entry.get("level") in _UNFORESEEN:
                yield line
