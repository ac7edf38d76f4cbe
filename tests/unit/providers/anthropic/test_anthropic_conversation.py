"""A conversation of the house in the shape that the Messages API wants."""

from __future__ import annotations

import pytest

from insika.messages import ToolCall, Verbatim, assistant, tool_result, user
from insika.ports import ToolSpec
from insika.providers.anthropic.conversation import BEGINNING, BLANK_MESSAGE, EMPTY_RESULT, GO_ON
from tests.unit.providers.anthropic.anthropic_talk import LOOKUP, a_batch, a_request, judged, taken, texts


def test_a_plain_question_is_one_message() -> None:
    body = taken(a_request(user("Where is it?")))
    assert body["model"] == "claude-haiku-4-5"
    assert body["system"] == [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    assert [tool["name"] for tool in body["tools"]] == ["order_lookup", "refund"]
    assert "tool_choice" not in body
    (message,) = body["messages"]
    assert (message["role"], texts(message["content"])) == ("user", ["Where is it?"])


@pytest.mark.parametrize("count", [1, 2, 8])
def test_results_lead_in_announced_order_and_later_text_follows_in_the_same_message(count: int) -> None:
    ids = [f"c{number}" for number in range(count)]
    body = taken(a_request(user("All of them!"), *a_batch(*ids, text="Looking."), user("hurry"), user("please")))
    opening, calls, results = body["messages"]
    assert opening["role"] == "user"
    assert texts(calls["content"]) == ["Looking."]
    assert [block["id"] for block in calls["content"][1:]] == ids
    assert [block["tool_use_id"] for block in results["content"][:count]] == ids
    assert texts(results["content"]) == ["hurry", "please"]
    assert [block["type"] for block in results["content"][:count]] == ["tool_result"] * count


def test_results_that_come_late_or_in_another_order_still_lead_as_announced() -> None:
    call, one, two = a_batch("a", "b")
    body = taken(a_request(user("Both!"), call, two, user("hurry"), one))
    assert [block.get("tool_use_id") for block in body["messages"][-1]["content"]] == ["a", "b", None]


def test_what_several_people_say_in_a_row_is_one_message_of_several_blocks() -> None:
    body = taken(a_request(user("One"), user("two"), assistant("Yes?"), user("three")))
    assert [texts(message["content"]) for message in body["messages"]] == [["One", "two"], ["Yes?"], ["three"]]


@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u3000"])
def test_blank_text_is_never_sent(blank: str) -> None:
    call, result = a_batch("a", text=blank)
    body = taken(a_request(user(blank), assistant(blank), user("Hi"), call, result, note=blank, instructions=blank))
    assert texts(body["messages"][0]["content"]) == [BLANK_MESSAGE, "Hi"]
    assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]
    assert texts(body["messages"][2]["content"]) == []
    assert "system" not in body
    assert body["tools"][-1]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("content", ["", " \n"])
@pytest.mark.parametrize("is_error", [False, True])
def test_a_result_always_says_something(content: str, is_error: bool) -> None:
    call, _ = a_batch("a")
    body = taken(a_request(user("Hi"), call, tool_result("a", content, is_error=is_error)))
    (block,) = body["messages"][-1]["content"]
    assert block["content"] == EMPTY_RESULT
    assert block.get("is_error", False) == is_error


@pytest.mark.parametrize(
    "call", [ToolCall("a", "order_lookup", malformed='{"order'), ToolCall("a", "order_lookup", cut_off=True)]
)
def test_a_call_that_nobody_could_read_goes_back_without_arguments(call: ToolCall) -> None:
    body = taken(a_request(user("Hi"), assistant("", call), tool_result("a", "not run", is_error=True)))
    assert body["messages"][1]["content"][0]["input"] == {}
    assert body["messages"][2]["content"][0]["is_error"] is True


def test_the_note_stands_last_behind_everything_and_outside_of_the_cached_prompt() -> None:
    body = taken(a_request(user("Hi"), *a_batch("a"), user("hurry"), note="Be brief, the budget is used up."))
    content = body["messages"][-1]["content"]
    assert texts(content) == ["hurry", "Be brief, the budget is used up."]
    assert "cache_control" in content[-2]
    assert "cache_control" not in content[-1]


@pytest.mark.parametrize("id", ["call.1", "", "x" * 65, "{'id': 3}", "ü", "a b", "\ud83d"])
def test_an_id_that_is_refused_is_mended_for_call_and_result_alike(id: str) -> None:
    body = taken(a_request(user("Hi"), *a_batch("fine", id)))
    called = [block["id"] for block in body["messages"][1]["content"]]
    assert called == [block["tool_use_id"] for block in body["messages"][2]["content"]]
    assert called[0] == "fine"
    assert len(called[1]) <= 64


