"""Every mistake in a profile is told where it stands and in words that say what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from insika.agents.profile import load_profile
from insika.errors import InvalidConfiguration

AGENT = {"id": "a", "model": "offline/demo"}
ROUTES: dict[str, Any] = {"a": "asks", "default": "a"}

MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"id": "a b"}, "id", "must have 1 to 128 letters, digits"),
    ({"model": "demo"}, "model", "must be provider/name, like offline/demo, got 'demo'"),
    ({"instrctions": "x"}, "instrctions", "unknown key; did you mean instructions?"),
    ({"instructions": 5}, "instructions", "must be a string, got 5"),
    ({"tools_allow": "refund"}, "tools_allow", "must be a list, got 'refund'"),
    ({"tools_allow": None}, "tools_allow", "leave the key out to allow every tool, or write [] to allow none"),
    ({"tools_allow": [5]}, "tools_allow.0", "must be a string, got 5"),
    ({"tools_allow_groups": None}, "tools_allow_groups", "must not be null"),
    ({"tools_deny": [""]}, "tools_deny.0", "must not be empty"),
    ({"approvals_required": {"refund": True}}, "approvals_required", "must be a list, got an object"),
    ({"policies": "hours"}, "policies", "must be a list, got 'hours'"),
    ({"policies": ["open hours"]}, "policies.0", "or one of your own, of 1 to 64 letters"),
    ({"limits": {"chat_rate_limit": -1}}, "limits.chat_rate_limit", "must be at least 0, got -1"),
    ({"limits": {"chat_rate_limit": "20"}}, "limits.chat_rate_limit", "must be a whole number, got '20'"),
    ({"limits": {"agent_token_ceiling": 1.5}}, "limits.agent_token_ceiling", "must be a whole number, got 1.5"),
    ({"limits": {"agent_tokens_ceiling": 5}}, "limits.agent_tokens_ceiling", "did you mean agent_token_ceiling?"),
    ({"limits": {"chat_rate_window": 5}}, "limits.chat_rate_window", "unknown key"),
    ({"limits": {"steer_join": "x"}}, "limits.steer_join", "must hold %{message}"),
    (
        {"limits": {"on_exhausted": "synthesize", "max_tool_calls": None}},
        "limits.on_exhausted",
        "synthesize needs a max_tool_calls",
    ),
    ({"budget": 5}, "budget", "must be a mapping, got 5"),
    ({"budget": {"daily": -1}}, "budget.daily", "must be at least 0, got -1"),
    ({"budget": {"daily": "100_000"}}, "budget.daily", "must be a whole number, got '100_000'"),
    ({"budget": {"dayly": 5}}, "budget.dayly", "unknown key; did you mean daily?"),
    ({"budget": {"monthly": 10**16}}, "budget.monthly", "must be at most 1000000000000000"),
    ({"budget": {"soft": "yes"}}, "budget.soft", "must be true or false, got 'yes'"),
    ({"budget": {"alert_at": 0}}, "budget.alert_at", "must be greater than 0, got 0"),
    ({"budget": {"alert_at": 80}}, "budget.alert_at", "must be at most 1, got 80"),
    ({"reliability": True}, "reliability", "must be a mapping, got true"),
    ({"reliability": {"retries": 11}}, "reliability.retries", "must be at most 10, got 11"),
    ({"reliability": {"retries": None}}, "reliability.retries", "must be a whole number, got null"),
    ({"reliability": {"backoff": "linear"}}, "reliability.backoff", "'exponential' or 'constant', got 'linear'"),
    ({"reliability": {"timeout": 0}}, "reliability.timeout", "must be greater than 0, got 0"),
    ({"reliability": {"fallback": "openai/x"}}, "reliability.fallback", "must be a list, got 'openai/x'"),
    ({"reliability": {"fallback": ["gpt"]}}, "reliability.fallback.0", "must be provider/name"),
    ({"reliability": {"circuit_breaker": True}}, "reliability.circuit_breaker", "must be a mapping, got true"),
    ({"reliability": {"circuit_breaker": {"after": 0}}}, "reliability.circuit_breaker.after", "must be at least 1"),
    (
        {"reliability": {"circuit_breaker": {"within": "60s"}}},
        "reliability.circuit_breaker.within",
        "must be a number, got '60s'",
    ),
    (
        {"reliability": {"circuit_breaker": {"cooldwon": 5}}},
        "reliability.circuit_breaker.cooldwon",
        "did you mean cooldown?",
    ),
    ({"routes": []}, "routes", "must be a mapping, got a list"),
    ({"routes": {"a": "asks"}}, "routes.default", "is required"),
    ({"routes": {**ROUTES, "default": "A"}}, "routes.default", "must name one of the routes, got 'A'"),
    ({"routes": {**ROUTES, "default": None}}, "routes.default", "must be a string, got null"),
    ({"routes": {"default": "a"}}, "routes", "at least one route beside default and model, which are reserved"),
    ({"routes": {**ROUTES, "model": "gpt"}}, "routes.model", "must be provider/name"),
    ({"routes": {**ROUTES, "b": 5}}, "routes.b", "must be a mapping, got 5"),
    ({"routes": {**ROUTES, "b": ""}}, "routes.b.description", "must not be empty"),
    ({"routes": {**ROUTES, "b c": "x"}}, "routes.b c", "a route's name must have 1 to 64 letters"),
    ({"routes": {**ROUTES, "b": {"delegate": "x"}}}, "routes.b.description", "is required"),
    (
        {"routes": {**ROUTES, "b": {"description": "x", "delegat": "c"}}},
        "routes.b.delegat",
        "unknown key; did you mean delegate?",
    ),
    ({"routes": {**ROUTES, "b": {"description": "x", "delegate": "c d"}}}, "routes.b.delegate", "must have 1 to 128"),
    ({"routes": {**ROUTES, "b": {"description": "x", "stuck": "yes"}}}, "routes.b.stuck", "must be true or false"),
    (
        {"routes": {**ROUTES, "b": {"description": "x", "delegate": "c", "stuck": True}}},
        "routes.b",
        "either delegates or is stuck, not both",
    ),
    ({"routes": {**ROUTES, "b": {"description": "x", "message": "m"}}}, "routes.b", "said only by a route that"),
    ({"alerts": "https://x.example"}, "alerts", "must be a mapping"),
    ({"alerts": {"webhok": "https://x.example"}}, "alerts.webhok", "did you mean webhook?"),
    ({"alerts": {"webhook": "ops.example"}}, "alerts.webhook", "must be a URL that begins with https:// or http://"),
    ({"alerts": {"webhook": "https://me:hush@x.example"}}, "alerts.webhook", "must hold no user or password"),
    ({"guardrails": "off"}, "guardrails", "must be a mapping, got 'off'"),
    ({"guardrails": {"inptu": False}}, "guardrails.inptu", "did you mean input?"),
    ({"guardrails": {"input": "no"}}, "guardrails.input", "must be true or false, got 'no'"),
    ({"guardrails": {"strictness": "strict"}}, "guardrails.strictness", "'low', 'medium' or 'high'"),
    ({"guardrails": {"languages": ["xx"]}}, "guardrails.languages.0", "must be one of 'en'"),
    ({"guardrails": {"remove": ["A b"]}}, "guardrails.remove.0", "must match ^[a-z]"),
    ({"guardrails": {"add": [{"id": "x"}]}}, "guardrails.add.0.pattern", "is required"),
    ({"guardrails": {"add": [{"id": "x", "pattern": "("}]}}, "guardrails.add.0.pattern", "RE2's syntax"),
    ({"guardrails": {"add": [{"id": "X", "pattern": "a"}]}}, "guardrails.add.0.id", "must match ^[a-z]"),
    (
        {"guardrails": {"redact": [{"kind": "x", "pattern": "a*"}]}},
        "guardrails.redact.0.pattern",
        "must not match the empty text",
    ),
    ({"guardrails": {"keep": ["ab"]}}, "guardrails.keep.0", "must have at least 4 letters or digits"),
    ({"params": None}, "params", "must be a mapping, got null"),
    ({"params": {"thinking": "hard"}}, "params.thinking", "must be one of off, on, low, medium, high"),
    ({"params": {"max_tokens": 0}}, "params.max_tokens", "must be at least 1, got 0"),
    ({"edge_stream": {"thinking": "on"}}, "edge_stream.thinking", "must be true or false, got 'on'"),
    ({"edge_stream": {"thoughts": True}}, "edge_stream.thoughts", "unknown key"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "path", "says"), MISTAKES, ids=[f"{path}-{at}" for at, (_, path, _) in enumerate(MISTAKES)]
)
def test_a_mistake_is_told_once_at_its_path(data: dict[str, Any], path: str, says: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile({**AGENT, **data}, "x")
    ((where, why),) = caught.value.problems
    assert where == path
    assert says in why
    assert "hush" not in why


def test_the_mistakes_of_all_sections_are_told_together_in_the_order_of_the_document() -> None:
    document = {
        **AGENT,
        "budget": {"daily": -1},
        "reliability": {"retries": 11, "circuit_breaker": {"after": 0}},
        "routes": {**ROUTES, "b": 5, "default": "c"},
        "alerts": {"webhook": "x"},
        "guardrails": {"strictness": "strict"},
    }
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile(document, "x")
    assert [path for path, _ in caught.value.problems] == [
        "budget.daily",
        "reliability.retries",
        "reliability.circuit_breaker.after",
        "routes.b",
        "alerts.webhook",
        "guardrails.strictness",
    ]
