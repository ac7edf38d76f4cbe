from __future__ import annotations

import pytest

from insika.errors import InvalidConfiguration
from insika.yaml_text import parse_yaml


def problems(text: str) -> list[tuple[str, str]]:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_yaml(text, "a.yaml")
    assert caught.value.where == "a.yaml"
    return caught.value.problems


def test_plain_data_comes_out() -> None:
    assert parse_yaml("a: [1, 2.5, yes, null]\nb: {c: 'on'}\n", "x") == {"a": [1, 2.5, True, None], "b": {"c": "on"}}
    assert parse_yaml('{"a": [1, "b"]}', "x") == {"a": [1, "b"]}
    assert parse_yaml("# nothing\n", "x") is None


def test_shared_parts_are_followed() -> None:
    assert parse_yaml("a: &x {q: 1}\nb: *x\nc: {<<: *x, q: 2}\n", "x") == {"a": {"q": 1}, "b": {"q": 1}, "c": {"q": 2}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1,\n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\nb: *missing\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", 2),
        ("a: 1\n{[1]: 2}: 3\n", 2),
        ("a: 1\nb: \x07\n", 2),
    ],
)
def test_what_is_not_yaml_names_its_line(text: str, line: int) -> None:
    ((path, why),) = problems(text)
    assert path == ""
    assert why.startswith(f"line {line}")


def test_a_secret_on_a_broken_line_is_not_quoted() -> None:
    assert "t0ken" not in str(problems("secret: 't0ken\nb: 1\n"))
    assert "t0ken" not in str(problems("secret: t0ken: x\n"))


@pytest.mark.parametrize(
    "value",
    [
        "*hunter2",
        "!hunter2",
        "!<hunter2'x>",
        "!hunter2%22'x y",
        "!hunter2!x y",
        "&hunter2 a\n    b: &hunter2 c",
        "!!int hunter2",
        "!!bool hunter2",
        "!!timestamp hunter2",
        "!!binary hünter2",
        "{whsec_hunter2: 1, whsec_hunter2: 2}",
    ],
)
def test_a_secret_without_quotes_is_not_told_whatever_yaml_takes_it_for(value: str) -> None:
    told = str(problems(f"channels:\n  - id: a\n    secret: {value}\n"))
    assert "nter2" not in told


def test_what_the_grammar_expected_is_told() -> None:
    assert "expected ',' or ']', but got '<stream end>'" in problems("a: [1,2\n")[0][1]
    assert "found character '@' that cannot start any token" in problems("a: @b\n")[0][1]


def test_every_repeated_key_is_named_with_its_lines() -> None:
    text = "a: 1\nb:\n  - {c: 1, c: 2}\n  - d: 1\n    d: 2\na: 2\na: 3\n"
    assert sorted(problems(text)) == [
        ("a", "line 6: the key is given again, after line 1"),
        ("a", "line 7: the key is given again, after line 1"),
        ("b.0.c", "line 3: the key is given again, after line 3"),
        ("b.1.d", "line 5: the key is given again, after line 4"),
    ]


@pytest.mark.parametrize("text", ["a: 2030-02-31\n", "a: 2030-01-01 99:00:00\n"])
def test_a_date_that_is_none_asks_for_quotes(text: str) -> None:
    assert "quotes" in problems(text)[0][1]


def test_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in problems("[" * 5000)[0][1]


def test_a_document_that_holds_itself_is_read() -> None:
    loop = parse_yaml("&a [*a]", "x")
    assert isinstance(loop, list)
    assert loop[0] is loop
