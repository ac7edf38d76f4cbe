"""Each rule of the fake Messages API, against a request that breaks that rule and nothing else."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from insika.providers.script import Call
from tests.unit.vendors.scripts_for_vendors import SCRIPT
from tests.vendors import AnthropicVendor, Seen
from tests.vendors.seals import Seals
from tests.vendors.spoken import spoken
from tests.vendors.steps import Think

SCRIPT_CALL = Call("order_lookup", {"order": "1"})
Body = dict[str, Any]
Change = Callable[[Body], None]
RULES = Path(__file__).parents[2] / "vendors" / "anthropic"
HEADERS = {"content-type": "application/json", "anthropic-version": "2026-10-21"}
TOOL = {"name": "order_lookup", "description": "x", "input_schema": {"type": "object", "properties": {}}}
CALL = {"type": "tool_use", "id": "toolu_01a", "name": "order_lookup", "input": {"order": "1"}}
MANUAL = {"type": "enabled", "budget_tokens": 2000}
UNSIGNED = {"type": "thinking", "thinking": "Hm."}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_01a", "content": "here"}


def conversation() -> Body:
    """Two calls answered, a steered text behind the results, and an answer before it all."""
    other = {**CALL, "id": "toolu_01b"}
    results = [RESULT, {**RESULT, "tool_use_id": "toolu_01b", "content": [{"type": "text", "text": "there"}]}]
    return {
        "model": "claude-haiku-4-5",
        "max_tokens": 4096,
        "stream": True,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "tools": [copy.deepcopy(TOOL)],
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
            {"role": "user", "content": [{"type": "text", "text": "Two orders!"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, copy.deepcopy(CALL), other]},
            {"role": "user", "content": [*copy.deepcopy(results), {"type": "text", "text": "hurry"}]},
        ],
    }


def judged(body: Body, vendor: AnthropicVendor | None = None, *, key: str | None = "", **headers: str) -> Seen:
    vendor = vendor or AnthropicVendor(SCRIPT)
    shown = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    seen = Seen(0, "POST", "/v1/messages", shown, json.dumps(body).encode())
    seen.refusals = tuple(vendor.judge(seen, vendor.key if key == "" else key))
    return seen


def put(path: str, value: object) -> Change:
    """Sets what a dotted path leads to; `...` removes it."""

    def change(body: Body) -> None:
        *way, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
        at: Any = body
        for step in way:
            at = at[step]
        if value is ...:
            del at[last]
        else:
            at[last] = value

    return change


def all_of(*changes: Change) -> Change:
    def change(body: Body) -> None:
        for one in changes:
            one(body)

    return change


def call_at(index: int, **fields: object) -> Change:
    return lambda body: body["messages"][3]["content"][index].update(fields)


def result_at(index: int, **fields: object) -> Change:
    return lambda body: body["messages"][4]["content"][index].update(fields)


def both_ids(value: str) -> Change:
    return all_of(call_at(1, id=value), result_at(0, tool_use_id=value))


def swap_results(body: Body) -> None:
    content = body["messages"][4]["content"]
    content[0], content[1] = content[1], content[0]


def text_first(body: Body) -> None:
    body["messages"][4]["content"].insert(0, {"type": "text", "text": "first"})


def text_between(body: Body) -> None:
    body["messages"][4]["content"].insert(1, {"type": "text", "text": "between"})


def twice(body: Body) -> None:
    body["messages"][4]["content"].insert(1, copy.deepcopy(RESULT))


def marks(count: int) -> Change:
    def change(body: Body) -> None:
        many = [{"type": "text", "text": str(n), "cache_control": {"type": "ephemeral"}} for n in range(count)]
        body["system"] = many

    return change


def thinking(budget: object) -> Change:
    return all_of(
        put("thinking", {"type": "enabled", "budget_tokens": budget}),
        put("messages", [{"role": "user", "content": "x"}]),
    )


def model(name: str, **options: object) -> Change:
    plain = put("messages", [{"role": "user", "content": "x"}])
    return all_of(put("model", name), plain, *[put(key, value) for key, value in options.items()])


BREAKS: list[tuple[str, str, Change]] = [
    ("model", "an unknown model", put("model", "claude-2")),
    ("extra-field", "an unknown field", put("reasoning_effort", "low")),
    ("extra-field", "an unknown field of a message", put("messages.0.name", "x")),
    ("extra-field", "an unknown field of a call", call_at(1, arguments="{}")),
    ("extra-field", "an unknown field of a result", result_at(0, name="x")),
    ("extra-field", "an unknown field of a tool", put("tools.0.group", "x")),
    ("extra-field", "an unknown field of a text", put("messages.1.content.0.id", "x")),
    ("extra-field", "an unknown field of thinking", put("thinking", {"type": "disabled", "level": 1})),
    ("extra-field", "a budget where none is", put("thinking", {"type": "disabled", "budget_tokens": 1024})),
    ("stream", "no boolean", put("stream", "yes")),
    ("max-tokens", "absent", put("max_tokens", ...)),
    ("max-tokens", "zero", put("max_tokens", 0)),
    ("max-tokens", "more than the model gives", put("max_tokens", 64001)),
    ("sampling", "a temperature", put("temperature", 0.5)),
    ("effort", "on a model without", put("output_config", {"effort": "low"})),
    ("effort", "an unknown one", model("claude-opus-4-5", output_config={"effort": "max"})),
    ("system", "no text", put("system", [{"type": "image"}])),
    ("system", "a number", put("system", 3)),
    ("blank-text", "a blank system prompt", put("system", [{"type": "text", "text": " "}])),
    ("messages", "absent", put("messages", ...)),
    ("empty-conversation", "no messages", all_of(put("messages", []), put("tools", ...))),
    ("shape", "a message that is none", put("messages.0.content", 7)),
    ("role", "a system message among them", put("messages.1", {"role": "system", "content": "Be kind."})),
    ("first-user", "an assistant begins", put("messages.0", {"role": "assistant", "content": "Hi"})),
    ("empty-content", "no content", put("messages.0.content", "")),
    ("blank-text", "an empty text", put("messages.2.content.0.text", "")),
    ("blank-text", "a blank text", put("messages.2.content.0.text", " \n")),
    ("blank-text", "a blank text in a result", put("messages.4.content.1.content.0.text", " ")),
    ("block-kind", "a call of a user", put("messages.2.content.0", {**CALL, "type": "thinking"})),
    ("prefill", "ends with an assistant", lambda body: body["messages"].append({"role": "assistant", "content": "So"})),
    ("id-form", "a dot in an id", both_ids("call.1")),
    ("id-form", "an empty id", both_ids("")),
    ("id-unique", "an id of before", lambda body: body["messages"].extend(copy.deepcopy(body["messages"][3:5]))),
    ("name-form", "a dot in a name", call_at(1, name="order.lookup")),
    ("input-object", "arguments as text", call_at(1, input='{"order": 1}')),
    ("empty-error", "an error that says nothing", result_at(0, is_error=True, content="")),
    ("missing-result", "a result left out", lambda body: body["messages"][4]["content"].pop(1)),
    ("missing-result", "text before the results", text_first),
    ("missing-result", "text between the results", text_between),
    ("missing-result", "a user speaks in between", lambda body: body["messages"].insert(4, body["messages"][0])),
    ("strange-result", "a result of nothing", lambda body: body["messages"][2]["content"].append(dict(RESULT))),
    ("double-result", "two results of one call", twice),
    ("result-order", "results the other way round", swap_results),
    ("tools-defined", "calls and no tools", put("tools", ...)),
    ("tools", "no list", all_of(put("tools", {}), lambda body: body["messages"].__delitem__(slice(3, 5)))),
    ("tool-name", "a dot in it", put("tools.0.name", "order.lookup")),
    ("tool-unique", "one twice", lambda body: body["tools"].append(body["tools"][0])),
    ("tool-schema", "not of an object", put("tools.0.input_schema", {"type": "string"})),
    ("tool-choice", "an unknown one", put("tool_choice", {"type": "auto_or_any"})),
    ("tool-choice", "a tool that is not there", put("tool_choice", {"type": "tool", "name": "refund"})),
    ("forced-tool", "with manual thinking", all_of(thinking(1024), put("tool_choice", {"type": "any"}))),
    ("forced-tool", "on a model without", model("claude-opus-5-5", tool_choice={"type": "any"})),
    ("breakpoints", "five of them", marks(5)),
    ("breakpoint-form", "an unknown kind", put("system.0.cache_control", {"type": "persistent"})),
    ("breakpoint-form", "an unknown time", put("system.0.cache_control", {"type": "ephemeral", "ttl": "1d"})),
    ("breakpoint-order", "a long one later", put("cache_control", {"type": "ephemeral", "ttl": "1h"})),
    ("thinking-budget", "too small", thinking(1023)),
    ("thinking-budget", "as large as the limit", thinking(4096)),
    ("thinking-budget", "absent", thinking(None)),
    ("thinking-type", "adaptive on an old model", put("thinking", {"type": "adaptive"})),
    (
        "thinking-type",
        "a budget on a new model",
        model("claude-opus-4-7", thinking=MANUAL),
    ),
    ("thinking-type", "disabled where it cannot be", model("claude-opus-5-5", thinking={"type": "disabled"})),
    (
        "thinking-type",
        "disabled at high effort",
        model("claude-opus-5", thinking={"type": "disabled"}, output_config={"effort": "max"}),
    ),
    ("thinking-dropped", "none before the running calls", put("thinking", MANUAL)),
    (
        "signature-missing",
        "thinking without one",
        lambda body: body["messages"][1]["content"].insert(0, dict(UNSIGNED)),
    ),
    (
        "signature-forged",
        "of nobody",
        lambda body: body["messages"][1]["content"].insert(0, {**UNSIGNED, "signature": "EqQB"}),
    ),
]
ALSO = {"a user speaks in between": {"strange-result"}}
"""What cannot be broken without the other."""
ELSEWHERE = {
    "key", "version", "content-type", "json", "surrogate", "too-large", "too-many", "signature-foreign",
    "thinking-modified", "thinking-moved", "cache-on-thinking",
}  # fmt: skip


def test_a_conversation_with_all_that_may_be_in_one_is_taken() -> None:
    assert judged(conversation()).refusals == ()


@pytest.mark.parametrize(("rule", "how", "change"), BREAKS, ids=[f"{rule}: {how}" for rule, how, _ in BREAKS])
def test_what_breaks_a_rule_is_refused_for_it(rule: str, how: str, change: Change) -> None:
    body = conversation()
    change(body)
    seen = judged(body)
    assert seen.rules == {rule} | ALSO.get(how, set()), [refusal.message for refusal in seen.refusals]
    assert {refusal.status for refusal in seen.refusals} == {404 if rule == "model" else 400}


def test_every_rule_has_something_that_breaks_it() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in RULES.glob("*.py"))
    rules = set(re.findall(r'Refusal\(\s*"([a-z-]+)"', source))
    assert rules == {rule for rule, _, _ in BREAKS} | ELSEWHERE


@pytest.mark.parametrize(
    ("rule", "headers", "status"),
    [
        ("key", {"key": None}, 401),
        ("key", {"key": "sk-ant-api03-other"}, 401),
        ("version", {"anthropic_version": "2024-01-01"}, 400),
        ("content-type", {"content_type": "text/plain"}, 400),
    ],
)
def test_headers_are_judged(rule: str, headers: dict[str, Any], status: int) -> None:
    seen = judged(conversation(), **headers)
    assert [(refusal.rule, refusal.status) for refusal in seen.refusals] == [(rule, status)]


@pytest.mark.parametrize(
    ("rule", "raw"),
    [
        ("json", b"{"),
        ("json", b"[]"),
        ("surrogate", b'{"model": "\\ud83d"}'),
        ("too-large", b" " * (32 * 1024 * 1024 + 1)),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(rule: str, raw: bytes) -> None:
    vendor = AnthropicVendor(SCRIPT)
    seen = Seen(0, "POST", "/v1/messages", HEADERS, raw)
    (refusal,) = vendor.judge(seen, vendor.key)
    assert refusal.rule == rule


# --- thinking that the fake itself has issued ---


def thought(model: str, vendor: AnthropicVendor, **thinking: object) -> tuple[Body, dict[str, Any]]:
    """A request, and the one that follows it with the thinking and the result sent back."""
    first = {
        "model": model,
        "max_tokens": 4096,
        "thinking": thinking,
        "tools": [TOOL],
        "messages": [{"role": "user", "content": "order?"}],
    }
    seen = judged(first, vendor)
    assert seen.refusals == ()
    said = vendor.speak(seen, spoken(Think("Look first.", SCRIPT_CALL))).whole
    content = copy.deepcopy(said["content"])
    call = content[-1]["id"]
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "here"}]}
    return first, {**first, "messages": [*first["messages"], {"role": "assistant", "content": content}, answer]}


OLD = ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 1024})
NEW = ("claude-opus-5-5", {"type": "adaptive"})


@pytest.mark.parametrize(("model", "config"), [OLD, NEW], ids=["manual", "bound"])
def test_thinking_is_taken_back_as_it_was(model: str, config: dict[str, Any]) -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought(model, vendor, **config)
    assert second["messages"][1]["content"][0]["type"] == "thinking"
    assert judged(second, vendor).refusals == ()
    assert judged(second, AnthropicVendor(SCRIPT)).refusals == (), "another machine of the vendor"
    assert judged(second, AnthropicVendor(SCRIPT, name="another vendor")).rules == {"signature-forged"}


@pytest.mark.parametrize(("model", "config"), [OLD, NEW], ids=["manual", "bound"])
@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("thinking-modified", put("messages.1.content.0.thinking", "Look last.")),
        ("thinking-dropped", put("messages.1.content.0", ...)),
        ("cache-on-thinking", put("messages.1.content.0.cache_control", {"type": "ephemeral"})),
    ],
)
def test_thinking_that_was_touched_is_refused(rule: str, change: Change, model: str, config: dict[str, Any]) -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought(model, vendor, **config)
    change(second)
    assert judged(second, vendor).rules == {rule}


def test_thinking_of_another_model_is_refused() -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought(*[OLD[0]], vendor, **OLD[1])
    second["model"] = "claude-sonnet-4-5"
    assert judged(second, vendor).rules == {"signature-foreign"}
    del second["messages"][1]["content"][0]
    assert judged(second, vendor).rules == {"thinking-dropped"}
    del second["thinking"]
    assert judged(second, vendor).rules == frozenset(), "without thinking the loop can go on"


@pytest.mark.parametrize(
    "change", [put("system", "Be brief."), put("tools.0.description", "y"), put("messages.0.content", "order!")]
)
def test_newer_models_bind_thinking_to_what_stands_before_it(change: Change) -> None:
    vendor = AnthropicVendor(SCRIPT)
    for (model, config), rules in ((NEW, {"thinking-moved"}), (OLD, set())):
        _, second = thought(model, vendor, **config)
        second = copy.deepcopy(second)
        change(second)
        assert judged(second, vendor).rules == rules


def test_the_binding_can_be_waived_under_its_beta() -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought(NEW[0], vendor, **NEW[1])
    second["system"] = "Be brief."
    second["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert judged(second, vendor).rules == {"thinking-moved"}
    assert judged(second, vendor, anthropic_beta="thinking-binding-controls-2026-08-01").rules == frozenset()


def test_a_text_that_joined_behind_the_results_does_not_end_the_running_loop() -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought(OLD[0], vendor, **OLD[1])
    second["messages"].append({"role": "user", "content": "hurry"})
    del second["messages"][1]["content"][0]
    assert judged(second, vendor).rules == {"thinking-dropped"}
    second["messages"] += [{"role": "assistant", "content": "It left."}, {"role": "user", "content": "Thanks"}]
    assert judged(second, vendor).rules == frozenset(), "another turn has begun"


def test_adaptive_thinking_is_missed_behind_the_last_text_of_a_user_alone() -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought(NEW[0], vendor, **NEW[1])
    del second["messages"][1]["content"][0]
    assert judged(second, vendor).rules == {"thinking-dropped"}
    second["messages"].append({"role": "user", "content": "hurry"})
    assert judged(second, vendor).rules == frozenset()


@pytest.mark.parametrize("name", ["claude-opus-5-5", "claude-opus-5"])
def test_adaptive_thinking_of_another_model_is_not_missed(name: str) -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought("claude-sonnet-5", vendor, type="adaptive")
    del second["messages"][1]["content"][0]
    second["model"] = name
    assert judged(second, vendor).rules == frozenset()


def test_a_seal_is_good_for_its_own_thinking_alone() -> None:
    seals = Seals("one")
    assert Seals("one").check(seals.seal("m", "t", "p"), "m", "t", "p").name == "TRUE"
    assert Seals("two").check(seals.seal("m", "t", "p"), "m", "t", "p").name == "FORGED"
    assert seals.check("no base64!", "m", "t", None).name == "FORGED"


@pytest.mark.parametrize(("name", "kind"), [("claude-opus-5-5", "thinking"), ("claude-opus-5", "text")])
def test_some_models_think_what_others_say_between_their_calls(name: str, kind: str) -> None:
    vendor = AnthropicVendor(SCRIPT)
    _, second = thought(name, vendor, type="adaptive", display="summarized")
    said = vendor.speak(judged(second, vendor), spoken(Call("order_lookup", {}, text="Once more."))).whole
    block = said["content"][0]
    assert (block["type"], block[kind]) == (kind, "Once more.")
