"""What a request of the house becomes in each dialect."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from insika.choices import Thinking
from insika.messages import Message, Role, ToolCall, Verbatim, assistant, tool_result, user
from insika.ports import ToolSpec
from tests.unit.providers.openai.chat_cases import (
    LOOKUP,
    MODELS,
    ORDER,
    REFUND,
    Fake,
    asked,
    batch,
    body_of,
    judged,
    messages_of,
)

each = pytest.mark.parametrize("fake", list(Fake))
CALL = ToolCall("call_1", "order_lookup", {"order": "A-17", "why": 'he said "now"\n😀'})


def kept(fake: Fake, *parts: dict[str, Any], model: str = "") -> Message:
    message = assistant("", CALL)
    return Message(
        Role.ASSISTANT, "", message.tool_calls, verbatim=Verbatim(model or f"there/{MODELS[fake]}", tuple(parts))
    )


@each
def test_a_request_has_its_keys_in_one_order_and_nothing_else(fake: Fake) -> None:
    request = asked(fake=fake, max_tokens=500, thinking=Thinking.LOW)
    limit = "max_completion_tokens" if fake is Fake.OPENAI else "max_tokens"
    thinking = {Fake.DEEPSEEK: ["thinking", "reasoning_effort"], Fake.OPENROUTER: ["reasoning"]}
    body = body_of(request, fake)
    assert list(body) == [
        "model",
        "tools",
        "messages",
        *thinking.get(fake, ["reasoning_effort"]),
        limit,
        "stream",
        "stream_options",
    ]
    assert body["model"] == MODELS[fake]
    assert body[limit] == 500
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert judged(request, fake).refusals == ()


@each
def test_without_a_limit_of_ours_the_models_own_holds(fake: Fake) -> None:
    assert not {"max_tokens", "max_completion_tokens"} & body_of(asked(fake=fake), fake).keys()


@each
def test_tools_stand_in_the_order_given_and_with_their_keys_in_one_order(fake: Fake) -> None:
    tools = body_of(asked(fake=fake), fake)["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["order_lookup", "refund"]
    assert json.dumps(tools[0]) == json.dumps(
        {
            "type": "function",
            "function": {"name": LOOKUP.name, "description": LOOKUP.description, "parameters": dict(LOOKUP.parameters)},
        }
    )


@each
def test_tools_stay_where_none_may_be_called(fake: Fake) -> None:
    free, bound = body_of(asked(fake=fake), fake), body_of(asked(fake=fake, may_call=False), fake)
    assert bound.pop("tool_choice") == "none"
    assert "tool_choice" not in free
    assert bound == free
    assert judged(asked(fake=fake, may_call=False), fake).refusals == ()


@each
def test_without_tools_nothing_is_said_of_them(fake: Fake) -> None:
    for may_call in (True, False):
        request = asked(fake=fake, tools=(), may_call=may_call)
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & body_of(request, fake).keys()
        assert judged(request, fake).refusals == ()


@pytest.mark.parametrize(
    ("fake", "model", "role"),
    [
        (Fake.OPENAI, "gpt-4o", "system"),
        (Fake.OPENAI, "gpt-5", "developer"),
        (Fake.OPENAI, "o3", "developer"),
        (Fake.DEEPSEEK, "deepseek-v4-pro", "system"),
        (Fake.OPENROUTER, "openai/gpt-5", "system"),
        (Fake.VLLM, "gpt-5", "system"),
        (Fake.OLLAMA, "gpt-oss:20b", "system"),
    ],
)
def test_instructions_stand_first_in_the_role_that_the_model_heeds(fake: Fake, model: str, role: str) -> None:
    assert messages_of(asked(fake=fake, model=model), fake)[0] == {"role": role, "content": "Be kind."}


def test_without_instructions_there_is_no_such_message() -> None:
    assert messages_of(asked(instructions="")) == [{"role": "user", "content": ORDER}]


@each
def test_results_follow_their_calls_in_order_and_people_come_after_them(fake: Fake) -> None:
    """Fault 2: with any number of parallel calls, notices and steered texts stand behind the last result."""
    calls = [ToolCall(f"call_{n}", "order_lookup", {"order": str(n)}) for n in range(8)]
    request = asked(user("All of them!"), *batch(*calls), user("hurry"), user("[insika] two are left"), fake=fake)
    messages = messages_of(request, fake)[1:]
    assert [one["role"] for one in messages] == ["user", "assistant", *["tool"] * 8, "user", "user"]
    assert [one["tool_call_id"] for one in messages[2:10]] == [call["id"] for call in messages[1]["tool_calls"]]
    assert judged(request, fake).refusals == ()


@each
def test_a_call_goes_back_as_the_model_made_it(fake: Fake) -> None:
    request = asked(user(ORDER), *batch(CALL, text="Let me look."), fake=fake)
    message = messages_of(request, fake)[2]
    assert message["content"] == "Let me look."
    (call,) = message["tool_calls"]
    assert list(call) == ["id", "type", "function"]
    assert (call["id"], call["type"], call["function"]["name"]) == ("call_1", "function", "order_lookup")
    assert json.loads(call["function"]["arguments"]) == dict(CALL.arguments)
    assert list(json.loads(call["function"]["arguments"])) == ["order", "why"]


@pytest.mark.parametrize(
    ("fake", "silence"),
    [(Fake.OPENAI, None), (Fake.DEEPSEEK, None), (Fake.OPENROUTER, None), (Fake.VLLM, ""), (Fake.OLLAMA, "")],
)
def test_a_call_without_a_word_has_the_content_that_the_vendor_wants(fake: Fake, silence: str | None) -> None:
    request = asked(user(ORDER), *batch(CALL), fake=fake)
    assert messages_of(request, fake)[2]["content"] == silence
    assert judged(request, fake).refusals == ()


@each
@pytest.mark.parametrize(
    "call",
    [
        ToolCall("call_1", "order_lookup", {}, '{"order": "A-1'),
        ToolCall("call_1", "order_lookup", {}, "[1, 2]"),
        ToolCall("call_1", "order_lookup", cut_off=True),
    ],
    ids=["half", "a list", "cut off"],
)
def test_what_nobody_could_read_goes_back_as_json(fake: Fake, call: ToolCall) -> None:
    request = asked(user(ORDER), *batch(call), fake=fake)
    assert messages_of(request, fake)[2]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert judged(request, fake).refusals == ()


@each
@pytest.mark.parametrize(
    "id",
    ["chatcmpl-tool-8174c6dc1d3047b3953aa8f422063ddb", "functions.order_lookup:0", "", "ä" * 50, "x" * 41, "a b"],
)
def test_an_id_that_not_all_take_is_mended_for_call_and_result_alike(fake: Fake, id: str) -> None:
    other = ToolCall("toolu_01A", "refund")
    request = asked(user(ORDER), *batch(ToolCall(id, "order_lookup"), other), fake=fake)
    messages = messages_of(request, fake)
    mended, kept_id = [call["id"] for call in messages[2]["tool_calls"]]
    assert [one["tool_call_id"] for one in messages[3:]] == [mended, kept_id]
    assert kept_id == "toolu_01A"
    assert len(mended) <= 40
    assert judged(request, fake).refusals == ()
    assert messages_of(request, fake) == messages, "the same each time"


@each
def test_an_error_is_told_by_the_result_alone(fake: Fake) -> None:
    failed = tool_result("call_1", "[insika] order_lookup failed", is_error=True)
    request = asked(user(ORDER), assistant("", CALL), failed, fake=fake)
    content = "[insika] order_lookup failed"
    assert messages_of(request, fake)[-1] == {"role": "tool", "tool_call_id": "call_1", "content": content}
    assert judged(request, fake).refusals == ()


@each
@pytest.mark.parametrize("text", [" ", "\n\t", "\u200b"])
def test_a_person_may_say_nothing_to_speak_of(fake: Fake, text: str) -> None:
    request = asked(user(text), fake=fake)
    assert messages_of(request, fake)[-1] == {"role": "user", "content": text}
    assert judged(request, fake).refusals == ()


@each
def test_an_answer_that_was_empty_is_left_out(fake: Fake) -> None:
    request = asked(user("Hi"), assistant(""), user(ORDER), fake=fake)
    assert [one["role"] for one in messages_of(request, fake)[1:]] == ["user", "user"]
    assert judged(request, fake).refusals == ()


@each
def test_the_note_stands_last_and_changes_nothing_before_it(fake: Fake) -> None:
    messages = [user(ORDER), *batch(CALL)]
    plain, noted = asked(*messages, fake=fake), asked(*messages, fake=fake, note="[insika] 80% is spent")
    assert messages_of(noted, fake)[-1] == {"role": "user", "content": "[insika] 80% is spent"}
    assert messages_of(noted, fake)[:-1] == messages_of(plain, fake)
    assert judged(plain, fake).starts(judged(noted, fake))
    assert judged(noted, fake).refusals == ()


# --- kept reasoning ---------------------------------------------------------------------------------------------------


def reasoning_of(message: Message, fake: Fake, **changes: Any) -> object:
    request = asked(user(ORDER), message, tool_result("call_1", "here"), fake=fake, **changes)
    assert judged(request, fake).refusals == ()
    return messages_of(request, fake)[2].get("reasoning_content")


DEEP = {"reasoning_content": "They want their order."}


def test_deepseek_gets_its_reasoning_back_while_the_turn_runs() -> None:
    assert reasoning_of(kept(Fake.DEEPSEEK, DEEP), Fake.DEEPSEEK) == "They want their order."
    assert reasoning_of(kept(Fake.DEEPSEEK, DEEP), Fake.DEEPSEEK, turn_from=1) == "They want their order."


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        (assistant("", CALL), {}),
        (kept(Fake.DEEPSEEK, {"reasoning_content": ""}), {}),
        (kept(Fake.DEEPSEEK, DEEP, model="there/another"), {}),
        (kept(Fake.DEEPSEEK, DEEP, model="elsewhere/deepseek-v4-pro"), {}),
        (kept(Fake.DEEPSEEK, DEEP), {"turn_from": 2}),
    ],
    ids=["none was kept", "it was empty", "of another model", "of another provider", "its turn is over"],
)
def test_where_there_is_none_deepseek_gets_a_blank_in_its_place(message: Message, changes: dict[str, Any]) -> None:
    assert reasoning_of(message, Fake.DEEPSEEK, **changes) == " "


def test_without_thinking_deepseek_gets_none() -> None:
    assert reasoning_of(kept(Fake.DEEPSEEK, DEEP), Fake.DEEPSEEK, thinking=Thinking.OFF) is None
    assert reasoning_of(assistant("", CALL), Fake.DEEPSEEK, model="deepseek-chat") is None
    assert reasoning_of(assistant("", CALL), Fake.DEEPSEEK, model="deepseek-chat", thinking=Thinking.ON) == " "


@pytest.mark.parametrize("model", ["deepseek-reasoner", "deepseek-v4-flash", "deepseek-flash"])
def test_deepseeks_models_think_unless_they_are_told_not_to(model: str) -> None:
    assert reasoning_of(assistant("", CALL), Fake.DEEPSEEK, model=model) == " "


def test_what_deepseek_answered_without_calls_has_the_field_too() -> None:
    """A request with tools wants it on each of them (api-docs.deepseek.com/guides/thinking_mode, "Tool Calls")."""
    messages = messages_of(asked(user("Hi"), assistant("Hello."), user(ORDER), fake=Fake.DEEPSEEK), Fake.DEEPSEEK)
    assert messages[2] == {"role": "assistant", "content": "Hello.", "reasoning_content": " "}


DETAILS = [
    {"type": "reasoning.text", "text": "Hm.", "signature": "s1", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "AAA=", "id": "call_1", "index": 1},
]


def test_openrouter_gets_its_details_back_as_they_were() -> None:
    request = asked(user(ORDER), kept(Fake.OPENROUTER, *DETAILS), tool_result("call_1", "here"), fake=Fake.OPENROUTER)
    assert messages_of(request, Fake.OPENROUTER)[2]["reasoning_details"] == DETAILS
    assert judged(request, Fake.OPENROUTER).refusals == ()


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        (kept(Fake.OPENROUTER, *DETAILS), {"turn_from": 2}),
        (kept(Fake.OPENROUTER, *DETAILS, model="there/other"), {}),
        (assistant("", CALL), {}),
    ],
    ids=["its turn is over", "of another model", "none was kept"],
)
def test_openrouter_gets_no_details_that_are_not_its_own_now(message: Message, changes: dict[str, Any]) -> None:
    request = asked(user(ORDER), message, tool_result("call_1", "here"), fake=Fake.OPENROUTER, **changes)
    assert set(messages_of(request, Fake.OPENROUTER)[2]) == {"role", "content", "tool_calls"}


@pytest.mark.parametrize("fake", [Fake.OPENAI, Fake.VLLM, Fake.OLLAMA])
def test_nobody_else_gets_reasoning(fake: Fake) -> None:
    for parts in ([DEEP], DETAILS, [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]):
        request = asked(user(ORDER), kept(fake, *parts), tool_result("call_1", "here"), fake=fake)
        assert set(messages_of(request, fake)[2]) == {"role", "content", "tool_calls"}
        assert judged(request, fake).refusals == ()


# --- the prefix -------------------------------------------------------------------------------------------------------


def test_what_was_sent_stands_at_the_head_of_what_is_sent_next() -> None:
    """Fault 42, for each dialect: a turn of several steps with notices and steered texts, a note, and no more calls."""
    calls = [ToolCall(f"call_{n}", "order_lookup", {"order": str(n), "deep": {"a": [n]}}) for n in range(6)]
    history = [user("Hi"), assistant("Hello."), user(ORDER)]
    for fake in Fake:
        grown, seen = list(history), []
        for call in calls:
            grown += [kept_call(fake, call), tool_result(call.id, "here"), user(f"[insika] notice {call.id}")]
            request = asked(*grown, fake=fake, turn_from=2, note=f"note {call.id}", may_call=call is not calls[-1])
            seen.append((judged(request, fake), judged(asked(*grown, fake=fake, turn_from=2), fake)))
        for (_, before), (noted, after) in itertools.pairwise(seen):
            assert before.starts(after), fake
            assert before.starts(noted), fake
            assert after.prefix_hash(len(before.pieces)) == before.prefix_hash()


def kept_call(fake: Fake, call: ToolCall) -> Message:
    parts = {Fake.DEEPSEEK: (DEEP,), Fake.OPENROUTER: tuple(DETAILS)}.get(fake, ())
    return Message(Role.ASSISTANT, "", (call,), verbatim=Verbatim(f"there/{MODELS[fake]}", parts))


def test_a_changed_tool_changes_the_prefix() -> None:
    """What the test above would see."""
    other = ToolSpec(REFUND.name, "another", REFUND.parameters)
    assert judged(asked(), Fake.OPENAI).shares_with(judged(asked(tools=(LOOKUP, other)), Fake.OPENAI)) == 1
