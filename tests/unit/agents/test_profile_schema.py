"""The schema that editors get agrees with what reads a profile: what is right fits, what is wrong mostly does not."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft7Validator

from insika.agents.profile import load_profile
from insika.agents.profile_schema import profile_schema, schema_text
from insika.agents.profile_words import MEANINGS
from insika.errors import InvalidConfiguration
from insika.yaml_text import parse_yaml
from tests.properties.test_profile_properties import PROFILES

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = Draft7Validator(profile_schema())
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AGENT = {"id": "a", "model": "offline/demo"}


def fits(document: object) -> bool:
    return bool(SCHEMA.is_valid(document))


def is_read(document: object) -> bool:
    try:
        load_profile(document, "x")
    except InvalidConfiguration:
        return False
    return True


def shown() -> list[tuple[str, object]]:
    """Every profile in the examples, the README and the pages."""
    found: list[tuple[str, object]] = [
        (path.name, parse_yaml(path.read_text(), path.name)) for path in (ROOT / "examples" / "agents").glob("*.yaml")
    ]
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block in BLOCK.findall(page.read_text()):
            if re.search(r"^id:", block, re.MULTILINE) and re.search(r"^model:", block, re.MULTILINE):
                found.append((page.name, parse_yaml(block, page.name)))
    return found


def test_what_is_shipped_is_what_the_code_makes() -> None:
    shipped = (files("insika.agents") / "profile.schema.json").read_text()
    assert shipped == schema_text(), "run: insika agents schema > insika/agents/profile.schema.json"


def test_it_is_a_schema() -> None:
    Draft7Validator.check_schema(profile_schema())


def test_every_key_has_its_meaning_and_no_meaning_is_left_over() -> None:
    keys: set[str] = set()

    def walk(schema: Any, path: tuple[str, ...]) -> None:
        for choice in schema.get("anyOf", ()):
            walk(choice, path)
        for key, inner in schema.get("properties", {}).items():
            keys.add(".".join((*path, key)))
            assert inner["description"]
            walk(inner, (*path, key))
        for further in (schema.get("additionalProperties"), schema.get("items")):
            if isinstance(further, dict):
                walk(further, (*path, "*"))

    walk(profile_schema(), ())
    assert keys == set(MEANINGS)


def test_every_profile_that_is_shown_fits_if_it_is_read() -> None:
    read = [(where, document) for where, document in shown() if is_read(document)]
    assert len(read) >= 5
    for where, document in read:
        assert fits(document), where


WHOLE: list[dict[str, Any]] = [
    {},
    {"tools_allow": [], "tools_allow_groups": ["orders"], "tools_deny": ["refund"], "policies": ["hours"]},
    {"policies": ["tool_allowlist", "approval_required"], "approvals_required": ["refund"]},
    {"limits": {"chat_rate_limit": None, "agent_token_ceiling": 0, "max_tool_calls": None}},
    {"limits": {"steer_join": "+ %{message}", "queue_mode": None}},
    {"limits": {"on_exhausted": "synthesize"}, "params": {"thinking": "low", "max_tokens": 9}},
    {"params": {"thinking": True}},
    {"params": {"thinking": False}},
    {"params": {"thinking": None}},
    {"budget": {"daily": 100000, "monthly": 2000000, "soft": False, "alert_at": 0.8}},
    {"budget": None, "reliability": None, "routes": None, "alerts": None, "guardrails": None, "edge_stream": None},
    {
        "reliability": {
            "retries": 2, "backoff": "exponential", "timeout": 30, "fallback": ["openai/gpt-4o-mini"],
            "circuit_breaker": {"after": 10, "within": 60, "cooldown": 300},
        }
    },
    {"alerts": {"webhook": "https://ops.example.com/insika?key=1"}},
    {"alerts": {"webhook": None}},
    {"guardrails": False},
    {"guardrails": True},
    {"guardrails": {"input": True, "strictness": "high", "languages": ["en"], "remove": ["en.threat", "iban"]}},
    {"guardrails": {"add": [{"id": "rude", "pattern": "dolt", "view": "words"}]}},
    {"edge_stream": {"thinking": True, "intermediate": False}},
]  # fmt: skip


@pytest.mark.parametrize("data", WHOLE, ids=str)
def test_what_is_right_fits(data: dict[str, Any]) -> None:
    assert is_read({**AGENT, **data})
    assert fits({**AGENT, **data})


ROUTES: list[tuple[Any, bool]] = [
    ({"a": "wants to browse", "default": "a"}, True),
    ({"a": {"description": "asks"}, "b": {"description": "asks for a person", "stuck": True}, "default": "a"}, True),
    ({"a": {"description": "asks for a person", "stuck": True, "message": "Wait."}, "default": "a"}, True),
    ({"a": {"description": "asks", "delegate": "other"}, "default": "a", "model": "openai/gpt-4o-mini"}, True),
    ({"a": {"description": "asks", "delegate": None, "message": None}, "default": "a", "model": None}, True),
    ({"a": "wants to browse"}, False),
    ({"default": "a"}, False),
    ({"a": {"delegate": "other"}, "default": "a"}, False),
    ({"a": {"description": "asks", "delegat": "other"}, "default": "a"}, False),
    ({"a": {"description": "asks", "delegate": "other", "stuck": True}, "default": "a"}, False),
    ({"a": {"description": "asks", "message": "Wait."}, "default": "a"}, False),
    ({"a": 5, "default": "a"}, False),
    ({"a": "", "default": "a"}, False),
    ({"a b": "asks", "default": "a b"}, False),
    ({"a": "asks", "default": "a", "model": "gpt"}, False),
    ([], False),
    ({"routes": {"a": {"description": "asks"}}, "default": "a"}, False),
]  # fmt: skip


@pytest.mark.parametrize(("routes", "right"), ROUTES, ids=str)
def test_routes_are_a_mapping_with_reserved_words(routes: Any, right: bool) -> None:
    assert fits({**AGENT, "routes": routes}) is right


@pytest.mark.parametrize(
    "data",
    [
        {"id": "a b"},
        {"id": 5},
        {"model": "demo"},
        {"modle": "offline/demo"},
        {"instructions": None},
        {"tools_allow": None},
        {"tools_allow_groups": None},
        {"tools_deny": None},
        {"tools_allow": "refund"},
        {"tools_allow": [""]},
        {"policies": ["a b"]},
        {"approvals_required": [5]},
        {"limits": None},
        {"limits": {"max_tool_cals": 5}},
        {"limits": {"max_tool_calls": 0}},
        {"limits": {"max_tool_calls": "5"}},
        {"limits": {"tool_timeout": -1}},
        {"limits": {"steer_join": "no place"}},
        {"limits": {"queue_mode": "sometimes"}},
        {"limits": {"on_exhausted": "synthesize", "max_tool_calls": None}},
        {"limits": {"chat_rate_limit": -1}},
        {"budget": {"daily": -1}},
        {"budget": {"daly": 5}},
        {"budget": {"alert_at": 0}},
        {"budget": {"alert_at": 80}},
        {"budget": {"soft": "yes"}},
        {"reliability": {"retries": 11}},
        {"reliability": {"backoff": "linear"}},
        {"reliability": {"fallback": "openai/gpt-4o-mini"}},
        {"reliability": {"fallback": ["gpt-4o-mini"]}},
        {"reliability": {"circuit_breaker": {"after": 0}}},
        {"reliability": {"circuit_breaker": True}},
        {"alerts": {"webhook": "ops.example.com"}},
        {"alerts": {"webhook": "https://me:secret@ops.example.com"}},
        {"alerts": {"webook": "https://ops.example.com"}},
        {"guardrails": "off"},
        {"guardrails": {"strictness": "strict"}},
        {"guardrails": {"add": [{"id": "x"}]}},
        {"guardrails": {"redact": [{"kind": "x", "pattern": "x", "at_most": 0}]}},
        {"guardrails": {"responses": {"De fault": "No."}}},
        {"params": {"thinking": "hard"}},
        {"params": {"max_tokens": 0}},
        {"edge_stream": {"thinking": "on"}},
    ],
    ids=str,
)
def test_what_is_wrong_does_not_fit(data: dict[str, Any]) -> None:
    assert not is_read({**AGENT, **data})
    assert not fits({**AGENT, **data})


@given(PROFILES)
def test_whatever_is_read_fits(document: dict[str, Any]) -> None:
    assert is_read(document)
    assert fits(document)
