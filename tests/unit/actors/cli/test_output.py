"""How things are printed: whole lines without a terminal, control characters shown, times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from rich.text import Text

from actors.cli.output import moment, one_line, print_fields, print_json, print_table, printable, rfc3339
from insika.clock import DUE_NOW, NEVER

NOON_IN_DELHI = datetime(2030, 1, 31, 12, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=5, minutes=30)))


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (None, None),
        (NEVER, None),
        (DUE_NOW, None),
        (NOON_IN_DELHI, "2030-01-31T06:30:00.250000Z"),
        (datetime(2030, 1, 1, tzinfo=UTC), "2030-01-01T00:00:00Z"),
    ],
)
def test_programs_get_times_as_rfc_3339_in_utc(at: datetime | None, told: str | None) -> None:
    assert rfc3339(at) == told


@pytest.mark.parametrize(
    ("at", "told"), [(None, "-"), (NEVER, "-"), (DUE_NOW, "now"), (NOON_IN_DELHI, "2030-01-31 06:30:00Z")]
)
def test_people_get_times_to_the_second(at: datetime | None, told: str) -> None:
    assert moment(at) == told


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünd 日本", "plain, ünd 日本"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2Jgone", "\u241b[2Jgone"),
        ("over\rwritten", "over\u240dwritten"),
        ("bell\x07 \x9b31m", "bell\ufffd \ufffd31m"),
        ("turned \u202eround", "turned \ufffdround"),
        ("half \ud83d", "half \ufffd"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
    ],
)
def test_what_somebody_wrote_cannot_steer_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("end", ["\n", "\r\n", "\x0b", "\x85", "\u2028", "\u2029", "\t"])
def test_no_name_can_look_like_another_row(end: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"a{end}owner  0"
    print_table(["name", "what"], [(name, "x")], empty="Nothing.")
    print_fields({"name": name})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert not any(line.startswith("owner") for line in lines)
    assert "\t" not in "".join(lines)


def test_a_long_text_is_told_by_its_beginning_on_one_line() -> None:
    assert one_line("a\n b   c") == "a b c"
    assert one_line("word " * 20, 12) == "word word w…"
    assert len(one_line("x" * 500)) == 60


def test_without_a_terminal_a_row_is_one_whole_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "what"], [("a" * 90, "[bold]b[/bold]" * 20), ("c", Text("d"))], empty="Nothing.")
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "WHAT"]
    assert first == f"{'a' * 90}  {'[bold]b[/bold]' * 20}"
    assert second == f"c{' ' * 91}d"


def test_a_table_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name"], [], empty="Nothing here.")
    assert capsys.readouterr().out == "Nothing here.\n"


def test_fields_without_a_value_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"name": "ana", "tenant": None, "state": "idle"})
    assert capsys.readouterr().out == "name   ana\nstate  idle\n"


def test_json_is_one_document_that_any_terminal_can_take(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "größer"})
    assert capsys.readouterr().out == '{\n  "text": "größer"\n}\n'
