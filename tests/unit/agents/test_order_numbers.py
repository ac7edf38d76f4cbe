"""The numbers that the product was ordered with, where nobody has said others."""

from __future__ import annotations

import pytest

from actors.environment import Environment
from insika.agents.budget import Budget
from insika.agents.reliability import CircuitBreaker, Reliability
from insika.limits.edge import EdgeRules


@pytest.mark.parametrize(
    ("number", "ordered"),
    [
        (CircuitBreaker().after, 10),
        (CircuitBreaker().within, 60),
        (CircuitBreaker().cooldown, 300),
        (Reliability().timeout, 30),
        (Budget().alert_at, 0.8),
        (EdgeRules().chat_rate_window_s, 60),
        (EdgeRules().agent_token_window_s, 86_400),
        (Environment.model_fields["subagent_depth_cap"].default, 5),
    ],
)
def test_the_numbers_are_those_of_the_order(number: float, ordered: float) -> None:
    assert number == ordered


def test_nothing_is_limited_unless_somebody_says_so() -> None:
    assert (EdgeRules().any, Budget().daily, Budget().monthly, Budget().soft) == (False, None, None, False)
