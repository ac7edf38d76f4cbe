"""One thing that was looked at: how it is, and what to do."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Level(enum.StrEnum):
    """`fail`: something does not work, or a promise does not hold. `warn`: it will not for long, or not as well as it
    could."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`about` is a word by which findings are found. `what` is one sentence; `do` is another, "" where nothing is to
    be done."""

    level: Level
    about: str
    what: str
    do: str = ""


def ok(about: str, what: str) -> Finding:
    return Finding(Level.OK, about, what)


def warn(about: str, what: str, do: str) -> Finding:
    return Finding(Level.WARN, about, what, do)


def fail(about: str, what: str, do: str) -> Finding:
    return Finding(Level.FAIL, about, what, do)
