"""Layers that are switched off are accepted as such, and every key of the contract is known."""

from __future__ import annotations

from typing import Any

import pytest

from insika.agents.profile import load_profile
from insika.errors import InvalidConfiguration
from insika.settings import load_settings

PROFILE = {"id": "a", "model": "offline/demo"}
EVERYTHING = {
    "guardrails": {
        "input": True,
        "output": True,
        "strictness": "high",
        "moderator": "openai/gpt-4o-mini",
        "responses": {"default": "No.", "moderated": "Not that."},
        "redact": [{"kind": "order", "pattern": "ORD-[0-9]{6}"}],
        "keep": ["support@shop.example"],
    }
}


def test_every_key_of_the_guardrails_is_taken() -> None:
    guards = load_profile({**PROFILE, **EVERYTHING}, "x").guards
    assert guards.moderator == "openai/gpt-4o-mini"
    assert guards.responses == {"default": "No.", "moderated": "Not that."}


@pytest.mark.parametrize("section", ["budget", "reliability", "routes", "alerts", "guardrails"])
def test_a_section_that_is_null_asks_for_nothing(section: str) -> None:
    load_profile({**PROFILE, section: None}, "x")


@pytest.mark.parametrize(
    "data",
    [
        {"guardrails": {"output": False, "moderator": None, "responses": {}, "redact": [], "keep": []}},
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


def test_a_mistyped_key_is_named() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile({**PROFILE, "guardrails": {"inptu": False}}, "x")
    assert caught.value.problems == [("guardrails.inptu", "unknown key; did you mean input?")]
