"""What the workers run: the tools and the model of a storm. A worker finds this module by INSIKA_TOOLS.

Each tool writes down that it begins, takes its time, and writes down that it has done it. The model writes down that
it was asked. The journal's path stands in the environment, because the module is imported by the product.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from insika.testing import Call, Calls, Say, Scene, Script
from insika.tools.python_tools import tool
from insika.tools.tool import ToolContext
from scripts.storm.books import JOURNAL, Book
from scripts.storm.texts import Wish, pause_s

_journal = Book(Path(os.environ.get(JOURNAL, os.devnull)))


def _note(kind: str, name: str, order: str, context: ToolContext) -> None:
    _journal(
        kind,
        tool=name,
        order=order,
        tenant=context.tenant,
        session=context.session,
        turn_id=context.turn_id,
        call_id=context.call_id,
        key=context.idempotency_key,
    )


def _in_a_thread(name: str, order: str, context: ToolContext) -> str:
    _note("start", name, order, context)
    time.sleep(pause_s(order))
    _note("end", name, order, context)
    return f"{name} {order}"


async def _on_the_loop(name: str, order: str, context: ToolContext) -> str:
    _note("start", name, order, context)
    await asyncio.sleep(pause_s(order))
    _note("end", name, order, context)
    return f"{name} {order}"


@tool(side_effect=True)
def charge(order: str, context: ToolContext) -> str:
    """Take money, once."""
    return _in_a_thread("charge", order, context)


@tool(side_effect=True)
async def letter(order: str, context: ToolContext) -> str:
    """Post a letter, once."""
    return await _on_the_loop("letter", order, context)


@tool(side_effect=True, idempotent=True)
async def reserve(order: str, context: ToolContext) -> str:
    """Set something aside; asked again with the same key, it is the same thing."""
    return await _on_the_loop("reserve", order, context)


@tool
async def look(order: str, context: ToolContext) -> str:
    """Look something up."""
    return await _on_the_loop("look", order, context)


@tool
def weigh(order: str, context: ToolContext) -> str:
    """Weigh something."""
    return _in_a_thread("weigh", order, context)


def _next_step(scene: Scene) -> Calls | Say:
    wish, place = Wish.read(scene.text), scene.step_since_said
    _journal("asked", labels=[Wish.read(said).label for said in scene.said])
    if place >= len(wish.batches):
        return Say("Done: " + ", ".join(Wish.read(said).label for said in scene.said))
    calls = [Call(name, {"order": wish.order(place, index)}) for index, name in enumerate(wish.batches[place])]
    return Calls(calls, text=f"{wish.label}, step {place}")


shop = Script(afterwards=_next_step)
