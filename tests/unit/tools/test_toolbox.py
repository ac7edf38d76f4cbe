from __future__ import annotations

import asyncio
import dataclasses

from insika.messages import Halt, ToolCall
from insika.ports import CallOutcome, Toolbox
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads
from insika.tools.tool import ToolContext
from insika.tools.toolbox import TurnToolbox
from insika.turn import sentences

TURN = ToolContext(tenant="t", session="s", agent="a", turn_id="turn", call_id="")


@tool(side_effect=True)
async def beta(context: ToolContext) -> str:
    return context.idempotency_key


@tool
async def alpha() -> Halt:
    return Halt("enough")


@tool(timeout=0.01)
async def gamma() -> None:
    await asyncio.Event().wait()


REGISTRY = ToolRegistry([beta, alpha, gamma])


def box(offered: list[str], denied: frozenset[str] = frozenset()) -> TurnToolbox:
    return TurnToolbox(
        REGISTRY,
        ToolThreads(),
        offered=offered,
        may_use=lambda name: name not in denied,
        context=TURN,
        timeout_s=30,
    )


def test_it_is_what_the_loop_asks_for() -> None:
    tools: Toolbox = box(["alpha"])
    assert [spec.name for spec in tools.specs()] == ["alpha"]


def test_specs_are_in_one_order_and_leave_out_what_is_gone() -> None:
    assert [spec.name for spec in box(["gamma", "gone", "alpha"]).specs()] == ["alpha", "gamma"]


def test_only_what_is_offered_and_still_allowed_is_found() -> None:
    tools = box(["alpha", "beta"], denied=frozenset({"beta"}))
    assert tools.find("alpha") is alpha
    assert tools.find("beta") is None
    assert tools.find("gamma") is None
    assert tools.find("Alpha") is None


async def test_a_call_gets_the_turns_context_with_its_own_id() -> None:
    outcome = await box(["beta"]).run(ToolCall("call_1", "beta"), step=1)
    assert outcome == CallOutcome(dataclasses.replace(TURN, call_id="call_1").idempotency_key)


async def test_a_halt_comes_through() -> None:
    assert await box(["alpha"]).run(ToolCall("c", "alpha"), 1) == CallOutcome("enough", halts=True)


async def test_a_time_limit_comes_through() -> None:
    outcome = await box(["gamma"]).run(ToolCall("c", "gamma"), 1)
    assert outcome.timed_out
    assert outcome.is_error


async def test_a_tool_that_is_not_there_is_said_to_be_missing() -> None:
    outcome = await box(["alpha"]).run(ToolCall("c", "beta"), 1)
    assert outcome == CallOutcome(sentences.tool_not_available("beta"), is_error=True)
