"""The fakes and the vendors' own SDKs: what the SDKs send is taken, and they can read what is said."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from tests.unit.vendors.scripts_for_vendors import LOOKUP, SCRIPT
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, serving

SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
BUDGET = {"type": "enabled", "budget_tokens": 1024}
MANUAL = {"model": "claude-haiku-4-5", "max_tokens": 2048, "thinking": BUDGET}
ADAPTIVE = {"model": "claude-opus-5-5", "max_tokens": 2048, "thinking": {"type": "adaptive", "display": "summarized"}}
PLAIN = {"model": "claude-haiku-4-5", "max_tokens": 100}
TOOL: Any = {"name": "order_lookup", "description": "Finds an order.", "input_schema": SCHEMA}
FUNCTION: Any = {
    "type": "function",
    "function": {"name": "order_lookup", "description": "Finds an order.", "parameters": SCHEMA},
}


def claude(vendor: AnthropicVendor) -> anthropic.AsyncAnthropic:
    key = vendor.key
    client = anthropic.DefaultAioHttpClient()
    return anthropic.AsyncAnthropic(api_key=key, base_url=vendor.base_url, max_retries=0, http_client=client)


def gpt(vendor: OpenAIVendor) -> openai.AsyncOpenAI:
    key = vendor.key
    client = openai.DefaultAioHttpClient()
    return openai.AsyncOpenAI(api_key=key, base_url=vendor.base_url, max_retries=0, http_client=client)


@pytest.mark.parametrize("options", [PLAIN, MANUAL, ADAPTIVE], ids=["plain", "manual thinking", "bound thinking"])
@pytest.mark.parametrize("shred", [None, 3], ids=["whole events", "three bytes at a time"])
async def test_anthropics_sdk_holds_a_conversation_with_a_tool_call(options: Any, shred: int | None) -> None:
    async with serving(AnthropicVendor(SCRIPT, cache_minimum=0)) as vendor, claude(vendor) as client:
        vendor.shred = shred
        system: Any = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
        messages: Any = [{"role": "user", "content": "Where is my order?"}]
        async with client.messages.stream(system=system, messages=messages, tools=[TOOL], **options) as stream:
            called = await stream.get_final_message()
        assert called.stop_reason == "tool_use"
        call = called.content[-1]
        assert call.type == "tool_use"
        assert call.input == dict(LOOKUP.arguments)
        assert ("thinking" in options) == (called.content[0].type == "thinking")

        messages.append(called.to_param())
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "in the van"}
        messages.append({"role": "user", "content": [result, {"type": "text", "text": "order, quick!"}]})
        async with client.messages.stream(system=system, messages=messages, tools=[TOOL], **options) as stream:
            answer = await stream.get_final_message()
        assert answer.content[-1].type == "text"
        assert answer.content[-1].text == "It left today. 😀"
        assert answer.stop_reason == "end_turn"
        assert [seen.rules for seen in vendor.requests] == [frozenset(), frozenset()]
        assert (answer.usage.cache_read_input_tokens or 0) > 0


async def test_anthropics_sdk_reads_a_whole_answer_and_the_vendors_errors() -> None:
    async with serving(AnthropicVendor(SCRIPT)) as vendor, claude(vendor) as client:
        said = await client.messages.create(messages=[{"role": "user", "content": "Hi"}], **PLAIN)  # type: ignore[call-overload]
        assert said.content[0].text == "Hello there."
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(messages=[{"role": "user", "content": " "}], **PLAIN)  # type: ignore[call-overload]
        assert caught.value.type == "invalid_request_error"
        assert vendor.requests[1].rules == {"blank-text"}
        assert "x-api-key" not in vendor.requests[0].headers
        assert vendor.requests[0].headers["anthropic-version"] == "2026-10-21"


@pytest.mark.parametrize("dialect", list(Dialect))
async def test_openais_sdk_holds_a_conversation_with_a_tool_call(dialect: Dialect) -> None:
    vendor = OpenAIVendor(SCRIPT, dialect, cache_minimum=0)
    options: Any = {"model": "gpt-5.1", "tools": [FUNCTION], "stream": True, "stream_options": {"include_usage": True}}
    if dialect is Dialect.DEEPSEEK:
        options["model"] = "deepseek-reasoner"
    async with serving(vendor), gpt(vendor) as client:
        messages: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where is my order?"}]
        called = await collect(await client.chat.completions.create(messages=messages, **options))
        assert called["finish"] == "tool_calls"
        (call,) = called["calls"]
        assert json.loads(call["arguments"]) == dict(LOOKUP.arguments)
        assert call["name"] == "order_lookup"
        assert bool(called["reasoning"]) == (dialect is not Dialect.OPENAI)

        function = {"name": call["name"], "arguments": call["arguments"]}
        announced: Any = {"role": "assistant", "content": called["text"]}
        announced["tool_calls"] = [{"id": call["id"], "type": "function", "function": function}]
        if dialect is Dialect.DEEPSEEK:
            announced["reasoning_content"] = called["reasoning"]
        messages += [announced, {"role": "tool", "tool_call_id": call["id"], "content": "in the van"}]
        answer = await collect(await client.chat.completions.create(messages=messages, **options))
        assert answer["text"] == "It left today. 😀"
        assert answer["finish"] == "stop"
        assert [seen.rules for seen in vendor.requests] == [frozenset(), frozenset()]
        assert vendor.requests[1].usage.cache_read > 0
        assert answer["usage"].prompt_tokens == vendor.requests[1].usage.total - vendor.requests[1].usage.output
        assert "authorization" not in vendor.requests[0].headers


async def collect(stream: Any) -> dict[str, Any]:
    """What a client makes of the chunks."""
    found: dict[str, Any] = {"text": "", "reasoning": "", "calls": [], "finish": None, "usage": None}
    async for chunk in stream:
        found["usage"] = chunk.usage or found["usage"]
        for choice in chunk.choices:
            found["finish"] = choice.finish_reason or found["finish"]
            found["text"] += choice.delta.content or ""
            extra = choice.delta.model_extra or {}
            found["reasoning"] += extra.get("reasoning_content") or extra.get("reasoning") or ""
            for call in choice.delta.tool_calls or []:
                if call.index == len(found["calls"]):
                    found["calls"].append({"id": call.id, "name": call.function.name, "arguments": ""})
                found["calls"][call.index]["arguments"] += call.function.arguments or ""
    return found


async def test_a_call_that_hits_the_output_limit_is_half_said() -> None:
    half = '{"order": "A-17", "why"'
    async with serving(AnthropicVendor(SCRIPT)) as vendor, claude(vendor) as client:
        messages: Any = [{"role": "user", "content": "a long one"}]
        raw = ""
        stream: Any = await client.messages.create(messages=messages, tools=[TOOL], stream=True, **PLAIN)  # type: ignore[call-overload]
        async for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                raw += event.delta.partial_json
            if event.type == "message_delta":
                assert event.delta.stop_reason == "max_tokens"
        assert raw == half
    async with serving(OpenAIVendor(SCRIPT)) as vendor2, gpt(vendor2) as client2:
        said = await collect(
            await client2.chat.completions.create(model="gpt-4o", messages=messages, tools=[FUNCTION], stream=True)
        )
        assert said["calls"][0]["arguments"] == half
        assert said["finish"] == "length"
        assert said["usage"] is None
