"""Which layer says how much a model reasons: session, agent, model, platform, in that order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from insika.agents.limits import TurnLimits, turn_limits
from insika.agents.profile import load_profile
from insika.agents.thinking import thinking_in_force
from insika.choices import Thinking
from insika.session_vars import remembered_vars, session_thinking, var_updates
from insika.settings import load_settings

MODEL = "openai/gpt-4o-mini"
SAID: dict[Any, Thinking | None] = {
    "off": Thinking.OFF,
    "on": Thinking.ON,
    "low": Thinking.LOW,
    "medium": Thinking.MEDIUM,
    "high": Thinking.HIGH,
    " High ": Thinking.HIGH,
    None: None,
    "": None,
    " \t": None,
}
"""What each layer may say in words; YAML's true and false are tried below."""
ABSENT = object()
SPEECH = ["low", "off", None, "", ABSENT]


def at(key: str, value: Any) -> dict[str, Any]:
    return {} if value is ABSENT else {key: value}


def in_force(session: Any = ABSENT, agent: Any = ABSENT, model: Any = ABSENT, platform: Any = ABSENT) -> TurnLimits:
    """By the documents and vars as people write them."""
    profile = load_profile({"id": "a", "model": MODEL, "params": at("thinking", agent)}, "x")
    settings = load_settings({"model_params": {MODEL: at("thinking", model)}, **at("thinking", platform)}, "y")
    remembered = remembered_vars(at("thinking", session))
    return turn_limits(profile, settings, session_thinking=session_thinking(remembered))


def read(value: Any) -> Thinking | None:
    return None if value is ABSENT else SAID[value]


def test_the_first_layer_that_says_something_has_the_word() -> None:
    for layers in itertools.product(SPEECH, repeat=4):
        spoken = [word for word in map(read, layers) if word is not None]
        assert in_force(*layers).thinking is (spoken[0] if spoken else None), layers


def test_no_word_is_weaker_than_another() -> None:
    for layers in itertools.product([None, *Thinking], repeat=4):
        assert thinking_in_force(*layers) is next((word for word in layers if word), None), layers


@pytest.mark.parametrize("layer", ["session", "agent", "model", "platform"])
@pytest.mark.parametrize("word", [*SAID, True, False])
def test_every_layer_reads_every_word(layer: str, word: Any) -> None:
    said = {True: Thinking.ON, False: Thinking.OFF}.get(word, SAID.get(word)) if word in (True, False) else SAID[word]
    assert in_force(**{layer: word}).thinking is said


@pytest.mark.parametrize(
    "vars", [{"__llm__": {"thinking": "high"}}, {"__llm__": {"thinking": "low"}, "thinking": "high"}]
)
def test_the_older_spelling_of_the_session_s_word_counts_too(vars: dict[str, Any]) -> None:
    assert session_thinking(remembered_vars(vars)) is Thinking.HIGH


@pytest.mark.parametrize("clearing", [{"thinking": None}, {"thinking": " "}, {"__llm__": {"thinking": None}}])
def test_a_session_that_clears_its_word_inherits_again(clearing: dict[str, Any]) -> None:
    remembered: dict[str, Any] = remembered_vars({"thinking": "high"})
    remembered.update(var_updates(clearing))
    profile = load_profile({"id": "a", "model": MODEL, "params": {"thinking": "low"}}, "x")
    found = turn_limits(profile, load_settings({}, "y"), session_thinking=session_thinking(remembered))
    assert found.thinking is Thinking.LOW


def test_another_model_s_word_does_not_count() -> None:
    settings = load_settings({"model_params": {"openai/other": {"thinking": "high", "max_tokens": 5}}}, "y")
    found = turn_limits(load_profile({"id": "a", "model": MODEL}, "x"), settings)
    assert (found.thinking, found.max_output_tokens) == (None, None)


@pytest.mark.parametrize(
    ("agent", "model", "found"), [(100, 200, 100), (None, 200, 200), (ABSENT, 200, 200), (7, ABSENT, 7)]
)
def test_how_much_one_answer_may_have_is_the_agent_s_to_say_and_else_the_model_s(
    agent: Any, model: Any, found: int
) -> None:
    profile = load_profile({"id": "a", "model": MODEL, "params": at("max_tokens", agent)}, "x")
    settings = load_settings({"model_params": {MODEL: at("max_tokens", model)}}, "y")
    assert turn_limits(profile, settings).max_output_tokens == found


def test_what_is_frozen_survives_its_row() -> None:
    frozen = in_force(agent="medium")
    assert TurnLimits.from_dict(frozen.as_dict()).thinking is Thinking.MEDIUM
