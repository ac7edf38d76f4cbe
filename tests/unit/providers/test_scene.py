from __future__ import annotations

from collections.abc import Sequence

from insika.messages import Message, ToolCall, assistant, tool_result, user
from insika.ports import ModelRequest, ToolSpec
from insika.providers.scene import Notice, Result, Scene, next_call_id
from insika.turn.sentences import MARK

NOTICE = MARK + "hurry"
A, B = ToolCall("a", "find", {"n": 1}), ToolCall("b", "find", {"n": 2})


def scene(*messages: Message) -> Scene:
    return Scene.of(ModelRequest("m", "", messages, (ToolSpec("find", "", {}),)))


def test_a_first_message_opens_the_turn() -> None:
    assert scene(user("hello")) == Scene(("hello",), (), 0, 0, (), frozenset({"find"}))


def test_the_turn_begins_after_the_last_answer() -> None:
    seen = scene(user("one"), assistant("", A), tool_result("a", "r"), assistant("done"), user("two"), user("three"))
    assert seen.said == ("two", "three")
    assert seen.text == "three"
    assert (seen.step, seen.results) == (0, ())


def test_steps_and_results_are_counted_within_the_turn() -> None:
    seen = scene(user("one"), assistant("", A, B), tool_result("a", "r1"), tool_result("b", "r2", is_error=True))
    assert seen.step == 1
    assert seen.results == (Result(A, "r1", False), Result(B, "r2", True))


def test_a_text_that_joins_is_said_and_starts_the_count_since() -> None:
    seen = scene(user("one"), assistant("", A), tool_result("a", "r"), user("two"))
    assert seen.said == ("one", "two")
    assert (seen.step, seen.step_since_said) == (1, 0)


def test_what_the_engine_says_is_not_said_by_a_person() -> None:
    seen = scene(user("one"), assistant("", A), tool_result("a", "r"), user(NOTICE))
    assert seen.said == ("one",)
    assert seen.notices == (Notice(NOTICE, 1),)
    assert (seen.step, seen.step_since_said) == (1, 1)


def test_nobody_has_to_have_spoken() -> None:
    assert scene().text == ""


def test_a_result_without_its_call_is_left_out() -> None:
    assert scene(user("one"), tool_result("x", "r")).results == ()


def conversation(turns: int) -> list[Message]:
    messages: list[Message] = []
    for _ in range(turns):
        messages.append(user("same"))
        for _ in range(3):
            calls = [ToolCall(next_call_id(messages, index), "find") for index in range(2)]
            messages.append(assistant("same", *calls))
            messages += [tool_result(call.id, "same") for call in calls]
        messages.append(assistant("same"))
    return messages


def ids(messages: Sequence[Message]) -> list[str]:
    return [call.id for message in messages for call in message.tool_calls]


def test_call_ids_are_the_same_each_time_and_never_twice_in_a_conversation() -> None:
    made = ids(conversation(20))
    assert len(set(made)) == len(made) == 120
    assert made == ids(conversation(20))


def test_call_ids_do_not_repeat_when_the_beginning_is_left_out() -> None:
    whole = conversation(10)
    window = [*whole[-11:], user("same")]
    assert next_call_id(window, 0) not in ids(whole)


def test_call_ids_are_what_both_vendors_take() -> None:
    for made in ids(conversation(3)):
        assert made.replace("_", "").isalnum()
        assert len(made) <= 40
