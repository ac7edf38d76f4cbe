from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.samples.demo_tools import demo_tools
from insika.messages import ToolCall
from insika.tools.invoke import ToolOutcome, run_tool
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads
from insika.tools.tool import ToolContext

CONTEXT = ToolContext("", "s", "a", "t", "c")


async def run(registry: ToolRegistry, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
    tool = registry.get(name)
    assert tool is not None
    return await run_tool(tool, ToolCall("c", name, arguments), CONTEXT, 30, ToolThreads())


def test_only_the_refund_changes_something() -> None:
    assert {tool.name: tool.side_effect for tool in demo_tools()} == {
        "order_lookup": False,
        "stock_check": False,
        "refund": True,
    }


async def test_each_run_is_written_down_once() -> None:
    journal: list[tuple[str, Mapping[str, Any]]] = []
    registry = ToolRegistry(demo_tools(lambda name, run: journal.append((name, run))))
    await run(registry, "order_lookup", {"order_id": "1234"})
    await run(registry, "stock_check", {"title": "x"})
    await run(registry, "refund", {"order_id": "1234"})
    who = {"call_id": "c", "turn_id": "t", "idempotency_key": CONTEXT.idempotency_key}
    assert journal == [
        ("order_lookup", {**who, "order_id": "1234"}),
        ("stock_check", {**who, "title": "x"}),
        ("refund", {**who, "order_id": "1234"}),
    ]


async def test_a_call_that_is_refused_is_not_written_down() -> None:
    journal: list[str] = []
    registry = ToolRegistry(demo_tools(lambda name, run: journal.append(name)))
    assert (await run(registry, "refund", {"order_id": "all of them"})).is_error
    assert journal == []


async def test_the_data_is_the_same_each_time() -> None:
    first, again = ToolRegistry(demo_tools()), ToolRegistry(demo_tools())
    for name, arguments in (("order_lookup", {"order_id": "77"}), ("order_lookup", {"order_id": "1234"})):
        assert await run(first, name, arguments) == await run(again, name, arguments)
    assert (await run(first, "order_lookup", {"order_id": "1200"})).content == '{"order_id":"1200","found":false}'
