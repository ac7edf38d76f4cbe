from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from insika.agents.policies import own_policies
from insika.agents.profile import EdgeStream, Profile, load_profile
from insika.choices import OnExhausted, QueueMode, Thinking
from insika.errors import InvalidConfiguration

SMALLEST: dict[str, Any] = {"id": "store-support", "model": "offline/demo"}


def problems(data: Any) -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile(data, "the profile")
    assert caught.value.where == "the profile"
    assert caught.value.__cause__ is None
    return dict(caught.value.problems)


def with_limits(**limits: Any) -> dict[str, Any]:
    return {**SMALLEST, "limits": limits}


def test_the_defaults_are_those_of_the_contract() -> None:
    profile = load_profile(SMALLEST, "x")
    limits = profile.limits
    assert (profile.instructions, profile.tools_allow, profile.tools_allow_groups) == ("", None, None)
    assert (profile.tools_deny, profile.approvals_required, profile.policies) == ((), (), ())
    assert (limits.turn_timeout, limits.tool_timeout, limits.approval_timeout) == (300, 60, 3600)
    assert (limits.max_tool_calls, limits.on_exhausted, limits.max_tool_repeat) == (50, OnExhausted.RAISE, 3)
    assert (limits.tool_concurrency, limits.context_budget) == (1, None)
    assert (limits.queue_mode, limits.debounce_ms, limits.debounce_max_ms) == (QueueMode.FOLLOWUP, 0, 10_000)
    assert (limits.steer_max_messages, limits.steer_join, limits.mailbox_max) == (5, None, 50)
    assert limits.given() == {}
    assert profile.params.thinking is None


def test_every_supported_key_is_read() -> None:
    profile = load_profile(
        {
            "id": "a.b_c-1",
            "model": "openrouter/meta/llama-3:free",
            "instructions": "Help.\n",
            "tools_allow": ["order_lookup", "refund"],
            "tools_allow_groups": ["shop"],
            "tools_deny": ["refund"],
            "policies": ["tool_allowlist", "approval_required"],
            "approvals_required": ["refund", "close_account"],
            "limits": {
                "turn_timeout": 12.5,
                "tool_timeout": 3,
                "approval_timeout": 60,
                "max_tool_calls": 7,
                "on_exhausted": "synthesize",
                "max_tool_repeat": 0,
                "tool_concurrency": 4,
                "context_budget": 8000,
                "queue_mode": "steer",
                "debounce_ms": 10,
                "debounce_max_ms": 20,
                "steer_max_messages": 2,
                "steer_join": "added: %{message}",
                "mailbox_max": 9,
            },
            "params": {"thinking": False, "max_tokens": 4000},
            "edge_stream": {"thinking": True, "intermediate": True},
        },
        "x",
    )
    assert (profile.provider, profile.model_name) == ("openrouter", "meta/llama-3:free")
    assert profile.tools_allow == ("order_lookup", "refund")
    assert profile.approvals_required == ("refund", "close_account")
    assert profile.limits.turn_timeout == 12.5
    assert profile.limits.on_exhausted is OnExhausted.SYNTHESIZE
    assert profile.limits.given()["queue_mode"] is QueueMode.STEER
    assert (profile.params.thinking, profile.params.max_tokens) == (Thinking.OFF, 4000)
    assert profile.edge_stream == EdgeStream(thinking=True, intermediate=True)


def test_absent_empty_and_null_tool_lists_are_three_things() -> None:
    assert load_profile(SMALLEST, "x").tools_allow is None
    assert load_profile({**SMALLEST, "tools_allow": []}, "x").tools_allow == ()
    for key in ("tools_allow", "tools_allow_groups"):
        assert "must not be null" in problems({**SMALLEST, key: None})[key]
    assert load_profile({**SMALLEST, "tools_allow_groups": []}, "x").tools_allow_groups == ()
    assert problems({**SMALLEST, "tools_deny": None})["tools_deny"] == "must be a list, got null"
    assert problems({**SMALLEST, "tools_allow": "refund"})["tools_allow"] == "must be a list, got 'refund'"
    assert problems({**SMALLEST, "tools_allow": ["a", 5, ""]}) == {
        "tools_allow.1": "must be a string, got 5",
        "tools_allow.2": "must not be empty, got ''",
    }


