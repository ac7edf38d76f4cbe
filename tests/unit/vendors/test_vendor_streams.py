"""The streams of the fakes: which events come, in which order, and where usage stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from insika.providers.script import Call, Say
from tests.unit.vendors import test_vendor_rules_of_anthropic as anthropic_case
from tests.unit.vendors.scripts_for_vendors import SCRIPT
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, Seen
from tests.vendors.spoken import spoken
from tests.vendors.steps import CutOff, Decline, Think

ASKS = {"role": "user", "content": "Hi"}
SAID = Think("Hm.", Call("order_lookup", {"n": 1}, text="Well."))


def claude_says(step: object, **options: object) -> list[dict[str, Any]]:
    vendor = AnthropicVendor(SCRIPT)
    body = {
        "model": "claude-haiku-4-5",
        "max_tokens": 4096,
        "tools": [anthropic_case.TOOL],
        "messages": [ASKS],
        **options,
    }
    seen = anthropic_case.judged(body, vendor)
    assert seen.refusals == ()
    return [json.loads(event.partition(b"data: ")[2]) for event in vendor.speak(seen, spoken(step)).events]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Types in order, the deltas of one block as one."""
    found: list[str] = []
    for event in events:
        inner = event.get("delta") or event.get("content_block") or {}
        kind = f"{event['type']} {inner.get('type', '')}".strip()
        if not found or found[-1] != kind:
            found.append(kind)
    return found


def test_a_message_comes_in_the_documented_order() -> None:
    assert kinds(claude_says(SAID, thinking={"type": "enabled", "budget_tokens": 1024})) == [
        "message_start",
        "content_block_start thinking",
        "content_block_delta thinking_delta",
        "content_block_delta signature_delta",
        "content_block_stop",
        "ping",
        "content_block_start text",
        "content_block_delta text_delta",
        "content_block_stop",
        "content_block_start tool_use",
        "content_block_delta input_json_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_usage_begins_with_the_input_and_ends_with_all_of_it() -> None:
    events = claude_says(Say("Hello."))
    start, end = events[0]["message"]["usage"], events[-2]["usage"]
    assert start["input_tokens"] == end["input_tokens"] > 0
    assert (start["output_tokens"], end["output_tokens"]) == (1, 2)


@pytest.mark.parametrize(
    ("model", "thinking", "shown"),
    [
        ("claude-opus-5-5", {"type": "adaptive"}, False),
        ("claude-opus-5-5", {"type": "adaptive", "display": "summarized"}, True),
        ("claude-opus-5", {"type": "adaptive"}, True),
        ("claude-opus-5", {"type": "adaptive", "display": "omitted"}, False),
    ],
)
def test_thinking_that_is_not_shown_is_a_signature_alone(model: str, thinking: dict[str, str], shown: bool) -> None:
    found = kinds(claude_says(SAID, model=model, thinking=thinking))
    assert "content_block_delta signature_delta" in found
    assert ("content_block_delta thinking_delta" in found) == shown


def test_thinking_follows_the_request_and_the_models_own_habit() -> None:
    def thinks(**options: object) -> bool:
        return "content_block_start thinking" in kinds(claude_says(SAID, **options))

    assert not thinks()
    assert thinks(model="claude-sonnet-5-5")
    assert not thinks(model="claude-sonnet-5-5", thinking={"type": "between_tools"})
    assert not thinks(model="claude-opus-5", thinking={"type": "disabled"})


def test_redacted_thinking_comes_whole() -> None:
    events = claude_says(Think("Hm.", Say("Well."), hidden=True), model="claude-opus-5")
    assert kinds(events)[1:3] == ["content_block_start redacted_thinking", "content_block_stop"]


@pytest.mark.parametrize(
    ("step", "claude_stops", "gpt_stops"),
    [
        (Say("x"), "end_turn", "stop"),
        (Call("order_lookup"), "tool_use", "tool_calls"),
        (CutOff(Call("order_lookup", {"n": 1})), "max_tokens", "length"),
        (CutOff(Say("a long text")), "max_tokens", "length"),
        (Decline("I would rather"), "refusal", "content_filter"),
    ],
)
def test_both_say_why_they_stopped(step: object, claude_stops: str, gpt_stops: str) -> None:
    assert claude_says(step)[-2]["delta"]["stop_reason"] == claude_stops
    chunks = gpt_says(Dialect.OPENAI, step)
    assert [one["choices"][0]["finish_reason"] for one in chunks if one["choices"]][-1] == gpt_stops


def gpt_says(dialect: Dialect, step: object, *, usage: bool = True) -> list[dict[str, Any]]:
    vendor = OpenAIVendor(SCRIPT, dialect)
    body = {"model": "gpt-4o", "stream": True, "messages": [ASKS], "stream_options": {"include_usage": usage}}
    seen = Seen(0, "POST", "/", {"content-type": "application/json"}, json.dumps(body).encode())
    assert vendor.judge(seen, vendor.key) == []
    events = vendor.speak(seen, spoken(step)).events
    assert events[-1] == b"data: [DONE]\n\n"
    return [json.loads(event.removeprefix(b"data: ")) for event in events[:-1] if event.startswith(b"data: ")]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_usage_comes_once_and_where_the_vendor_puts_it(dialect: Dialect) -> None:
    chunks = gpt_says(dialect, Say("Hello."))
    assert [bool(one.get("usage")) for one in chunks] == [False] * (len(chunks) - 1) + [True]
    assert bool(chunks[-1]["choices"]) == (dialect is Dialect.DEEPSEEK)
    assert all(("usage" in one) == (dialect is Dialect.OPENAI) for one in chunks[:-1])


@pytest.mark.parametrize("dialect", list(Dialect))
def test_usage_that_was_not_asked_for_comes_from_openrouter_alone(dialect: Dialect) -> None:
    chunks = gpt_says(dialect, Say("Hello."), usage=False)
    assert any(one.get("usage") for one in chunks) == (dialect is Dialect.OPENROUTER)


def test_the_ids_of_calls_look_as_each_vendor_makes_them() -> None:
    def id_of(dialect: Dialect) -> str:
        chunks = gpt_says(dialect, Call("order_lookup"))
        return str(
            next(one["choices"][0]["delta"]["tool_calls"][0]["id"] for one in chunks if "tool_calls" in str(one))
        )

    assert len(id_of(Dialect.VLLM)) == 46, "longer than OpenAI takes"
    assert id_of(Dialect.OPENAI).startswith("call_")
    assert claude_says(Call("order_lookup"))[1]["content_block"]["id"].startswith("toolu_01")


def test_comments_keep_a_stream_alive() -> None:
    for dialect, word in (
        (Dialect.DEEPSEEK, b": keep-alive\n\n"),
        (Dialect.OPENROUTER, b": OPENROUTER PROCESSING\n\n"),
    ):
        vendor = OpenAIVendor(SCRIPT, dialect)
        body = {"model": "m", "stream": True, "messages": [ASKS]}
        seen = Seen(0, "POST", "/", {"content-type": "application/json"}, json.dumps(body).encode())
        vendor.judge(seen, vendor.key)
        events = vendor.speak(seen, spoken(Say("Hello."))).events
        assert [at for at, event in enumerate(events) if event == word] == [0, 2]
