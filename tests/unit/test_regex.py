"""The one door to the engine that runs patterns of strangers and over texts of strangers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from insika.regex import LinearRegex, any_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "(?<!a)b", r"(a)\1", r"\p{Nowhere}", "a{2000}{2000}"])
def test_what_it_cannot_run_is_said_in_a_sentence(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not a pattern in RE2's syntax: "):
        LinearRegex(pattern)


def test_nothing_is_written_to_the_terminal_about_it(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError):
        LinearRegex("(secret-")
    assert capfd.readouterr() == ("", "")


def test_matches_are_told_in_bytes() -> None:
    regex = LinearRegex("é+", ignore_case=True)
    text = "aÉéb é".encode()
    assert list(regex.spans(text)) == [(1, 5), (7, 9)]
    assert regex.found_in(text)
    assert not regex.found_in(b"e")
    assert regex.first_from(text, 5) == (7, 9)
    assert regex.first_from(text, 9) is None
    assert (regex.at(text, 1, len(text)), regex.at(text, 1, 3), regex.at(text, 0, 9)) == (5, 3, None)


def test_what_stands_before_is_seen() -> None:
    assert LinearRegex(r"\bb").first_from(b"ab b", 1) == (3, 4)


def test_a_pattern_that_others_choke_on_costs_no_more_than_any_other() -> None:
    for pattern in (r"(a+)+$", r"(a|aa)+$", r"(.*a){12}", r"(\w+\s?)*$"):
        assert LinearRegex(pattern).size < 200
        LinearRegex(pattern).found_in(b"a" * 50_000 + b"!")


def test_one_of_several() -> None:
    regex = LinearRegex(any_of(["ab|c", "x"]))
    assert [regex.found_in(text) for text in (b"ab", b"c", b"x", b"a")] == [True, True, True, False]


def test_nobody_else_imports_the_engine() -> None:
    for folder in ("insika", "outbox", "actors"):
        for path in (ROOT / folder).rglob("*.py"):
            names = {
                name.name.split(".")[0]
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.Import)
                for name in node.names
            }
            assert "re2" not in names or path == ROOT / "insika" / "regex.py"