def test_nobody_is_asked_about_a_list_that_is_none() -> None:
    assert load_profile({**SMALLEST, "approvals_required": []}, "x").approvals_required == ()
    assert load_profile({**SMALLEST, "approvals_required": ["a", "a"]}, "x").approvals_required == ("a", "a")
    for given, got in ((None, "null"), ("refund", "'refund'"), (True, "true"), ({"refund": True}, "an object")):
        found = problems({**SMALLEST, "approvals_required": given})
        assert found == {"approvals_required": f"must be a list, got {got}"}
    assert problems({**SMALLEST, "approvals_required": ["a", 5, ""]}) == {
        "approvals_required.1": "must be a string, got 5",
        "approvals_required.2": "must not be empty, got ''",
    }


def test_the_policies_that_join_by_themselves_may_be_named() -> None:
    for names in ([], ["tool_allowlist"], ["approval_required", "tool_allowlist"]):
        assert load_profile({**SMALLEST, "policies": names}, "x").policies == tuple(names)


@pytest.mark.parametrize("name", ["business_hours", "vip.2", "Tool_Allowlist"])
def test_a_policy_of_ones_own_may_be_named_wherever_the_profile_is_read(name: str) -> None:
    profile = load_profile({**SMALLEST, "policies": ["tool_allowlist", name, name]}, "x")
    assert own_policies(profile.policies) == (name,)


@pytest.mark.parametrize("name", [" tool_allowlist", "", "a b", "x" * 65, "ü"])
def test_what_no_policy_can_be_called_is_refused_at_its_place(name: str) -> None:
    found = problems({**SMALLEST, "policies": ["tool_allowlist", name]})
    assert list(found) == ["policies.1"]
    assert "tool_allowlist or approval_required, or one of your own" in found["policies.1"]


def test_policies_are_a_list_of_names() -> None:
    assert problems({**SMALLEST, "policies": None})["policies"] == "must be a list, got null"
    assert problems({**SMALLEST, "policies": [5]})["policies.0"] == "must be a string, got 5"


@pytest.mark.parametrize(
    ("limits", "path", "why"),
    [
        ({"max_tool_calls": 0}, "max_tool_calls", "must be greater than 0, got 0"),
        ({"max_tool_calls": -1}, "max_tool_calls", "must be greater than 0, got -1"),
        ({"max_tool_calls": True}, "max_tool_calls", "must be a whole number, got true"),
        ({"max_tool_calls": "5"}, "max_tool_calls", "must be a whole number, got '5'"),
        ({"max_tool_calls": 5.5}, "max_tool_calls", "must be a whole number, got 5.5"),
        ({"turn_timeout": 0}, "turn_timeout", "must be greater than 0, got 0"),
        ({"turn_timeout": None}, "turn_timeout", "must be a number, got null"),
        ({"turn_timeout": 1e12}, "turn_timeout", "must be at most 604800, got 1000000000000.0"),
        ({"tool_concurrency": 0}, "tool_concurrency", "must be at least 1, got 0"),
        ({"context_budget": 0}, "context_budget", "must be greater than 0, got 0"),
        ({"debounce_ms": -1}, "debounce_ms", "must be at least 0, got -1"),
        ({"steer_join": "added"}, "steer_join", "must hold %{message}, or the customer's words would be lost"),
        ({"on_exhausted": "synthesize", "max_tool_calls": None}, "on_exhausted", "synthesize needs a max_tool_calls"),
        (
            {"queue_mode": "colect"},
            "queue_mode",
            "must be one of 'followup', 'collect', 'steer' or 'interrupt', got 'colect'",
        ),
        ({"queue_mode": True}, "queue_mode", "; put it in quotes"),
        ({"max_tool_call": 5}, "max_tool_call", "unknown key; did you mean max_tool_calls?"),
        ({"xyz": 5}, "xyz", "unknown key"),
    ],
)
def test_a_limit_that_may_not_be_is_named(limits: dict[str, Any], path: str, why: str) -> None:
    found = problems(with_limits(**limits))
    assert list(found) == [f"limits.{path}"]
    assert why in found[f"limits.{path}"]


def test_synthesize_is_allowed_with_the_default_budget_and_blamed_once() -> None:
    load_profile(with_limits(on_exhausted="synthesize"), "x")
    load_profile(with_limits(max_tool_calls=None), "x")
    assert list(problems(with_limits(on_exhausted="synthesize", max_tool_calls=0))) == ["limits.max_tool_calls"]


