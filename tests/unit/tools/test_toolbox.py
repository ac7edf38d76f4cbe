from __future__ import annotations

import asyncio
import dataclasses
import threading

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


def nobody_is_asked(name: str) -> bool:
    return False


def box(offered: list[str], denied: frozenset[str] = frozenset()) -> TurnToolbox:
    return TurnToolbox(
        REGISTRY,
        ToolThreads(),
        offered=offered,
        may_use=lambda name: name not in denied,
        context=TURN,
        timeout_s=30,
        needs_approval=nobody_is_asked,
    )


def test_it_is_what_the_loop_asks_for() -> None:
    tools: Toolbox = box(["alpha"])
    assert [spec.name for spec in tools.specs()] == ["alpha"]


async def test_what_a_tool_raises_is_heard_before_the_model_is_told() -> None:
    @tool
    async def broken() -> None:
        raise LookupError("no such order")

    heard: list[tuple[str, str, BaseException]] = []
    tools = TurnToolbox(
        ToolRegistry([broken, alpha]),
        ToolThreads(),
        ["broken", "alpha"],
        lambda name: True,
        TURN,
        30,
        needs_approval=nobody_is_asked,
        on_raised=lambda name, call_id, error: heard.append((name, call_id, error)),
    )
    assert (await tools.run(ToolCall("c1", "broken"), 1)).is_error
    assert not (await tools.run(ToolCall("c2", "alpha"), 1)).is_error
    assert [(name, call_id, str(error)) for name, call_id, error in heard] == [("broken", "c1", "no such order")]


def test_specs_are_in_one_order_and_leave_out_what_is_gone() -> None:
    assert [spec.name for spec in box(["gamma", "gone", "alpha"]).specs()] == ["alpha", "gamma"]


def test_only_what_is_offered_and_still_allowed_is_found() -> None:
    tools = box(["alpha", "beta"], denied=frozenset({"beta"}))
    assert tools.find("alpha") is alpha
    assert tools.find("beta") is None
    assert tools.find("gamma") is None
    assert tools.find("Alpha") is None


def test_whether_a_person_must_approve_is_asked_anew_each_time() -> None:
    asking = {"beta"}
    tools = TurnToolbox(
        REGISTRY, ToolThreads(), ["alpha", "beta"], lambda name: True, TURN, 30, needs_approval=asking.__contains__
    )
    assert [tools.needs_approval(name) for name in ("alpha", "beta")] == [False, True]
    asking.add("alpha")
    assert tools.needs_approval("alpha")


async def test_a_call_gets_the_turns_context_with_its_own_id() -> None:
    outcome = await box(["beta"]).run(ToolCall("call_1", "beta"), step=1)
    assert outcome == CallOutcome(dataclasses.replace(TURN, call_id="call_1").idempotency_key)


async def test_a_halt_comes_through() -> None:
    assert await box(["alpha"]).run(ToolCall("c", "alpha"), 1) == CallOutcome("enough", halts=True)


async def test_a_time_limit_comes_through() -> None:
    outcome = await box(["gamma"]).run(ToolCall("c", "gamma"), 1)
    assert outcome.cut
    assert outcome.is_error


async def test_a_tool_that_is_not_there_is_said_to_be_missing() -> None:
    outcome = await box(["alpha"]).run(ToolCall("c", "beta"), 1)
    assert outcome == CallOutcome(sentences.tool_not_available("beta"), is_error=True)


async def test_a_call_that_could_not_run_is_refused_beforehand() -> None:
    tools = box(["alpha"])
    assert tools.refuse(ToolCall("c", "alpha")) is None
    refused = tools.refuse(ToolCall("c", "alpha", {"x": 1}))
    assert refused is not None
    assert refused == await tools.run(ToolCall("c", "alpha", {"x": 1}), 1)
    assert tools.refuse(ToolCall("c", "beta")) == await tools.run(ToolCall("c", "beta"), 1)


async def test_it_knows_how_many_of_its_calls_are_in_a_thread() -> None:
    gate = threading.Event()

    @tool(timeout=0.01)
    def hang() -> None:
        gate.wait()

    shared = ToolThreads()
    registry = ToolRegistry([hang])
    mine, other = (
        TurnToolbox(registry, shared, ["hang"], lambda name: True, TURN, 30, needs_approval=nobody_is_asked)
        for _ in range(2)
    )
    assert mine.in_threads == 0
    await mine.run(ToolCall("c", "hang"), 1)
    assert (mine.in_threads, other.in_threads) == (1, 0)
    gate.set()
    while mine.in_threads:  # noqa: ASYNC110 - nothing tells us, and nothing but the test wants to know
        await asyncio.sleep(0)
