"""How much a model is to reason, in each dialect and of each of OpenAI's families."""

from __future__ import annotations

from typing import Any

import pytest

from insika.choices import Thinking
from insika.providers.openai.models import family
from tests.unit.providers.openai.chat_cases import Fake, asked, body_of, judged

T = Thinking
KEYS = ("reasoning_effort", "thinking", "reasoning", "chat_template_kwargs", "include_reasoning")


def said_of_thinking(fake: Fake, thinking: Thinking | None, **changes: Any) -> dict[str, Any]:
    request = asked(fake=fake, thinking=thinking, **changes)
    assert judged(request, fake).refusals == ()
    return {key: value for key, value in body_of(request, fake).items() if key in KEYS}


def effort(value: str) -> dict[str, Any]:
    return {"reasoning_effort": value}


@pytest.mark.parametrize(
    ("model", "off", "on"),
    [
        ("o3", effort("low"), {}),
        ("o4-mini-2025-04-16", effort("low"), {}),
        ("gpt-5", effort("minimal"), {}),
        ("gpt-5-mini-2025-08-07", effort("minimal"), {}),
        ("gpt-5.1", effort("none"), effort("medium")),
        ("gpt-5.2", effort("none"), effort("medium")),
        ("gpt-5.3", effort("none"), effort("medium")),
    ],
)
@pytest.mark.parametrize("tools", [True, False])
def test_each_of_openais_models_is_told_in_its_own_words(
    model: str, off: dict[str, Any], on: dict[str, Any], tools: bool
) -> None:
    more: dict[str, Any] = {"model": model, **({} if tools else {"tools": ()})}
    assert said_of_thinking(Fake.OPENAI, None, **more) == {}
    assert said_of_thinking(Fake.OPENAI, T.OFF, **more) == off
    assert said_of_thinking(Fake.OPENAI, T.ON, **more) == on
    for one in (T.LOW, T.MEDIUM, T.HIGH):
        assert said_of_thinking(Fake.OPENAI, one, **more) == effort(one.value)


@pytest.mark.parametrize("thinking", [None, *Thinking])
@pytest.mark.parametrize("may_call", [True, False])
def test_models_that_refuse_tools_with_reasoning_are_asked_without_it(
    thinking: Thinking | None, may_call: bool
) -> None:
    for model in ("gpt-5.4", "gpt-5.4-mini"):
        assert said_of_thinking(Fake.OPENAI, thinking, model=model, may_call=may_call) == {}
    for model in ("gpt-5.5", "gpt-5.6-terra", "gpt-6"):
        assert said_of_thinking(Fake.OPENAI, thinking, model=model, may_call=may_call) == effort("none")


def test_without_tools_those_models_reason_as_they_are_told() -> None:
    for model, on in (("gpt-5.4", effort("medium")), ("gpt-5.6", {}), ("gpt-6", {})):
        assert said_of_thinking(Fake.OPENAI, None, model=model, tools=()) == {}
        assert said_of_thinking(Fake.OPENAI, T.OFF, model=model, tools=()) == effort("none")
        assert said_of_thinking(Fake.OPENAI, T.ON, model=model, tools=()) == on
        assert said_of_thinking(Fake.OPENAI, T.HIGH, model=model, tools=()) == effort("high")


@pytest.mark.parametrize("thinking", [None, *Thinking])
def test_nothing_is_said_to_a_model_that_does_not_reason(thinking: Thinking | None) -> None:
    for model in ("gpt-4o", "gpt-4o-2024-11-20", "gpt-4.1-mini"):
        assert said_of_thinking(Fake.OPENAI, thinking, model=model) == {}


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-3.5-turbo", False),
        ("gpt-35-turbo", False),
        ("gpt-4-0613", False),
        ("chatgpt-4o-latest", False),
        ("gpt-5-chat-latest", False),
        ("gpt-5.2-chat-latest", False),
        ("gpt-oss-120b", False),
        ("omni-moderation-latest", False),
        ("something-new", False),
        ("ft:gpt-4.1-mini-2025-04-14:shop::abc", False),
        ("ft:o4-mini-2025-04-16:shop::abc", True),
        ("o1", True),
        ("o1-2024-12-17", True),
        ("gpt-5-nano", True),
        ("gpt-5.10", True),
        ("gpt-7.2-huge", True),
    ],
)
def test_families_are_told_by_names(model: str, reasons: bool) -> None:
    assert family(model).reasons is reasons


def test_a_later_number_is_of_the_latest_family() -> None:
    assert family("gpt-5.10") == family("gpt-5.5") == family("gpt-9") != family("gpt-5.1")


def test_deepseek_has_a_switch_and_an_effort() -> None:
    assert said_of_thinking(Fake.DEEPSEEK, None) == {}
    assert said_of_thinking(Fake.DEEPSEEK, T.OFF) == {"thinking": {"type": "disabled"}}
    assert said_of_thinking(Fake.DEEPSEEK, T.ON) == {"thinking": {"type": "enabled"}}
    for one in (T.LOW, T.MEDIUM, T.HIGH):
        assert said_of_thinking(Fake.DEEPSEEK, one) == {"thinking": {"type": "enabled"}, **effort(one.value)}


def test_openrouter_has_one_object_for_all_of_it() -> None:
    assert said_of_thinking(Fake.OPENROUTER, None) == {}
    assert said_of_thinking(Fake.OPENROUTER, T.OFF) == {"reasoning": {"effort": "none"}}
    assert said_of_thinking(Fake.OPENROUTER, T.ON) == {"reasoning": {"enabled": True}}
    for one in (T.LOW, T.MEDIUM, T.HIGH):
        assert said_of_thinking(Fake.OPENROUTER, one) == {"reasoning": {"effort": one.value}}


@pytest.mark.parametrize("fake", [Fake.VLLM, Fake.OLLAMA])
def test_servers_of_ones_own_are_told_an_effort(fake: Fake) -> None:
    assert said_of_thinking(fake, None) == said_of_thinking(fake, T.ON) == {}
    assert said_of_thinking(fake, T.OFF) == effort("none")
    for one in (T.LOW, T.MEDIUM, T.HIGH):
        assert said_of_thinking(fake, one) == effort(one.value)
