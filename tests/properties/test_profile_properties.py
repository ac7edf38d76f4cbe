from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from insika.agents.limits import TurnLimits, turn_limits
from insika.agents.profile import load_profile
from insika.errors import InvalidConfiguration
from insika.settings import Settings, load_settings
from insika.text import is_clean
from insika.yaml_text import parse_yaml

OFF_OR = st.none() | st.integers(0, 1000)
QUEUE_RULES: dict[str, st.SearchStrategy[Any]] = {
    "queue_mode": st.none() | st.sampled_from(["followup", "collect", "steer", "interrupt"]),
    "debounce_ms": OFF_OR,
    "debounce_max_ms": OFF_OR,
    "steer_max_messages": OFF_OR,
    "steer_join": st.none() | st.sampled_from(["%{message}", "the customer adds: %{message}"]),
    "mailbox_max": OFF_OR,
}
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        **QUEUE_RULES,
        "turn_timeout": st.integers(1, 500) | st.floats(0.5, 500),
        "max_tool_calls": st.none() | st.integers(1, 100),
        "max_tool_repeat": st.integers(-2, 9),
        "tool_concurrency": st.integers(1, 8),
        "chat_rate_limit": st.sampled_from([None, 0]),
    },
)
NAMES = st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8), max_size=3)
PROFILES = st.fixed_dictionaries(
    {"id": st.from_regex(r"[a-z][a-z0-9._-]{0,9}", fullmatch=True), "model": st.just("offline/demo")},
    optional={
        "instructions": st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=30),
        "tools_allow": NAMES,
        "tools_deny": NAMES,
        "approvals_required": NAMES,
        "policies": st.lists(st.sampled_from(["tool_allowlist", "approval_required"]), max_size=3),
        "limits": LIMITS,
        "params": st.sampled_from(
            [{}, {"thinking": False}, {"thinking": "high"}, {"thinking": None}, {"max_tokens": 9}]
        ),
        "guardrails": st.sampled_from([None, False, {}, {"input": False}]),
    },
)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(st.characters(codec=None), max_size=5)
RUBBISH = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3))
KEYS = [
    "id",
    "model",
    "tools_allow",
    "limits",
    "params",
    "policies",
    "approvals_required",
    "guardrails",
    "edge_stream",
    "queue",
    "channels",
    "edge",
]


def shuffled(document: Any, order: Any) -> Any:
    if not isinstance(document, dict):
        return document
    keys = order.draw(st.permutations(list(document)))
    return {key: shuffled(document[key], order) for key in keys}


@given(PROFILES, st.data())
def test_a_revision_is_that_of_the_content(document: dict[str, Any], order: Any) -> None:
    profile = load_profile(document, "x")
    again = load_profile(shuffled(document, order), "y")
    assert again == profile
    assert again.revision() == profile.revision()
    assert again.limits.given() == profile.limits.given()


@given(PROFILES)
def test_store_yaml_and_json_give_the_same_profile_back(document: dict[str, Any]) -> None:
    profile = load_profile(document, "x")
    for data in (
        json.loads(json.dumps(profile.document())),
        parse_yaml(yaml.safe_dump(document, allow_unicode=True), "y"),
        parse_yaml(json.dumps(document), "y"),
    ):
        again = load_profile(data, "y")
        assert again == profile
        assert again.revision() == profile.revision()


@given(PROFILES, PROFILES)
def test_profiles_that_differ_have_other_revisions(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = load_profile(one, "x"), load_profile(other, "x")
    assert (first.revision() == second.revision()) == (first.document() == second.document())


def mistakes_in(load: Callable[[Any, str], object], data: Any) -> str | None:
    try:
        load(data, "x")
    except InvalidConfiguration as error:
        return str(error)
    return None


@given(st.dictionaries(st.sampled_from(KEYS), RUBBISH, max_size=6) | RUBBISH)
def test_rubbish_is_a_profile_or_settings_or_a_list_of_mistakes(data: Any) -> None:
    for load in (load_profile, load_settings):
        mistakes = mistakes_in(load, data)
        assert mistakes is None or is_clean(mistakes)


@given(st.fixed_dictionaries({}, optional=QUEUE_RULES), st.fixed_dictionaries({}, optional=QUEUE_RULES))
def test_each_queue_rule_comes_from_the_first_layer_that_gives_it(
    agent: dict[str, Any], platform: dict[str, Any]
) -> None:
    profile = load_profile({"id": "a", "model": "offline/demo", "limits": agent}, "x")
    merged = load_profile({"id": "a", "model": "offline/demo", "limits": {**platform, **agent}}, "x")
    found = turn_limits(profile, load_settings({"queue": platform}, "y"))
    assert found == turn_limits(merged, Settings())
    assert TurnLimits.from_dict(json.loads(json.dumps(found.as_dict()))) == found
