"""Usage as each vendor documents it, with the four numbers that must come out of it.

`recorded/*.json`: `origin` says whether the numbers stand so on the page at `source` or were put together from the
fields that it documents. `usage` is what comes over the wire: for Anthropic `start` and `end` of a stream or `whole`,
for the others the usage object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insika.messages import Usage

FOLDER = Path(__file__).parent / "recorded"


@dataclass(frozen=True, slots=True)
class Recording:
    vendor: str
    name: str
    source: str
    origin: str
    streamed: bool
    usage: Mapping[str, Any]
    expected: Usage


def recordings() -> list[Recording]:
    """All of them, in the order of the files."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for one in content["recordings"]:
            found.append(Recording(content["vendor"], **{**one, "expected": Usage(**one["expected"])}))
    return found
