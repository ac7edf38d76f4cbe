"""The house's own scripts, spoken by a fake vendor: the same steps, in any number of sessions at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from insika.messages import Role
from insika.providers.scene import Scene
from insika.providers.script import Call, Calls, Say, Script
from insika.turn.sentences import MARK
from tests.unit.vendors import test_vendor_rules_of_anthropic as anthropic_case
from tests.unit.vendors import test_vendor_rules_of_openai as openai_case
from tests.unit.vendors.test_vendors_with_the_sdks import FUNCTION, TOOL, claude, collect, gpt
from tests.vendors import AnthropicVendor, OpenAIVendor, serving
from tests.vendors.steps import Think

TWO = Calls([Call("order_lookup", {"n": 1}), Call("order_lookup", {"n": 2})], text="Both.")
SCRIPT = Script([TWO, lambda scene: Say(f"{scene.text}: {[one.content for one in scene.results]}")])


def test_both_fakes_read_a_conversation_as_the_house_had_it() -> None:
    claudes = AnthropicVendor(SCRIPT).as_house(anthropic_case.conversation())
    gpts = OpenAIVendor(SCRIPT).as_house(openai_case.conversation())
    for request in (claudes, gpts):
        assert [message.role for message in request.messages] == [
            Role.USER,
            Role.ASSISTANT,
            Role.USER,
            Role.ASSISTANT,
            Role.TOOL,
            Role.TOOL,
            Role.USER,
        ]
        assert [message.content for message in request.messages if message.role is Role.USER] == [
            "Hi",
            "Two orders!",
            "hurry",
        ]
        assert request.instructions == "Be kind."
        assert [tool.name for tool in request.tools] == ["order_lookup"]
        scene = Scene.of(request)
        assert scene.said == ("Two orders!", "hurry")
        assert (scene.step, scene.step_since_said) == (1, 0)


def test_a_notice_and_what_people_said_stay_apart() -> None:
    body = anthropic_case.conversation()
    body["messages"][-1]["content"].insert(2, {"type": "text", "text": f"{MARK} two calls are left"})
    scene = Scene.of(AnthropicVendor(SCRIPT).as_house(body))
    assert scene.said == ("Two orders!", "hurry")
    assert [notice.results for notice in scene.notices] == [2]


def test_an_answer_that_thinks_and_calls_only_speaks_where_there_are_no_tools() -> None:
    script = Script([Think("Hm.", TWO)])  # type: ignore[list-item]
    for vendor, case in ((AnthropicVendor(script), anthropic_case), (OpenAIVendor(script), openai_case)):
        body = case.conversation()
        body["messages"] = body["messages"][:1] if case is anthropic_case else body["messages"][:2]
        del body["tools"]
        seen = case.judged(body)
        assert seen.refusals == ()
        said = vendor._ask(seen)
        assert (said.text, said.calls) == ("Both.", ())


async def test_many_sessions_talk_to_one_fake_at_once() -> None:
    async with serving(AnthropicVendor(SCRIPT)) as vendor, claude(vendor) as client:

        async def talk(name: str) -> str:
            messages: Any = [{"role": "user", "content": name}]
            options: Any = {"model": "claude-haiku-4-5", "max_tokens": 100, "tools": [TOOL]}
            called = await client.messages.create(messages=messages, **options)
            ids = [block.id for block in called.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": id, "content": name} for id in ids]
            messages += [called.to_param(), {"role": "user", "content": results}]
            answer = await client.messages.create(messages=messages, **options)
            return str(answer.content[0].text)  # type: ignore[union-attr]

        names = [f"session {number}" for number in range(20)]
        assert await asyncio.gather(*map(talk, names)) == [f"{name}: {[name, name]}" for name in names]
        assert len(vendor.requests) == 40
        assert [seen.number for seen in vendor.requests] == list(range(40))
        assert {seen.rules for seen in vendor.requests} == {frozenset()}


async def test_the_calls_of_one_message_are_told_apart_by_their_index() -> None:
    async with serving(OpenAIVendor(SCRIPT)) as vendor, gpt(vendor) as client:
        asks: Any = [{"role": "user", "content": "both"}]
        options: Any = {"model": "gpt-4o", "messages": asks, "tools": [FUNCTION], "stream": True}
        said = await collect(await client.chat.completions.create(**options))
    assert [call["arguments"] for call in said["calls"]] == ['{"n": 1}', '{"n": 2}']
    assert len({call["id"] for call in said["calls"]}) == 2
    assert said["text"] == "Both."


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5"])
async def test_each_model_can_have_a_script_of_its_own(model: str) -> None:
    scripts = {name: Script([Say(name)]) for name in ("claude-haiku-4-5", "claude-opus-5")}
    async with serving(AnthropicVendor(scripts)) as vendor, claude(vendor) as client:
        asks: Any = [{"role": "user", "content": "who?"}]
        answer = await client.messages.create(model=model, max_tokens=9, messages=asks)
    assert answer.content[0].text == model  # type: ignore[union-attr]
