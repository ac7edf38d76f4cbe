"""Texts with places that are filled later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.http_tools.placeholders import MISSING, Place, as_text, parse, value_at


def test_a_text_is_taken_apart_and_put_together_again() -> None:
    template = parse("/o/%{arguments.order-id}/x%{context.session}")
    assert template.pieces == (
        "/o/",
        Place("arguments", ("order-id",)),
        "/x",
        Place("context", ("session",)),
    )
    assert template.filled(str) == "/o/%{arguments.order-id}/x%{context.session}"
    assert template.whole is None


def test_a_text_that_is_all_one_place_is_known_as_such() -> None:
    assert parse("%{arguments.a.b}").whole == Place("arguments", ("a", "b"))
    assert parse("%{arguments}").whole == Place("arguments", ())
    assert parse("").whole is None


@pytest.mark.parametrize("text", ["100%", "%", "{a}", "% {a}", "50%%", "${a}"])
def test_what_only_resembles_a_placeholder_is_text(text: str) -> None:
    assert parse(text).pieces == (text,)


@pytest.mark.parametrize("text", ["%{", "a %{b", "%{}", "%{a b}", "%{a.}", "%{.a}", "%{a..b}", "%{a{b}}", "%{a.b!}"])
def test_what_cannot_be_a_placeholder_is_said(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


@given(st.text())
def test_what_was_filled_in_is_not_read_again(value: str) -> None:
    said = parse("<%{arguments.a}%{arguments.b}>").filled(
        lambda place: "%{arguments.b}" + value if place.path == ("a",) else "never twice"
    )
    assert said == "<%{arguments.b}" + value + "never twice>"


def test_values_are_found_by_names_and_positions() -> None:
    root = {"a": {"b": [1, {"c": None}]}}
    assert value_at(root, ["a", "b", "0"]) == 1
    assert value_at(root, ["a", "b", "1", "c"]) is None
    assert value_at(root, []) is root


@pytest.mark.parametrize("path", [["x"], ["a", "b", "2"], ["a", "b", "-1"], ["a", "b", "²"], ["a", "b", "0", "c"]])
def test_what_is_not_there_is_missing(path: list[str]) -> None:
    assert value_at({"a": {"b": [1]}}, path) is MISSING


def test_texts_stay_and_all_else_is_written_as_json() -> None:
    assert [as_text(value) for value in ("ä", 1, 1.5, True, None, ["a", {"b": "ö"}])] == [
        "ä",
        "1",
        "1.5",
        "true",
        "null",
        '["a",{"b":"ö"}]',
    ]