def test_an_id_of_before_is_given_once_more_but_not_sent_twice() -> None:
    request = a_request(user("Hi"), *a_batch("same"), *a_batch("same"), *a_batch("same", "same_2"))
    body = taken(request)
    announced = [block["id"] for message in body["messages"][1::2] for block in message["content"]]
    assert announced[0] == "same"
    assert len(set(announced)) == 4
    assert announced == [block["tool_use_id"] for message in body["messages"][2::2] for block in message["content"]]


def test_what_an_id_becomes_does_not_depend_on_what_comes_later() -> None:
    first = a_request(user("Hi"), *a_batch("same"), *a_batch("call.1"))
    later = a_request(*first.messages, *a_batch("same", "call.1"))
    assert judged(first).starts(judged(later))


def test_a_name_that_no_tool_can_have_is_made_sendable() -> None:
    call, result = a_batch("a", name="orders.look up")
    body = taken(a_request(user("Hi"), call, result))
    assert body["messages"][1]["content"][0]["name"] == "orders_look_up"


def test_broken_characters_never_reach_the_vendor() -> None:
    call = ToolCall("a", "order_lookup", {"order\ud83d": ["\ud83d", {"deep": "a\0b"}]})
    broken = ToolSpec("order_lookup", "a\ud83d", {"type": "object", "properties": {}, "title": "\0"})
    request = a_request(
        user("a\ud83db"),
        assistant("c\ud83d", call),
        tool_result("a", "\ud83d"),
        instructions="x\ud83d",
        note="y\ud83d",
        tools=(broken,),
    )
    assert "\ud83d" not in str(taken(request))


@pytest.mark.parametrize("history", [[], [assistant("Welcome!")], [assistant("")], [user("Hi"), assistant("Yes?")]])
def test_a_conversation_begins_and_ends_with_the_user(history: list[object]) -> None:
    body = taken(a_request(*history))  # type: ignore[arg-type]
    assert [body["messages"][0]["role"], body["messages"][-1]["role"]] == ["user", "user"]
    spoken = texts([block for message in body["messages"] for block in message["content"]])
    assert BEGINNING in spoken or GO_ON in spoken


def test_where_nothing_may_be_called_the_tools_stay_and_the_prompt_is_the_same() -> None:
    messages = [user("Hi"), *a_batch("a")]
    free, bound = judged(a_request(*messages)), judged(a_request(*messages, may_call=False))
    assert bound.refusals == ()
    assert bound.body["tool_choice"] == {"type": "none"}
    assert bound.body["tools"] == free.body["tools"]
    assert bound.pieces == free.pieces


def test_calls_of_before_are_taken_also_when_the_agent_has_no_tools_any_more() -> None:
    body = taken(a_request(user("Hi"), *a_batch("a"), tools=()))
    assert len(body["tools"]) == 1
    assert body["tool_choice"] == {"type": "none"}


def test_an_agent_without_tools_says_nothing_of_them() -> None:
    body = taken(a_request(user("Hi"), tools=(), may_call=False))
    assert "tools" not in body
    assert "tool_choice" not in body


def test_a_tool_without_a_description_or_a_type_is_one_all_the_same() -> None:
    (tool,) = taken(a_request(user("Hi"), tools=(ToolSpec("refund", " ", {"properties": {}}),)))["tools"]
    assert "description" not in tool
    assert tool["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "openrouter/x", "anthropic/claude-haiku-4-5"])
def test_what_was_kept_of_an_earlier_turn_or_another_model_is_not_sent(model: str) -> None:
    kept = Verbatim(model, ({"type": "thinking", "thinking": "x", "signature": "forged"}, {"reasoning_content": "x"}))
    call, result = a_batch("a")
    earlier = assistant(call.content, *call.tool_calls)
    object.__setattr__(earlier, "verbatim", kept)
    turn_from = 3 if model.endswith("haiku-4-5") else 0
    body = taken(a_request(user("Hi"), earlier, result, user("And?"), turn_from=turn_from))
    assert "forged" not in str(body)
    assert "reasoning_content" not in str(body)


def test_tools_and_instructions_are_the_same_bytes_in_every_request() -> None:
    heads = {
        str([judged(request).body.get(key) for key in ("tools", "system")])
        for request in (
            a_request(user("Hi")),
            a_request(user("Hi"), *a_batch("a"), user("more"), note="soon over"),
            a_request(user("Hi"), assistant("Yes?"), user("x"), may_call=False, max_tokens=7),
        )
    }
    assert len(heads) == 1
    assert LOOKUP.name in heads.pop()
