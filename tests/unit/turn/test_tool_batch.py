from __future__ import annotations

from types import SimpleNamespace

import pytest

from insika.messages import Halt, Role, assistant, tool_result, user
from insika.turn.tool_batch import ToolBatch
from tests.turn_doubles import announce, batch


@pytest.mark.parametrize("size", [1, 2, 8, 30])
def test_only_the_last_result_closes_a_batch(size):
    tools = ToolBatch()
    assert [tools.closed(message) for message in batch(size)] == [False] * size + [True]


def test_a_result_after_the_last_closes_nothing():
    tools = ToolBatch()
    for message in batch(2):
        tools.closed(message)
    assert not tools.closed(tool_result("c9", ""))


def test_a_result_before_any_batch_closes_nothing():
    assert not ToolBatch().closed(tool_result("c0", ""))


@pytest.mark.parametrize(
    "message",
    [
        assistant("done"),
        {"role": "assistant"},
        {"role": "assistant", "tool_calls": None},
        {"role": "assistant", "tool_calls": {}},
        SimpleNamespace(role="assistant", tool_calls=[]),
    ],
)
def test_an_assistant_message_without_calls_opens_nothing(message):
    tools = ToolBatch()
    assert not tools.closed(message)
    assert not tools.closed(tool_result("c0", ""))


@pytest.mark.parametrize(
    "opening",
    [
        {"role": "assistant", "tool_calls": {"a": 1, "b": 2}},
        {"role": Role.ASSISTANT, "tool_calls": ("a", "b")},
        SimpleNamespace(role="assistant", tool_calls=["a", "b"]),
        SimpleNamespace(role=Role.ASSISTANT, tool_calls={"a": 1, "b": 2}),
    ],
)
def test_a_message_may_be_a_mapping_or_any_object_and_its_calls_any_sized_collection(opening):
    tools = ToolBatch()
    assert not tools.closed(opening)
    assert not tools.closed({"role": "tool"})
    assert tools.closed(SimpleNamespace(role="tool"))


def test_user_messages_do_not_count():
    tools = ToolBatch()
    tools.closed(announce(1))
    assert not tools.closed(user("hello"))
    assert tools.closed(tool_result("c0", ""))


def test_an_opening_message_starts_the_count_anew():
    tools = ToolBatch()
    tools.closed(announce(3))
    tools.closed(tool_result("c0", ""))
    assert [tools.closed(message) for message in batch(2)] == [False, False, True]


def test_a_halt_is_remembered_past_the_close_and_forgotten_at_the_next_opening():
    tools = ToolBatch()
    tools.closed(announce(2))
    tools.halt(Halt("bye"))
    tools.halt("an ordinary result")
    tools.closed(tool_result("c0", ""))
    assert tools.closed(tool_result("c1", ""))
    assert tools.halted
    tools.closed(assistant("text only"))
    assert tools.halted
    tools.closed(announce(1))
    assert not tools.halted


@pytest.mark.parametrize("result", ["Halt", None, {"halt": True}, Halt, ["Halt()"]])
def test_only_a_halt_itself_halts(result):
    tools = ToolBatch()
    tools.halt(result)
    assert not tools.halted


def test_an_empty_halt_halts_too():
    tools = ToolBatch()
    tools.halt(Halt())
    assert tools.halted
