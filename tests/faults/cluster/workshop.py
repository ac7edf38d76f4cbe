"""What the workers of these tests run, as a user's module: the shop's tools, and a script in a model's place.

The product imports it by INSIKA_TOOLS, so where its diary and its gates are stands in the environment. What a turn does
stands in its text, as `tests.faults.shop` reads it. Besides, `burn=0.2s1` keeps a core busy for so many seconds, and
`seize=3s1` the interpreter (what follows the `s` only tells one order from another); and a step `fail@gate` is a model
that fails for good until that gate is open.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from insika.providers.scene import Scene
from insika.providers.script import Fail, Say, Script, Step
from insika.tools.python_tools import tool
from insika.tools.tool import ToolContext
from tests.faults.cluster.gates import FOLDER, gates_of
from tests.faults.shop import Diary, Plan, diary_of, next_step, shop_tools

_folder = Path(os.environ[FOLDER])
_diary, _gates = Diary(diary_of(_folder)), gates_of(_folder)
_tools = shop_tools(_diary, _gates)
charge, letter, reserve, look_up, weigh, bomb = (
    _tools.get(name) for name in ("charge", "letter", "reserve", "look_up", "weigh", "bomb")
)


def _note(name: str, order: str, context: ToolContext) -> float:
    """Write down that it runs. Answers for how many seconds it is to."""
    key = context.idempotency_key
    _diary("tool", tool=name, order=order, turn_id=context.turn_id, call_id=context.call_id, key=key)
    return float(order.partition("s")[0])


@tool(side_effect=True)
def burn(order: str, gate: str, context: ToolContext) -> str:
    """Keep a core busy, in a thread."""
    until = _note("burn", order, context) + time.thread_time()
    while time.thread_time() < until:
        pass
    return f"burnt {order}"


@tool(side_effect=True)
def seize(order: str, gate: str, context: ToolContext) -> str:
    """Let no other thread run, as a library does that never lets go of the interpreter's lock."""
    seconds = _note("seize", order, context)
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return f"seized {order}"


def _next_step(scene: Scene) -> Step:
    _diary("request", text=scene.text, messages=len(scene.said))
    plan, place = Plan.read(scene.text), scene.step_since_said
    if place < len(plan.steps) and plan.steps[place][0][0] == "fail":
        gate = plan.steps[place][0][2]
        return Say(f"Done: {plan.label}") if gate and _gates.is_open(gate) else Fail("closed today", fatal=True)
    return next_step(scene)


shop = Script(afterwards=_next_step)
