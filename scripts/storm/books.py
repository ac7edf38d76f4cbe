"""Books: files of JSON lines in which everybody who takes part writes down what happens, before going on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Entry = Mapping[str, Any]

JOURNAL = "STORM_JOURNAL"
"""The variable that tells the tools, which the product imports, where their book is."""


class Book:
    """May be written to by several processes at once. What was written outlives the process, whatever ends it: the
    system has it. No machine goes down in a storm, so nothing waits for a disk."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, kind: str, **facts: Any) -> None:
        line = {"kind": kind, "at": time.time(), "pid": os.getpid(), **facts}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


def entries(path: Path) -> list[Entry]:
    """What stands in the book, in the order in which it was written; nothing when nobody has opened it."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
