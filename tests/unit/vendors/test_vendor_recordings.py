"""The recorded usage of each vendor: cited, consistent with the vendor's own sums, and sent as recorded."""

from __future__ import annotations

from typing import Any

import pytest

from insika.providers.script import Say, Script
from tests.unit.vendors.test_vendors_with_the_sdks import claude, collect, gpt
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, serving
from tests.vendors.recordings import Recording, recordings
from tests.vendors.steps import Charge

ALL = recordings()
each = pytest.mark.parametrize("recording", ALL, ids=[f"{one.vendor}: {one.name}" for one in ALL])


@each
def test_a_recording_adds_up_as_its_vendor_says(recording: Recording) -> None:
    expected = recording.expected
    assert recording.source.startswith("https://")
    prompt = expected.input + expected.cache_read + expected.cache_write
    if recording.vendor == "anthropic":
        parts = [recording.usage.get(name, {}) for name in ("start", "end", "whole")]
        last = {key: value for part in parts for key, value in part.items() if value is not None}
        cached = last.get("cache_read_input_tokens", 0) + last.get("cache_creation_input_tokens", 0)
        assert prompt == last["input_tokens"] + cached
        assert expected.output == last["output_tokens"]
        assert recording.streamed == ("whole" not in recording.usage)
    else:
        assert prompt == recording.usage["prompt_tokens"]
        assert expected.output == recording.usage["completion_tokens"]
        assert expected.total == recording.usage["total_tokens"]


def test_each_vendor_is_recorded_streamed_and_whole_with_what_its_cache_can_do() -> None:
    for vendor in ("anthropic", *Dialect):
        mine = [one for one in ALL if one.vendor == vendor]
        assert {one.streamed for one in mine} == {True, False}, vendor
        assert any(one.expected.cache_read for one in mine) == (vendor != Dialect.OLLAMA), vendor
        writes = any(one.expected.cache_write for one in mine)
        assert writes == (vendor in ("anthropic", Dialect.OPENAI, Dialect.OPENROUTER)), vendor


@each
async def test_a_recording_arrives_as_it_was_recorded(recording: Recording) -> None:
    script = Script([Charge(Say("Hello."), recording.usage)])  # type: ignore[list-item]
    asks: Any = [{"role": "user", "content": "Hi"}]
    if recording.vendor == "anthropic":
        async with serving(AnthropicVendor(script)) as vendor, claude(vendor) as client:
            options: Any = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": asks}
            if recording.streamed:
                events = [event async for event in await client.messages.create(stream=True, **options)]
                got = {"start": events[0].message.usage, "end": events[-2].usage}
            else:
                got = {"whole": (await client.messages.create(**options)).usage}
        assert {name: usage.to_dict() for name, usage in got.items()} == recording.usage
        return
    async with serving(OpenAIVendor(script, Dialect(recording.vendor))) as other, gpt(other) as client2:
        options = {"model": "gpt-4o", "messages": asks}
        if recording.streamed:
            stream = await client2.chat.completions.create(
                stream=True, stream_options={"include_usage": True}, **options
            )
            usage = (await collect(stream))["usage"]
        else:
            usage = (await client2.chat.completions.create(**options)).usage
    assert usage.to_dict() == recording.usage
