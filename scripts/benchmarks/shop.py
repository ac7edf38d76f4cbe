"""What the measured workers run: a tool, and a model that calls it once and answers; it notes when it was asked.

Named by INSIKA_TOOLS, so that the workers are the real ones.
"""

from __future__ import annotations

import os
import time

from insika.providers.scene import Scene
from insika.testing import Call, Say, Script
from insika.tools import tool

ASKED = "BENCH_ASKED"
"""The variable that names the file for these notes; without it there are none."""


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _answer(scene: Scene) -> Call | Say:
    if scene.step == 0 and (path := os.environ.get(ASKED)):
        with open(path, "a", encoding="utf-8") as notes:
            notes.write(f"{scene.text} {time.time()}\n")
    return Call("add", {"a": 1, "b": 2}) if scene.step == 0 and "add" in scene.text else Say("the answer")


bench = Script(afterwards=_answer)
