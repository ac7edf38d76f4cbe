from __future__ import annotations

from typing import Any

import pytest

from insika.agents.profile import load_profile
from insika.agents.unsupported import IN_PROFILES, WHY, Unsupported, refusals
from insika.errors import InvalidConfiguration
from insika.settings import load_settings

PROFILE = {"id": "a", "model": "offline/demo"}
ASKING_OF_PROFILES: dict[str, Any] = {
    "guardrails.moderator": "openai/gpt-4o-mini",
}


def at(path: str, value: Any) -> dict[str, Any]:
    """A document with `value` at `path`; the model's name keeps its slash, it holds no dot."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return dict(value)


def profile_problems(data: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile({**PROFILE, **data}, "x")
    return caught.value.problems


@pytest.mark.parametrize("path", ASKING_OF_PROFILES)
def test_a_profile_that_asks_for_an_unenforced_layer_is_refused_at_its_path(path: str) -> None:
    assert profile_problems(at(path, ASKING_OF_PROFILES[path])) == [(path, WHY)]


def test_every_entry_is_tried_here() -> None:
    assert {entry.path for entry in IN_PROFILES} == set(ASKING_OF_PROFILES)


@pytest.mark.parametrize("section", ["budget", "reliability", "routes", "alerts", "guardrails"])
def test_a_section_that_is_null_asks_for_nothing(section: str) -> None:
    load_profile({**PROFILE, section: None}, "x")


@pytest.mark.parametrize(
    "data",
    [
        {"guardrails": {"moderator": None}},
        {"limits": {"chat_rate_limit": None, "agent_token_ceiling": None}},
        {"limits": {"chat_rate_limit": 0, "agent_token_ceiling": 0}},
        {"limits": {"approval_timeout": 60}},
    ],
)
def test_a_profile_whose_layers_are_switched_off_is_accepted(data: dict[str, Any]) -> None:
    load_profile({**PROFILE, **data}, "x")


def test_settings_whose_layers_are_switched_off_are_accepted() -> None:
    load_settings(
        {
            "edge": {"chat_rate_limit": 0, "agent_token_ceiling": None, "chat_rate_window": 30},
            "fallback_models": [],
            "providers": [],
            "http_tools": [],
        },
        "x",
    )


def test_a_mistyped_key_of_a_section_that_asks_for_nothing_is_named() -> None:
    assert profile_problems({"guardrails": {"inptu": False}}) == [
        ("guardrails.inptu", "unknown key; did you mean input?")
    ]


@pytest.mark.parametrize("value", ["", 0, True, "off", 5, {"a": {"b": 0}}, [None]])
def test_in_doubt_a_section_asks_for_something(value: Any) -> None:
    assert list(refusals({"budget": value}, (Unsupported("budget"),))) == [(("budget",), WHY)]


def test_true_is_not_the_zero_or_one_of_a_number() -> None:
    assert list(refusals({"a": True}, (Unsupported("a", off=(0, 1)),))) == [(("a",), WHY)]
    assert list(refusals({"a": 1}, (Unsupported("a", off=(0, 1)),))) == []


def test_a_star_stands_for_any_key_and_any_position() -> None:
    document = {"m": {"x": {"on": 1}, "y": {"on": None}, "z": 5}, "l": [{"on": None}, {"on": 1}, 7]}
    assert list(refusals(document, (Unsupported("m.*.on"), Unsupported("l.*.on")))) == [
        (("m", "x", "on"), WHY),
        (("l", 1, "on"), WHY),
    ]