def test_null_and_zero_mean_off_where_a_platform_stands_behind() -> None:
    off = with_limits(queue_mode=None, debounce_ms=None, debounce_max_ms=0, steer_max_messages=0, mailbox_max=None)
    given = load_profile(off, "x").limits.given()
    assert given == off["limits"]


@pytest.mark.parametrize(
    ("given", "read"),
    [(False, Thinking.OFF), ("off", Thinking.OFF), (None, None), ("", None), (" Off ", Thinking.OFF)],
)
def test_thinking_reads_what_yaml_makes_of_its_words(given: Any, read: Thinking | None) -> None:
    assert load_profile({**SMALLEST, "params": {"thinking": given}}, "x").params.thinking is read


@pytest.mark.parametrize("id_", ["", " ", "a b", "a/b", ".a", "-a", "a" * 129, "é", "a\n", 5, None, True])
def test_an_id_can_stand_in_a_url(id_: Any) -> None:
    assert list(problems({**SMALLEST, "id": id_})) == ["id"]


@pytest.mark.parametrize(
    "model", ["", "demo", "/demo", "offline/", "Offline/demo", "off line/demo", "offline/de mo", 5, None]
)
def test_a_model_is_provider_and_name(model: Any) -> None:
    assert list(problems({**SMALLEST, "model": model})) == ["model"]


@pytest.mark.parametrize(("data", "got"), [(None, "null"), ([], "a list"), ("x", "a string"), (5, "a number")])
def test_what_is_no_mapping_is_refused(data: Any, got: str) -> None:
    assert problems(data) == {"": f"must be a mapping, got {got}"}
    assert problems({**SMALLEST, "limits": data})["limits"].startswith("must be a mapping, got ")


def test_every_mistake_is_listed_in_the_order_of_the_document() -> None:
    found = problems(
        {
            "modle": "offline/demo",
            "id": "a b",
            "limits": {"max_tool_calls": 0, "nope": 1, "policies": []},
            "policies": ["x y"],
            "instructions": "a\0",
            "params": {"thinkin": "low"},
        }
    )
    assert list(found) == [
        "modle",
        "id",
        "limits.max_tool_calls",
        "limits.nope",
        "limits.policies",
        "policies.0",
        "instructions",
        "params.thinkin",
        "model",
    ]
    assert found["modle"] == "unknown key; did you mean model?"
    assert found["params.thinkin"] == "unknown key; did you mean thinking?"
    assert found["model"] == "is required"


def test_the_error_reads_well() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile(with_limits(max_tool_calls=0), "agents/a.yaml")
    assert str(caught.value) == "agents/a.yaml is not valid:\n  limits.max_tool_calls: must be greater than 0, got 0"
    assert caught.value.field == "limits.max_tool_calls"


def test_a_profile_cannot_be_changed() -> None:
    profile = load_profile(SMALLEST, "x")
    with pytest.raises(ValidationError):
        profile.id = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        profile.limits.turn_timeout = 1  # type: ignore[misc]


def test_a_revision_depends_on_what_is_written_and_not_on_its_order() -> None:
    one = load_profile({**SMALLEST, "limits": {"turn_timeout": 300, "debounce_ms": 0}}, "x")
    other = load_profile({"limits": {"debounce_ms": 0, "turn_timeout": 300.0}, **dict(reversed(SMALLEST.items()))}, "y")
    assert one.revision() == other.revision()
    assert len(one.revision()) == 64
    assert one.revision() != load_profile(with_limits(turn_timeout=300), "x").revision()
    assert one.revision() != load_profile(with_limits(turn_timeout=300, debounce_ms=None), "x").revision()


def test_a_revision_does_not_change_between_versions() -> None:
    assert load_profile(SMALLEST, "x").revision() == "cd562c97de38248e337dc88a4ed729a6fbd9d50ee4a584d96dce6258e0c9a470"


def test_what_is_stored_makes_the_same_profile() -> None:
    profile = load_profile(with_limits(queue_mode=None, chat_rate_limit=None, turn_timeout=5), "x")
    again = load_profile(profile.document(), "the store")
    assert again == profile
    assert again.limits.given() == profile.limits.given() == {"queue_mode": None}
    assert "chat_rate_limit" in again.document()["limits"]
    assert isinstance(again, Profile)
