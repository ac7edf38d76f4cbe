"""How each family of models is told how much to think, and how much it may say."""

from __future__ import annotations

from typing import Any

import pytest

from insika.choices import Thinking
from insika.messages import user
from insika.providers.anthropic.models import UNKNOWN, UNKNOWN_CLAUDE, family
from insika.providers.anthropic.request import wire_request
from insika.providers.anthropic.thinking import ANSWER_TOKENS, THINKING_ANSWER_TOKENS
from tests.unit.providers.anthropic.anthropic_talk import a_request, body_of, taken
from tests.vendors.anthropic import models

MODELS = [
    "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5",
    "claude-opus-4-5",
    "claude-opus-4-6",
    "claude-sonnet-4-6",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-fable-5",
    "claude-mythos-5",
    "claude-fable-5-1",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
]
ADAPTIVE = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize("max_tokens", [None, 1, 1024, 2048, 4096, 50_000, 10_000_000])
@pytest.mark.parametrize("thinking", [None, *Thinking])
@pytest.mark.parametrize("model", MODELS)
def test_the_strict_vendor_takes_every_wish_of_every_model(
    model: str, thinking: Thinking | None, max_tokens: int | None
) -> None:
    body = taken(a_request(user("Hi"), model=model, thinking=thinking, max_tokens=max_tokens))
    known = models.find(model)
    assert known is not None
    assert body["max_tokens"] <= min(known.max_output, max_tokens or known.max_output)
    assert family(model).max_output == known.max_output
    assert (family(model).binds, family(model).thinks) == (known.binds, known.thinks)


@pytest.mark.parametrize(
    ("model", "off", "on", "low"),
    [
        ("claude-opus-4-5", None, {"type": "enabled", "budget_tokens": 8192}, None),
        ("claude-sonnet-4-6", None, ADAPTIVE, "low"),
        ("claude-opus-4-8", None, ADAPTIVE, "low"),
        ("claude-opus-5", {"type": "disabled"}, ADAPTIVE, "low"),
        ("claude-haiku-5-5", {"type": "disabled"}, ADAPTIVE, "low"),
        ("claude-sonnet-5-5", {"type": "between_tools"}, ADAPTIVE, "low"),
        ("claude-opus-5-5", None, ADAPTIVE, "low"),
        ("claude-fable-5", None, ADAPTIVE, "low"),
    ],
)
def test_the_words_of_each_family(model: str, off: object, on: object, low: object) -> None:
    def asked(thinking: Thinking | None) -> dict[str, Any]:
        return taken(a_request(user("Hi"), model=model, thinking=thinking))

    assert asked(Thinking.OFF).get("thinking") == off
    assert asked(Thinking.ON).get("thinking") == on
    assert "output_config" not in asked(Thinking.ON)
    assert asked(Thinking.LOW).get("output_config", {}).get("effort") == low
    assert "thinking" not in asked(None)
    assert "output_config" not in asked(None)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-fable-5-1", "claude-mythos-5"])
def test_a_model_that_cannot_but_think_is_told_to_do_it_least(model: str) -> None:
    body = taken(a_request(user("Hi"), model=model, thinking=Thinking.OFF))
    assert body["output_config"] == {"effort": "low"}
    assert body["max_tokens"] == THINKING_ANSWER_TOKENS


def test_budgets_grow_with_the_effort_and_leave_room_for_the_answer() -> None:
    found = []
    for thinking in (Thinking.LOW, Thinking.MEDIUM, Thinking.HIGH):
        body = taken(a_request(user("Hi"), thinking=thinking))
        found.append(body["thinking"]["budget_tokens"])
        assert body["max_tokens"] - found[-1] >= ANSWER_TOKENS
    assert found == sorted(set(found))
    assert found[0] >= 1024


@pytest.mark.parametrize(("max_tokens", "budget"), [(2047, None), (2048, 1024), (6000, 3000), (32_768, 24_576)])
def test_a_budget_is_never_more_than_the_limit_bears(max_tokens: int, budget: int | None) -> None:
    body = taken(a_request(user("Hi"), thinking=Thinking.HIGH, max_tokens=max_tokens))
    assert body["max_tokens"] == max_tokens
    assert body.get("thinking", {}).get("budget_tokens") == budget


def test_what_the_vendor_has_removed_is_never_set() -> None:
    for model in MODELS:
        body = taken(a_request(user("Hi"), model=model, thinking=Thinking.HIGH))
        assert not body.keys() & {"temperature", "top_p", "top_k", "stop_sequences", "metadata"}


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic/claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("claude-opus-5-latest", "claude-opus-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ],
)
def test_dates_and_the_prefixes_of_clouds_are_seen_through(name: str, like: str) -> None:
    assert family(name) == family(like)


def test_names_that_nobody_knows_are_asked_for_little() -> None:
    for name in ("claude-opus-5-7", "claude-opus-6", "claude-epic-1", "claude-sonnet-5-50"):
        assert family(name) == UNKNOWN_CLAUDE
    assert family("claude-3-haiku-20240307").max_output == 4096
    assert family("kimi-k3") == UNKNOWN
    body = body_of_unknown(Thinking.OFF)
    assert not body.keys() & {"thinking", "output_config"}
    assert body_of_unknown(Thinking.LOW)["thinking"]["type"] == "enabled"


def body_of_unknown(thinking: Thinking) -> dict[str, Any]:
    return body_of(wire_request(a_request(user("Hi"), model="kimi-k3", thinking=thinking)))
