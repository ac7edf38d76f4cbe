"""Which edge limits hold, by the order's table: absent inherits, null and 0 are off."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from insika.limits.edge import LIMIT_RESPONSE, EdgeRules, breach
from insika.limits.windows import TokenCeiling, TurnAttempt, WindowReading


@pytest.mark.parametrize(
    ("agent", "platform", "limit"),
    [
        ({}, {}, 0),
        ({}, {"chat_rate_limit": 20}, 20),
        ({}, {"chat_rate_limit": None}, 0),
        ({}, {"chat_rate_limit": 0}, 0),
        ({"chat_rate_limit": 5}, {"chat_rate_limit": 20}, 5),
        ({"chat_rate_limit": 5}, {}, 5),
        ({"chat_rate_limit": None}, {"chat_rate_limit": 20}, 0),
        ({"chat_rate_limit": 0}, {"chat_rate_limit": 20}, 0),
    ],
)
def test_an_agent_that_says_something_has_the_word(agent: dict[str, Any], platform: dict[str, Any], limit: int) -> None:
    assert EdgeRules.of(agent, platform).chat_rate_limit == limit
    assert EdgeRules.of(_for_tokens(agent), _for_tokens(platform)).agent_token_ceiling == limit


def _for_tokens(layer: dict[str, Any]) -> dict[str, Any]:
    return {"agent_token_ceiling": layer["chat_rate_limit"]} if layer else {}


def test_windows_are_the_platforms_and_have_defaults() -> None:
    rules = EdgeRules.of({}, {})
    assert (rules.chat_rate_window_s, rules.agent_token_window_s, rules.response) == (60, 86_400, LIMIT_RESPONSE)
    said = EdgeRules.of({}, {"chat_rate_window": 10, "agent_token_window": 3600, "limit_response": "Later, please."})
    assert (said.chat_rate_window_s, said.agent_token_window_s, said.response) == (10, 3600, "Later, please.")


def test_only_what_is_on_is_asked_about() -> None:
    assert EdgeRules().checks("t", "s", "a", "turn") == ()
    assert not EdgeRules().any
    both = EdgeRules(chat_rate_limit=2, agent_token_ceiling=9).checks("t", "s", "a", "turn")
    assert both == (TurnAttempt("t", "s", "turn", 2, 60), TokenCeiling("t", "a", 9, 86_400))


def test_a_turn_that_asks_nobody_is_counted_only_where_the_rate_is_limited() -> None:
    assert EdgeRules(agent_token_ceiling=9).attempts("t", "s", "turn") == ()
    assert EdgeRules(chat_rate_limit=2, agent_token_ceiling=9).attempts("t", "s", "turn") == (
        TurnAttempt("t", "s", "turn", 2, 60),
    )


def test_of_several_breaches_the_one_that_lasts_longest_is_told() -> None:
    ends = datetime(2026, 11, 30, tzinfo=UTC)
    rate = WindowReading(TurnAttempt("t", "s", "turn", 2, 60), 3, ends, 10.0)
    tokens = WindowReading(TokenCeiling("t", "a", 9, 86_400), 9, ends, 500.0)
    fine = WindowReading(TokenCeiling("t", "a", 10, 86_400), 9, ends, 900.0)
    assert breach([fine]) is None
    assert breach([rate, fine]) is rate
    assert breach([rate, tokens, fine]) is tokens
