from __future__ import annotations

import enum
from datetime import UTC, date, datetime

import pytest

from insika.documents import (
    MAX_DEPTH,
    MAX_VALUES,
    canonical_digest,
    canonical_json,
    dotted,
    flaws,
    kind,
    parse_json,
    plain,
)


def named(document: object) -> dict[str, str]:
    return {dotted(flaw.path): flaw.why for flaw in flaws(document)}


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_plain_json_has_no_flaws() -> None:
    assert flaws({"a": [1, 1.5, True, None, "é", {"b": []}], "c": (1, 2)}) == []


@pytest.mark.parametrize(
    ("document", "path", "why"),
    [
        ({"a": [1, float("nan")]}, "a.1", "finite"),
        ({"a": float("inf")}, "a", "finite"),
        ({"a": 10**400}, "a", "finite"),
        ({"a": {"b": "x\0"}}, "a.b", "NUL"),
        ({"a": "\ud800"}, "a", "surrogate"),
        ({"\ud83d\ude00": 1}, "\U0001f600", "surrogate"),
        ({"a\0": 1}, "a\ufffd", "key must not hold NUL"),
        ({1: 2}, "1", "key must be a string, got a number"),
        ({"a": date(2030, 1, 1)}, "a", "got a value of type date; put it in quotes"),
        ({"a": {1, 2}}, "a", "got a value of type set"),
        ({"a": b"x"}, "a", "got a value of type bytes"),
    ],
)
def test_what_is_not_json_is_named_by_its_path(document: object, path: str, why: str) -> None:
    assert why in named(document)[path]


def test_every_flaw_is_listed_in_the_order_of_the_document() -> None:
    assert [dotted(flaw.path) for flaw in flaws({"b": "\0", "a": [{"c": "\0"}, float("nan")]})] == ["b", "a.0.c", "a.1"]


def test_repeated_keys_are_named_at_every_depth() -> None:
    parsed = parse_json('{"a": 1, "b": [{"c": 1, "d": 2, "c": 3}], "a": 2}')
    assert named(parsed) == {"a": "the key is given more than once", "b.0.c": "the key is given more than once"}


def test_depth_is_bounded() -> None:
    assert flaws(nested(MAX_DEPTH)) == []
    (flaw,) = flaws(nested(MAX_DEPTH + 1))
    assert flaw.fatal
    assert "nested" in flaw.why


def test_a_document_that_holds_itself_ends() -> None:
    loop: list[object] = []
    loop.extend([loop, loop, loop])
    assert any(flaw.fatal for flaw in flaws(loop))


def test_size_is_bounded() -> None:
    doubling: list[object] = ["x"]
    for _ in range(40):
        doubling = [doubling, doubling]
    assert [flaw.fatal for flaw in flaws(doubling)] == [True]
    assert flaws(["x"] * (MAX_VALUES - 1)) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", r"line 1 column 2"),
        ('{"a": NaN}', "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "too many digits"),
        ('{"a": 1} x', "Extra data"),
    ],
)
def test_what_cannot_be_parsed_says_where_and_not_what(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(text)


def test_a_plain_copy_shares_nothing_and_is_clean() -> None:
    class Word(enum.StrEnum):
        ONE = "one"

    inner = ["x\0", (1, 2), datetime(2030, 1, 1, tzinfo=UTC), float("nan"), Word.ONE]
    copied = plain({"a": inner, 1: None})
    assert copied == {"a": ["x\ufffd", [1, 2], None, None, "one"], "1": None}
    assert copied["a"] is not inner


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": {"d": 2, "c": "é"}}) == '{"a":{"c":"é","d":2},"b":1}'
    assert canonical_digest({"a": 1, "b": 2}) == canonical_digest({"b": 2, "a": 1})
    assert canonical_digest({"a": 1}) != canonical_digest({"a": "1"})
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_keys_are_shown_legibly() -> None:
    assert dotted(("a\nb", 0, "\ud800")) == "a\ufffdb.0.\ufffd"
    assert len(dotted(("k" * 1000,))) == 64


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ({}, "an object"),
        ((), "a list"),
    ],
)
def test_kinds_have_names(value: object, name: str) -> None:
    assert kind(value) == name
