"""Each rule of the fake Chat Completions API, against a request that breaks that rule and nothing else."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.vendors.scripts_for_vendors import SCRIPT
from tests.unit.vendors.test_vendor_rules_of_anthropic import Body, Change, all_of, put
from tests.vendors import Dialect, OpenAIVendor, Seen

RULES = Path(__file__).parents[2] / "vendors" / "openai"
HEADERS = {"content-type": "application/json"}
TOOL = {"type": "function", "function": {"name": "order_lookup", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "order_lookup", "arguments": '{"order": "1"}'}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "here"}


def conversation(model: str = "gpt-4o") -> Body:
    other = {**CALL, "id": "call_2"}
    return {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [copy.deepcopy(TOOL)],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": [{"type": "text", "text": "Two orders!"}]},
            {"role": "assistant", "content": None, "tool_calls": [copy.deepcopy(CALL), copy.deepcopy(other)]},
            dict(RESULT),
            {**RESULT, "tool_call_id": "call_2"},
            {"role": "user", "content": "hurry"},
        ],
    }


def judged(body: Body, dialect: Dialect = Dialect.OPENAI, *, key: str | None = "", **headers: str) -> Seen:
    vendor = OpenAIVendor(SCRIPT, dialect)
    shown = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    seen = Seen(0, "POST", "/v1/chat/completions", shown, json.dumps(body).encode())
    seen.refusals = tuple(vendor.judge(seen, vendor.key if key == "" else key))
    return seen


def both_ids(value: object) -> Change:
    return all_of(put("messages.4.tool_calls.0.id", value), put("messages.5.tool_call_id", value))


def plain(**fields: object) -> Change:
    """Without calls and tools."""

    def change(body: Body) -> None:
        del body["tools"]
        body["messages"] = body["messages"][:2]
        body.update(fields)

    return change


def add(at: int, message: dict[str, Any]) -> Change:
    return lambda body: body["messages"].insert(at, dict(message))


def move(there: int, here: int) -> Change:
    return lambda body: body["messages"].insert(here, body["messages"].pop(there))


def swap(body: Body) -> None:
    messages = body["messages"]
    messages[5], messages[6] = messages[6], messages[5]


BREAKS: list[tuple[str, str, Change]] = [
    ("model", "an unknown one", put("model", "gpt-7-imagined")),
    ("extra-field", "an unknown field", put("thinking", {"type": "enabled"})),
    ("extra-field", "an unknown field of a message", put("messages.2.reasoning_content", "Hm.")),
    ("extra-field", "an error mark on a result", put("messages.5.is_error", True)),
    ("extra-field", "an unknown field of a tool", put("tools.0.group", "x")),
    ("stream", "no boolean", all_of(put("stream", "yes"))),
    ("stream-options", "without a stream", put("stream", False)),
    ("n", "two answers", put("n", 2)),
    ("limit-twice", "both limits", all_of(put("max_tokens", 9), put("max_completion_tokens", 9))),
    ("limit-name", "max_tokens on a model that reasons", plain(model="gpt-5", max_tokens=9)),
    ("limit-name", "max_tokens on an o model", plain(model="o3", max_tokens=9)),
    ("limit-range", "zero", put("max_tokens", 0)),
    ("limit-range", "more than the model gives", put("max_completion_tokens", 16385)),
    ("effort", "on a model that does not reason", put("reasoning_effort", "low")),
    ("effort", "none on an early model", plain(model="gpt-5", reasoning_effort="none")),
    ("effort", "minimal on a later model", plain(model="gpt-5.1", reasoning_effort="minimal")),
    ("effort-with-tools", "asked for", all_of(put("model", "gpt-5.4"), put("reasoning_effort", "low"))),
    ("effort-with-tools", "by default", put("model", "gpt-5.6")),
    ("sampling", "a temperature with reasoning", plain(model="gpt-5", temperature=0.2)),
    ("empty-conversation", "no messages", all_of(plain(messages=[]))),
    ("shape", "a message that is none", put("messages.3", "Hi")),
    ("shape", "a call that is no function", put("messages.4.tool_calls.0.type", "custom")),
    ("shape", "a tool that is no function", put("tools.0.type", "custom")),
    ("role", "an unknown one", put("messages.3.role", "customer")),
    ("content", "null of a user", put("messages.3.content", None)),
    ("content", "a number", put("messages.5.content", 7)),
    ("empty-content", "no parts", put("messages.3.content", [])),
    ("empty-content", "an assistant who says nothing", put("messages.2.content", "")),
    ("part-kind", "an image of a tool", put("messages.5.content", [{"type": "image_url"}])),
    ("empty-calls", "no calls", put("messages.2.tool_calls", [])),
    ("id-form", "too long", both_ids("chatcmpl-tool-8174c6dc1d3047b3953aa8f422063ddb")),
    ("id-form", "empty", both_ids("")),
    ("id-unique", "one id twice", put("messages.4.tool_calls.1.id", "call_1")),
    ("name-form", "a dot in it", put("messages.4.tool_calls.0.function.name", "order.lookup")),
    ("arguments", "an object", put("messages.4.tool_calls.0.function.arguments", {})),
    ("system-place", "in the middle", move(0, 3)),
    ("system-place", "two of them", add(1, {"role": "developer", "content": "Now."})),
    ("ends-with-assistant", "a prefill", add(8, {"role": "assistant", "content": "So"})),
    ("missing-result", "one left out", put("messages.6", ...)),
    (
        "missing-result",
        "a user speaks before the second",
        move(7, 6),
    ),
    (
        "strange-result",
        "of another call",
        add(7, {**RESULT, "tool_call_id": "call_9"}),
    ),
    ("double-result", "two of one call", add(7, RESULT)),
    ("result-order", "the other way round", swap),
    ("orphan-result", "no call before it", add(3, RESULT)),
    ("empty-tools", "no tools", put("tools", [])),
    ("needs-tools", "a choice of none", plain(tool_choice="auto")),
    ("needs-tools", "parallel ones of none", plain(parallel_tool_calls=True)),
    ("too-many-tools", "129", lambda body: body.update(tools=[named(n) for n in range(129)])),
    ("tool-unique", "one twice", lambda body: body["tools"].append(body["tools"][0])),
    ("tool-name", "a dot in it", put("tools.0.function.name", "order.lookup")),
    ("tool-schema", "not of an object", put("tools.0.function.parameters", {"type": "string"})),
]
IN_DIALECTS: list[tuple[str, str, Dialect, Change]] = [
    ("role", "developer", Dialect.DEEPSEEK, put("messages.0.role", "developer")),
    ("role", "developer", Dialect.OLLAMA, put("messages.0.role", "developer")),
    ("limit-ignored", "the newer limit", Dialect.DEEPSEEK, put("max_completion_tokens", 9)),
    ("limit-ignored", "the newer limit", Dialect.OLLAMA, put("max_completion_tokens", 9)),
    ("arguments", "no JSON", Dialect.VLLM, put("messages.4.tool_calls.0.function.arguments", '{"order"')),
    ("reasoning-dropped", "in thinking mode", Dialect.DEEPSEEK, put("thinking", {"type": "enabled"})),
    ("reasoning-dropped", "by the model's name", Dialect.DEEPSEEK, put("model", "deepseek-v4-flash")),
]
ALSO = {"a user speaks before the second": {"orphan-result"}, "one id twice": {"strange-result"}, "empty": {"shape"}}
"""What cannot be broken without the other."""
ELSEWHERE = {"key", "content-type", "json", "surrogate"}


def named(number: int) -> dict[str, Any]:
    return {"type": "function", "function": {"name": f"tool_{number}", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_conversation_with_all_that_may_be_in_one_is_taken(dialect: Dialect) -> None:
    assert judged(conversation(), dialect).refusals == ()


@pytest.mark.parametrize(("rule", "how", "change"), BREAKS, ids=[f"{rule}: {how}" for rule, how, _ in BREAKS])
def test_what_breaks_a_rule_is_refused_for_it(rule: str, how: str, change: Change) -> None:
    body = conversation()
    change(body)
    seen = judged(body)
    assert seen.rules == {rule} | ALSO.get(how, set()), [refusal.message for refusal in seen.refusals]


@pytest.mark.parametrize(
    ("rule", "how", "dialect", "change"), IN_DIALECTS, ids=[f"{one[2]} {one[0]}: {one[1]}" for one in IN_DIALECTS]
)
def test_what_breaks_a_rule_of_another_vendor(rule: str, how: str, dialect: Dialect, change: Change) -> None:
    body = conversation("a-model")
    change(body)
    assert judged(body, dialect).rules == {rule}


def test_every_rule_has_something_that_breaks_it() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in RULES.glob("*.py"))
    rules = set(re.findall(r'(?:Refusal|_invalid)\(\s*"([a-z-]+)"', source)) | {"limit-ignored", "extra-field"}
    assert rules == {rule for rule, *_ in [*BREAKS, *IN_DIALECTS]} | ELSEWHERE


@pytest.mark.parametrize(
    ("rule", "headers", "status"),
    [
        ("key", {"key": None}, 401),
        ("key", {"key": "sk-other"}, 401),
        ("content-type", {"content_type": "text/plain"}, 400),
    ],
)
def test_headers_are_judged(rule: str, headers: dict[str, Any], status: int) -> None:
    seen = judged(conversation(), **headers)
    assert [(refusal.rule, refusal.status) for refusal in seen.refusals] == [(rule, status)]


def test_a_server_of_ones_own_asks_for_no_key() -> None:
    for dialect in (Dialect.VLLM, Dialect.OLLAMA):
        assert judged(conversation(), dialect, key=None).refusals == ()


@pytest.mark.parametrize(("rule", "raw"), [("json", b"{"), ("json", b"3"), ("surrogate", b'{"model": "\\udc00"}')])
def test_bodies_that_cannot_be_read_are_refused(rule: str, raw: bytes) -> None:
    vendor = OpenAIVendor(SCRIPT)
    (refusal,) = vendor.judge(Seen(0, "POST", "/v1/chat/completions", HEADERS, raw), vendor.key)
    assert refusal.rule == rule


@pytest.mark.parametrize("effort", ["none", None])
def test_tools_are_taken_where_nothing_is_reasoned(effort: str | None) -> None:
    model = "gpt-5.6" if effort else "gpt-5.4"
    body = {**conversation(model), **({"reasoning_effort": effort} if effort else {})}
    assert judged(body).refusals == ()


def test_reasoning_that_goes_back_is_taken() -> None:
    body = conversation("deepseek-v4-pro")
    body["messages"][4]["reasoning_content"] = ""
    assert judged(body, Dialect.DEEPSEEK).refusals == ()
