from __future__ import annotations

from typing import Any

import pytest

from insika.choices import QueueMode, Thinking
from insika.errors import InvalidJob
from insika.session_vars import remembered_vars, session_queue_mode, session_thinking, var_updates


@pytest.mark.parametrize(
    ("vars", "updates"),
    [
        ({}, {}),
        ({"name": "Ana", "debounce_ms": 5}, {}),
        ({"queue_mode": "steer"}, {"queue_mode": "steer"}),
        ({"queue_mode": None}, {"queue_mode": None}),
        ({"queue_mode": " "}, {"queue_mode": None}),
        ({"thinking": "low"}, {"thinking": "low"}),
        ({"thinking": True}, {"thinking": "on"}),
        ({"thinking": False}, {"thinking": "off"}),
        ({"thinking": None}, {"thinking": None}),
        ({"__llm__": {"thinking": True}}, {"thinking": "on"}),
        ({"__llm__": {"thinking": None}}, {"thinking": None}),
        ({"__llm__": {"temperature": 1}}, {}),
        ({"__llm__": None}, {}),
        ({"__llm__": {"thinking": "low"}, "thinking": "high"}, {"thinking": "high"}),
        ({"__llm__": {"thinking": "low"}, "thinking": None}, {"thinking": None}),
    ],
)
def test_only_queue_mode_and_thinking_change_what_is_remembered(vars: dict[str, Any], updates: dict[str, Any]) -> None:
    assert var_updates(vars) == updates
    assert all(value is None or type(value) is str for value in var_updates(vars).values())


def test_a_wrong_value_is_named() -> None:
    with pytest.raises(InvalidJob, match=r"vars\.queue_mode: must be one of followup, .*, got a list") as caught:
        var_updates({"queue_mode": ["steer"]})
    assert caught.value.field == "vars.queue_mode"


def test_the_first_vars_are_remembered_in_one_spelling() -> None:
    given = {"name": "Ana", "__llm__": {"thinking": True, "seed": 1}, "queue_mode": None}
    assert remembered_vars(given) == {"name": "Ana", "__llm__": {"seed": 1}, "thinking": "on"}
    assert remembered_vars({"__llm__": {"thinking": False}}) == {"thinking": "off"}
    assert given["__llm__"] == {"thinking": True, "seed": 1}


def test_clearing_leaves_nothing_behind() -> None:
    remembered = remembered_vars({"__llm__": {"thinking": "low"}, "queue_mode": "steer"})
    remembered.update(var_updates({"thinking": None, "queue_mode": None}))
    assert session_thinking(remembered) is None
    assert session_queue_mode(remembered) is None


def test_what_is_remembered_is_read_back() -> None:
    remembered = remembered_vars({"thinking": "high", "queue_mode": "collect"})
    assert session_thinking(remembered) is Thinking.HIGH
    assert session_queue_mode(remembered) is QueueMode.COLLECT
