"""The three lists of tools, from the profile to what a model is offered and what runs when it calls all the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from insika.agents.profile import load_profile
from insika.errors import InvalidConfiguration
from insika.ports import ModelEvent, ModelRequest, ToolSpec
from insika.providers.script import Call, Calls, Say
from insika.testing import Script, ScriptedModel
from insika.tools.python_tools import tool
from insika.tools.tool import Tool
from tests.actor_world import Gate, profile

EVERY = {"look", "pay", "put", "refund", "credit", "browse"}
"""`refund` and `credit` are of the group `money`, `browse` is of `shelves`, the others of none."""


class Offering:
    """Remembers which tools each request offers, and calls others all the same."""

    def __init__(self, script: Script) -> None:
        self.model = ScriptedModel(script)
        self.offered: list[list[str]] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.offered.append([spec.name for spec in request.tools])
        async for event in self.model.stream(replace(request, tools=[ToolSpec("any", "", {})])):
            yield event


class Till:
    def __init__(self) -> None:
        self.ran: set[str] = set()

    def tools(self) -> list[Tool]:
        @tool(group="money")
        def refund(n: int) -> str:
            self.ran.add("refund")
            return "refunded"

        @tool(group="money")
        def credit(n: int) -> str:
            self.ran.add("credit")
            return "credited"

        @tool(group="shelves")
        def browse(n: int) -> str:
            self.ran.add("browse")
            return "browsed"

        return [refund, credit, browse]


LISTS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, EVERY),
    ({"tools_allow": []}, set()),
    ({"tools_allow": ["look", "refund"]}, {"look", "refund"}),
    ({"tools_allow": ["look", "Refund", "refund "]}, {"look"}),
    ({"tools_allow": ["nowhere"]}, set()),
    ({"tools_allow_groups": []}, set()),
    ({"tools_allow_groups": ["money"]}, {"refund", "credit"}),
    ({"tools_allow_groups": ["Money", "none"]}, set()),
    ({"tools_allow": ["look"], "tools_allow_groups": ["money"]}, {"look", "refund", "credit"}),
    ({"tools_allow": [], "tools_allow_groups": ["shelves"]}, {"browse"}),
    ({"tools_allow": ["look"], "tools_allow_groups": []}, {"look"}),
    ({"tools_deny": []}, EVERY),
    ({"tools_deny": ["pay", "refund"]}, EVERY - {"pay", "refund"}),
    ({"tools_allow": ["look", "pay"], "tools_deny": ["pay"]}, {"look"}),
    ({"tools_allow_groups": ["money"], "tools_deny": ["refund"]}, {"credit"}),
    ({"tools_allow": ["look"], "tools_deny": ["look"]}, set()),
    ({"tools_deny": ["money"]}, EVERY),
    ({"policies": ["tool_allowlist"]}, EVERY),
    ({"policies": [], "tools_allow": ["look"]}, {"look"}),
    ({"policies": ["tool_allowlist"], "tools_allow": ["look"]}, {"look"}),
]


@pytest.mark.parametrize(("lists", "allowed"), LISTS, ids=[str(lists) for lists, _ in LISTS])
async def test_what_is_not_allowed_is_neither_offered_nor_run(place_for, lists, allowed) -> None:
    calls = Calls(tuple(Call(name, {"n": at}) for at, name in enumerate(sorted(EVERY))))
    place, till = place_for(Script([calls, Say("Done.")])), Till()
    model = Offering(place.script)
    process = await place.process(profile(**lists), model=model, tools=till.tools())
    await process.send("do everything")
    await process.idle()

    assert await process.answers() == ["Done."]
    assert model.offered == [sorted(allowed)] * 2
    assert till.ran | {name for name, _, _ in place.shop.ran} == allowed
    results = {each.tool_call_id: each for each in await process.messages() if each.role == "tool"}
    (announced,) = [each for each in await process.messages() if each.tool_calls]
    refused = {call.name for call in announced.tool_calls if results[call.id].is_error}
    assert refused == EVERY - allowed


@pytest.mark.parametrize("key", ["tools_allow", "tools_allow_groups", "tools_deny"])
def test_null_is_neither_all_nor_none(key: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile(profile(**{key: None}), "test")
    assert [path for path, _ in caught.value.problems] == [key]


async def test_a_tool_that_is_denied_while_its_turn_runs_is_not_run_any_more(place_for) -> None:
    place = place_for(Script([Call("look", {"n": 1}), Call("pay", {"n": 2}), Say("Done.")]))
    model = Offering(place.script)
    process = await place.process(profile(), model=model)
    place.shop.gates["look", 1] = gate = Gate()
    await process.send("pay")
    await gate.reached()
    await process.begin([profile(tools_deny=["pay"])])
    gate.open()
    await process.idle()
    assert place.shop.count("pay") == 0
    assert model.offered == [["look", "pay", "put"]] * 3  # what was sent before must not change
    assert await process.answers() == ["Done."]


async def test_a_tool_that_is_allowed_while_its_turn_runs_waits_for_the_next_one(place_for) -> None:
    place = place_for(Script([Call("look", {"n": 1}), Call("pay", {"n": 2}), Say("Done.")]))
    process = await place.process(profile(tools_allow=["look"]))
    place.shop.gates["look", 1] = gate = Gate()
    await process.send("pay")
    await gate.reached()
    await process.begin([profile()])
    gate.open()
    await process.idle()
    assert place.shop.count("pay") == 0
