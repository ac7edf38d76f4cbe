"""The guardrails of a profile as data."""

from __future__ import annotations

from typing import Any

import pytest

from insika.agents.guardrails import Guardrails, OwnPattern, OwnRedaction
from insika.agents.profile import load_profile
from insika.choices import Language, Strictness
from insika.documents import parse_json
from insika.errors import InvalidConfiguration
from insika.parsing import parse_document

SMALLEST: dict[str, Any] = {"id": "shop", "model": "offline/demo"}


def read(data: Any) -> Guardrails:
    return parse_document(Guardrails, data, "x", more_problems=lambda _: ())


def problems(data: Any) -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as caught:
        read(data)
    return dict(caught.value.problems)


def test_they_are_on_unless_switched_off() -> None:
    for written in ({}, {"guardrails": {}}, {"guardrails": None}, {"guardrails": True}):
        guards = load_profile({**SMALLEST, **written}, "x").guards
        assert (guards.input, guards.output, guards.strictness) == (True, True, Strictness.MEDIUM)
    off = load_profile({**SMALLEST, "guardrails": False}, "x")
    assert (off.guards.input, off.guards.output) == (False, False)
    assert load_profile(off.document(), "x") == off
    assert load_profile({**SMALLEST, "guardrails": {"input": False}}, "x").guards == Guardrails(input=False)


def test_what_is_said_twice_is_named_also_beside_the_switch() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load_profile(parse_json('{"id": "a", "model": "offline/demo", "id": "b", "guardrails": false}'), "x")
    assert caught.value.problems == [("id", "the key is given more than once")]


def test_every_key_is_read() -> None:
    guards = read(
        {
            "input": True,
            "output": False,
            "strictness": "high",
            "moderator": "openai/gpt-4o-mini",
            "languages": ["pt", "en"],
            "remove": ["en.threat", "iban"],
            "add": [{"id": "rival", "category": "rivals", "pattern": "acme", "unless": "bought", "view": "words"}],
            "redact": [{"kind": "order", "pattern": "ORD-[0-9]{6}", "at_most": 10, "replacement": "[order]"}],
            "keep": ["support@shop.example"],
            "responses": {"default": "No.", "rivals": "Ask them.", "abuse": "Be kind.", "injection": "No!"},
        }
    )
    assert (guards.output, guards.strictness, guards.moderator) == (False, Strictness.HIGH, "openai/gpt-4o-mini")
    assert guards.languages == (Language.PT, Language.EN)
    assert guards.add == (OwnPattern(id="rival", category="rivals", pattern="acme", unless="bought", view="words"),)
    assert guards.redact == (OwnRedaction(kind="order", pattern="ORD-[0-9]{6}", at_most=10, replacement="[order]"),)
    assert guards.responses["rivals"] == "Ask them."


@pytest.mark.parametrize(
    ("data", "path", "why"),
    [
        ({"inptu": False}, "inptu", "unknown key; did you mean input?"),
        ({"input": None}, "input", "must be true or false, got null"),
        ({"input": "yes"}, "input", "must be true or false, got 'yes'"),
        ({"strictness": "mild"}, "strictness", "must be one of 'low', 'medium' or 'high', got 'mild'"),
        ({"moderator": "gpt"}, "moderator", "must be provider/name, like offline/demo, got 'gpt'"),
        ({"languages": ["xx"]}, "languages.0", "must be one of 'en', 'pt', 'es', 'de' or 'fr', got 'xx'"),
        ({"languages": "en"}, "languages", "must be a list, got 'en'"),
        ({"add": [{"pattern": "x"}]}, "add.0.id", "is required"),
        ({"add": [{"id": "a", "pattern": ""}]}, "add.0.pattern", "must not be empty, got ''"),
        ({"add": [{"id": "a", "pattern": "x", "veiw": "text"}]}, "add.0.veiw", "unknown key; did you mean view?"),
        ({"add": [{"id": "a", "pattern": "acme|"}]}, "add.0.pattern", "must not match the empty text"),
        ({"add": [{"id": "a", "pattern": "\u0301"}]}, "add.0.pattern", "must not match the empty text"),
        ({"add": [{"id": "a", "pattern": "x", "unless": "y*"}]}, "add.0.unless", "must not match the empty text"),
        ({"redact": [{"kind": "a", "pattern": "x*"}]}, "redact.0.pattern", "must not match the empty text"),
        (
            {"redact": [{"kind": "a", "pattern": "x", "at_most": 257}]},
            "redact.0.at_most",
            "must be at most 256, got 257",
        ),
        ({"keep": ["a-b-c"]}, "keep.0", "must have at least 4 letters or digits"),
    ],
)
def test_a_mistake_is_named_by_its_path(data: Any, path: str, why: str) -> None:
    found = problems(data)
    assert found == {path: why}


@pytest.mark.parametrize("pattern", ["(", "(?<=a)b", r"(a)\1", "a(?=b)", "[z-a]", "[z-à]", "*"])
def test_a_pattern_that_cannot_run_in_linear_time_is_refused(pattern: str) -> None:
    assert "is not a pattern in RE2's syntax" in problems({"add": [{"id": "a", "pattern": pattern}]})["add.0.pattern"]


def test_a_pattern_s_id_and_category_are_words_that_no_built_in_one_can_have() -> None:
    for id in ("en.threat", "A", "", "a b", "1a", "-a"):
        assert list(problems({"add": [{"id": id, "pattern": "x"}]})) == ["add.0.id"], id
    two = {"add": [{"id": "a", "pattern": "x"}, {"id": "a", "pattern": "y"}]}
    assert problems(two) == {"add": "two patterns have the same id"}


def test_a_reply_to_what_is_never_refused_is_a_mistake() -> None:
    found = problems({"responses": {"abusee": "x"}})["responses"]
    assert "abusee" in found
    assert "did you mean abuse?" in found
    assert read({"add": [{"id": "a", "pattern": "x"}], "responses": {"own": "x"}}).responses == {"own": "x"}
    assert list(problems({"responses": {"own": "x"}})) == ["responses"]


def test_a_pattern_with_accents_is_read_without_them() -> None:
    own = OwnPattern(id="a", pattern=r"\bAÇÃO\S", unless="só")
    assert (own.folded, own.folded_unless) == (r"\bACAO\S", "so")
