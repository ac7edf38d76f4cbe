from __future__ import annotations

import pytest

from insika.messages import Message, Role, ToolCall, Verbatim, assistant, tool_result, user
from insika.turn.model_message import NO_NAME, spoken, storable
from tests.strict import check_anthropic, check_openai


def made(message: Message, taken: frozenset[str] = frozenset(), tools: tuple[str, ...] = ("look",)) -> Message:
    return storable(message, taken, 3, lambda name: name in tools)


def test_what_is_in_order_stays_as_it_is():
    message = assistant("Let me see.", ToolCall("call_1", "look", {"q": "Zoë 🙂", "deep": [{"a": None}]}))
    assert made(message) == message


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t \u2003"])
def test_white_space_is_nothing(text):
    assert made(assistant(text, ToolCall("a", "look"))).content == ""
    assert spoken(text) == ""


def test_text_is_cleaned():
    assert made(assistant("a\0b \ud83d c")).content == "a\ufffdb \ufffd c"


def test_ids_are_unique_in_the_message_and_in_the_conversation():
    calls = [ToolCall(id, "look") for id in ("old", "new", "new", "", "call_3_3", "call_3_3_2")]
    ids = [call.id for call in made(assistant("", *calls), frozenset({"old"})).tool_calls]

    assert ids[1] == "new"
    assert len({*ids, "old"}) == 7


@pytest.mark.parametrize("id", ["", "with space", "dot.ted", "x" * 41, "a\nb", "ü", "a\n"])
def test_an_id_that_vendors_refuse_is_replaced(id):
    assert made(assistant("", ToolCall(id, "look"))).tool_calls[0].id == "call_3_0"


@pytest.mark.parametrize("name", ["", "two words", "x" * 65, "functions.look", "löök", "look\n", "\ud800"])
def test_a_name_that_no_tool_can_have_means_no_tool(name):
    tools = ("look", NO_NAME)
    (call,) = made(assistant("", ToolCall("a", name, {"n": 1})), tools=tools).tool_calls

    assert call.name not in tools
    assert call.arguments == {"n": 1}


@pytest.mark.parametrize(
    "arguments",
    [{"n": float("nan")}, {"n": float("inf")}, {"\ud800": 1}, {"nul\0": 1}, {"deep": None}, {"what": object()}],
)
def test_arguments_that_json_cannot_hold_are_malformed(arguments):
    if "deep" in arguments:
        for _ in range(200):
            arguments = {"deep": [arguments]}
    (call,) = made(assistant("", ToolCall("a", "look", arguments))).tool_calls

    assert call.arguments == {}
    assert call.malformed


def test_text_within_arguments_is_cleaned():
    (call,) = made(assistant("", ToolCall("a", "look", {"q": ["\ud83d", "a\0"], "n": 1}))).tool_calls

    assert call.arguments == {"q": ["\ufffd", "a\ufffd"], "n": 1}
    assert call.malformed is None


def test_what_was_malformed_stays_so_and_is_cleaned():
    (call,) = made(assistant("", ToolCall("a", "look", {}, "{half \ud800"))).tool_calls
    assert call.malformed == "{half \ufffd"


def test_both_vendors_take_it_back():
    message = assistant(" \n", ToolCall("", "no name", {"\0": 1}), ToolCall("", "look", {"q": "\ud800"}))
    put_right = made(message)
    results = [tool_result(call.id, "found") for call in put_right.tool_calls]
    conversation = [user("hello"), put_right, *results, user("and?")]

    check_anthropic(conversation, sent=True)
    check_openai(conversation, sent=True)
    assert put_right.role is Role.ASSISTANT


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({"thinking": "[{" * 100, "signature": "s"}, True),
        ({"input": {"deep": [[[[1]]]] * 20}}, True),
        ({"thinking": "a\0"}, False),
        ({"thinking": "[" * 40 + "\ud83d"}, False),
        ({"thinking": "[" * 40 + "\ud83d\ude00"}, False),
        ({"thinking": float("nan")}, False),
    ],
)
def test_what_a_provider_wants_back_is_kept_when_every_store_can(part, kept):
    verbatim = Verbatim("anthropic/claude", (part,))
    message = Message(Role.ASSISTANT, "", (ToolCall("a", "look"),), verbatim=verbatim)
    assert bool(made(message).verbatim) == kept
