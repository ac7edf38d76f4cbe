"""Each rule of the strict checks must fire, and a good conversation must pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from insika.messages import Message, Role, ToolCall, assistant, tool_result, user
from tests.strict import Refused, check_anthropic, check_openai

Check = Callable[..., None]
A, B = ToolCall("a", "find", {"n": 1}), ToolCall("b", "find")
BOTH = pytest.mark.parametrize("check", [check_anthropic, check_openai])

GOOD = [
    user("hello"),
    user("and this"),
    assistant("let me see", A, B),
    tool_result("a", ""),
    tool_result("b", "no such thing", is_error=True),
    user("a notice"),
    user("a steered text"),
    assistant("", ToolCall("c", "find")),
    tool_result("c", "found"),
    assistant("here it is"),
    user("thanks"),
]


def rules(check: Check, messages: list[Message], **options: Any) -> set[str]:
    try:
        check(messages, **options)
    except Refused as refused:
        return set(refused.rules)
    return set()


@BOTH
def test_a_good_conversation_passes(check: Check) -> None:
    check(GOOD, sent=True)
    check(GOOD[:-1])


@BOTH
@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([], "empty-conversation"),
        ([user("x"), assistant("", A, B), tool_result("a", "r"), user("y")], "missing-result"),
        ([user("x"), assistant("", A, B), user("y")], "missing-result"),
        ([user("x"), assistant("", A, B), tool_result("a", "r"), user("y"), tool_result("b", "r")], "orphan-result"),
        ([user("x"), assistant("", A), user("y"), tool_result("a", "r")], "missing-result"),
        ([user("x"), assistant("", A), assistant("y"), tool_result("a", "r")], "orphan-result"),
        ([user("x"), tool_result("a", "r")], "orphan-result"),
        ([user("x"), assistant("", A), tool_result("z", "r")], "strange-result"),
        ([user("x"), assistant("", A), tool_result("a", "r"), tool_result("a", "r")], "double-result"),
        ([user("x"), assistant("", A, B), tool_result("b", "r"), tool_result("a", "r")], "result-order"),
        ([user("x"), assistant("", A, A), tool_result("a", "r"), tool_result("a", "r")], "id-unique"),
        ([user("x"), assistant("", ToolCall("", "find")), tool_result("", "r")], "id-form"),
        ([user("x"), assistant("", ToolCall("a", "no such"))], "name-form"),
        ([user("x"), assistant("", ToolCall("a", ""))], "name-form"),
        ([user("x\ud800")], "encoding"),
        ([user("x"), assistant("", ToolCall("a", "find", {"n": "\udfff"}))], "encoding"),
        ([user("x"), assistant("", ToolCall("a", "find", {"n": float("nan")}))], "encoding"),
        ([user("x"), assistant("", ToolCall("a", "find", {"n": object()}))], "encoding"),
        ([Message(Role.USER, "x", (A,))], "shape"),
        ([Message(Role.USER, "x", tool_call_id="a")], "shape"),
        ([user("x"), Message(Role.TOOL, "r")], "shape"),
        ([Message(Role.USER, "x", is_error=True)], "shape"),
    ],
)
def test_what_both_refuse(check: Check, messages: list[Message], rule: str) -> None:
    assert rule in rules(check, messages)


@BOTH
def test_a_batch_may_be_open_at_the_end_of_a_log_but_not_of_a_request(check: Check) -> None:
    messages = [user("x"), assistant("", A)]
    check(messages)
    assert rules(check, messages, sent=True) == {"missing-result", "ends-with-assistant"}


@BOTH
def test_half_a_batch_may_not_stand_at_the_end_of_a_log(check: Check) -> None:
    assert rules(check, [user("x"), assistant("", A, B), tool_result("a", "r")]) == {"missing-result"}


@BOTH
def test_a_request_does_not_end_with_an_answer(check: Check) -> None:
    messages = [user("x"), assistant("y")]
    check(messages)
    assert rules(check, messages, sent=True) == {"ends-with-assistant"}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([assistant("hello"), user("x")], "first-user"),
        ([user("")], "blank-text"),
        ([user(" \n")], "blank-text"),
        ([user("x"), assistant("")], "blank-text"),
        ([user("x"), assistant(" ", A), tool_result("a", "r")], "blank-text"),
        ([user("x"), assistant("", A), tool_result("a", "", is_error=True)], "empty-error"),
        ([user("x"), assistant("", ToolCall("a.b", "find")), tool_result("a.b", "r")], "id-form"),
        (
            [user("x"), assistant("", A), tool_result("a", "r"), assistant("", A), tool_result("a", "r")],
            "id-unique",
        ),
    ],
)
def test_what_anthropic_refuses(messages: list[Message], rule: str) -> None:
    assert rules(check_anthropic, messages) == {rule}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([user("x"), assistant("")], "empty-assistant"),
        ([user("x"), assistant("", ToolCall("a" * 41, "find")), tool_result("a" * 41, "r")], "id-form"),
        ([user("x"), assistant("", ToolCall("a", "f" * 65)), tool_result("a", "r")], "name-form"),
    ],
)
def test_what_openai_refuses(messages: list[Message], rule: str) -> None:
    assert rules(check_openai, messages) == {rule}


def test_the_refusal_names_the_vendor_the_place_and_the_rule() -> None:
    with pytest.raises(Refused, match=r"Anthropic would refuse this conversation:\n  message 1: orphan-result"):
        check_anthropic([user("x"), tool_result("a", "r")])
