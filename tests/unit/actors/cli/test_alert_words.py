"""What `insika receive` says of an alert."""

from __future__ import annotations

from typing import Any

import pytest

from actors.cli.alert_words import alert_said, is_alert


@pytest.mark.parametrize(
    ("type_", "data", "said"),
    [
        (
            "budget_warning",
            {"window": "daily", "level": "alert", "spent": 81204, "cap": 100000},
            "daily budget, level alert: 81204 of 100000 tokens spent",
        ),
        ("breaker_open", {"model": "offline/down", "retry_after": 60.0}, "offline/down is not asked for 1 min"),
        ("breaker_open", {"model": "offline/down", "retry_after": float("nan")}, "offline/down is not asked for ?"),
        (
            "delivery_failed",
            {"delivery_id": "d1", "channel": "web", "attempts": 3, "outcome": "uncertain", "reason": "no answer"},
            "delivery d1 to web uncertain: no answer",
        ),
        ("budget_warning", {}, "? budget, level ?: ? of ? tokens spent"),
        ("of_later", {"a": 1, "b": "two"}, "a 1, b two"),
    ],
)
def test_an_alert_says_what_its_data_say(type_: str, data: dict[str, Any], said: str) -> None:
    payload = {"type": type_, "data": data, "agent": "shop"}
    assert is_alert(payload)
    assert alert_said(payload) == said


def test_an_answer_is_none() -> None:
    assert not is_alert({"type": "answer", "content": "hello", "data": {}})
    assert not is_alert({"type": "budget_warning"})
