"""What these tests ask of chat completions, and the fakes that they ask."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from insika.clock import ManualClock
from insika.errors import ProviderError
from insika.messages import Message, ToolCall, assistant, tool_result, user
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta, ThinkingDelta, ToolSpec
from insika.providers.endpoint import Dialect, Endpoint, Kind
from insika.providers.openai.provider import OpenAIProvider
from insika.providers.openai.request import parameters
from tests.unit.vendors.scripts_for_vendors import SCRIPT
from tests.vendors import Dialect as Fake
from tests.vendors import OpenAIVendor, Seen, serving

HOUSE = {
    Fake.OPENAI: Dialect.OPENAI,
    Fake.DEEPSEEK: Dialect.DEEPSEEK,
    Fake.OPENROUTER: Dialect.OPENROUTER,
    Fake.VLLM: Dialect.COMPATIBLE,
    Fake.OLLAMA: Dialect.COMPATIBLE,
}
"""The dialect in which each fake is spoken to."""
MODELS = {
    Fake.OPENAI: "gpt-5.1",
    Fake.DEEPSEEK: "deepseek-v4-pro",
    Fake.OPENROUTER: "anthropic/claude-opus-5",
    Fake.VLLM: "qwen3",
    Fake.OLLAMA: "gpt-oss:20b",
}
LOOKUP = ToolSpec(
    "order_lookup",
    "Finds an order.",
    {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
)
REFUND = ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {}})
ORDER = "Where is my order?"


def asked(*messages: Message, fake: Fake = Fake.OPENAI, **changes: Any) -> ModelRequest:
    """A request of two tools to a model of that vendor."""
    values: dict[str, Any] = {
        "model": MODELS[fake],
        "instructions": "Be kind.",
        "messages": messages or (user(ORDER),),
        "tools": (LOOKUP, REFUND),
        "provider": "there",
    }
    return ModelRequest(**{**values, **changes})


def batch(*calls: ToolCall, text: str = "") -> list[Message]:
    """An assistant's message with these calls, and a result for each."""
    return [assistant(text, *calls), *[tool_result(call.id, f"result of {call.id}") for call in calls]]


def body_of(request: ModelRequest, fake: Fake = Fake.OPENAI) -> dict[str, Any]:
    return parameters(request, HOUSE[fake])


def messages_of(request: ModelRequest, fake: Fake = Fake.OPENAI) -> list[dict[str, Any]]:
    return list(body_of(request, fake)["messages"])


def judged(request: ModelRequest, fake: Fake) -> Seen:
    """The request as the fake has read and judged it."""
    vendor = OpenAIVendor(SCRIPT, fake)
    raw = json.dumps(body_of(request, fake), ensure_ascii=False).encode()
    seen = Seen(0, "POST", "/", {"content-type": "application/json"}, raw)
    seen.refusals = tuple(vendor.judge(seen, vendor.key))
    return seen


def endpoint_of(vendor: OpenAIVendor, **changes: Any) -> Endpoint:
    values = {"name": "there", "base_url": vendor.base_url, "key": vendor.key, "dialect": HOUSE[vendor.dialect]}
    return Endpoint(**{"kind": Kind.OPENAI, **values, **changes})


@contextlib.asynccontextmanager
async def speaking(
    script: Any = SCRIPT, fake: Fake = Fake.OPENAI, **options: Any
) -> AsyncIterator[tuple[OpenAIVendor, OpenAIProvider]]:
    """A fake vendor, and the provider that speaks to it."""
    async with serving(OpenAIVendor(script, fake, **options)) as vendor:
        provider = OpenAIProvider(endpoint_of(vendor), ManualClock())
        try:
            yield vendor, provider
        finally:
            await provider.aclose()


async def all_of(provider: OpenAIProvider, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in provider.stream(request)]


async def answer_of(provider: OpenAIProvider, request: ModelRequest) -> Finished:
    """The last event, when what came before it is in order."""
    events = await all_of(provider, request)
    last = events[-1]
    assert isinstance(last, Finished)
    assert not any(isinstance(event, Finished) for event in events[:-1])
    assert said(events) == last.message.content
    return last


async def failure_of(provider: OpenAIProvider, request: ModelRequest) -> tuple[ProviderError, list[ModelEvent]]:
    """How it failed, and what came before that."""
    events: list[ModelEvent] = []
    try:
        async for event in provider.stream(request):
            events.append(event)
    except ProviderError as error:
        return error, events
    raise AssertionError(f"it did not fail: {events}")


def said(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thought(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ThinkingDelta))


def chunk(
    delta: Mapping[str, Any] | None = None, finish: str | None = None, usage: Any = None, **more: Any
) -> dict[str, Any]:
    """One event of a stream."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice], "usage": usage, **more}


def call_piece(arguments: str | None = None, **more: Any) -> dict[str, Any]:
    """A delta with a piece of one call; `name` goes into its function."""
    function = {key: value for key, value in {"name": more.pop("name", None), "arguments": arguments}.items() if value}
    return {"tool_calls": [{**more, "function": function}]}
