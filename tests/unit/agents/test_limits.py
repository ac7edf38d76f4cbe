from __future__ import annotations

import json
from typing import Any

import pytest

from insika.agents.limits import NO_LIMIT, TurnLimits, turn_limits
from insika.agents.profile import load_profile
from insika.choices import OnExhausted, QueueMode
from insika.settings import Settings, load_settings


def limits_of(
    agent: dict[str, Any], platform: dict[str, Any] | None = None, session: QueueMode | None = None
) -> TurnLimits:
    profile = load_profile({"id": "a", "model": "offline/demo", "limits": agent}, "x")
    return turn_limits(profile, load_settings({"queue": platform or {}}, "y"), session)


def test_an_agent_and_a_platform_that_say_nothing_leave_the_defaults() -> None:
    assert turn_limits(load_profile({"id": "a", "model": "offline/demo"}, "x"), Settings()) == TurnLimits()
    assert limits_of({}) == TurnLimits()


def test_what_the_agent_says_is_frozen() -> None:
    agent = {
        "turn_timeout": 10,
        "tool_timeout": 2.5,
        "approval_timeout": 90,
        "max_tool_calls": None,
        "max_tool_repeat": 4,
        "tool_concurrency": 8,
        "context_budget": 1000,
        "queue_mode": "collect",
        "debounce_ms": 100,
        "debounce_max_ms": 200,
        "steer_max_messages": 1,
        "steer_join": "<%{message}>",
        "mailbox_max": 3,
    }
    assert limits_of(agent) == TurnLimits(
        turn_timeout_s=10.0,
        tool_timeout_s=2.5,
        approval_timeout_s=90.0,
        max_tool_calls=None,
        max_tool_repeat=4,
        tool_concurrency=8,
        context_budget=1000,
        queue_mode=QueueMode.COLLECT,
        debounce_ms=100,
        debounce_max_ms=200,
        steer_max_messages=1,
        steer_join="<%{message}>",
        mailbox_max=3,
    )


RULES: dict[str, tuple[Any, Any]] = {
    "queue_mode": ("steer", QueueMode.STEER),
    "debounce_ms": (700, 700),
    "debounce_max_ms": (800, 800),
    "steer_max_messages": (2, 2),
    "steer_join": ("+ %{message}", "+ %{message}"),
    "mailbox_max": (4, 4),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_platform_speaks_where_the_agent_does_not(rule: str) -> None:
    given, read = RULES[rule]
    assert getattr(limits_of({}, {rule: given}), rule) == read
    assert getattr(limits_of({rule: given}, {}), rule) == read


@pytest.mark.parametrize(
    ("rule", "off"),
    [
        ("queue_mode", QueueMode.FOLLOWUP),
        ("debounce_ms", 0),
        ("debounce_max_ms", 10_000),
        ("steer_max_messages", 0),
        ("steer_join", None),
        ("mailbox_max", NO_LIMIT),
    ],
)
def test_an_agent_that_says_null_switches_the_platforms_rule_off(rule: str, off: Any) -> None:
    given, _ = RULES[rule]
    assert getattr(limits_of({rule: None}, {rule: given}), rule) == off
    assert getattr(limits_of({}, {rule: None}), rule) == off
    if rule not in ("queue_mode", "steer_join"):
        assert getattr(limits_of({rule: 0}, {rule: given}), rule) == off


@pytest.mark.parametrize(("given", "frozen"), [(-5, 0), (0, 0), (1, 0), (2, 2), (3, 3)])
def test_a_repetition_guard_below_two_is_off(given: int, frozen: int) -> None:
    assert limits_of({"max_tool_repeat": given}).max_tool_repeat == frozen


def test_the_sessions_own_mode_comes_before_the_agents() -> None:
    assert limits_of({"queue_mode": "steer"}, session=QueueMode.COLLECT).queue_mode is QueueMode.COLLECT


def test_frozen_limits_survive_their_row() -> None:
    frozen = limits_of({"on_exhausted": "synthesize", "queue_mode": "steer", "context_budget": 5, "mailbox_max": 0})
    stored = json.loads(json.dumps(frozen.as_dict()))
    again = TurnLimits.from_dict(stored)
    assert again == frozen
    assert again.on_exhausted is OnExhausted.SYNTHESIZE
    assert again.queue_mode is QueueMode.STEER
    assert all(type(value) in (str, int, float, bool, type(None)) for value in frozen.as_dict().values())


def test_a_row_of_another_version_is_read() -> None:
    assert TurnLimits.from_dict({"tool_timeout_s": 5.0, "from_the_future": 1}) == TurnLimits(tool_timeout_s=5.0)
