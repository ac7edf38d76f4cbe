"""How the demo looks: wrapped under its beginning on a terminal, whole lines anywhere else."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from actors.demo.narrator import TerminalNarrator

TEXT = "Where is order 2001, and when will it be here? I have been waiting [for] a week and a day."


@pytest.mark.parametrize(
    ("terminal", "lines"),
    [
        (False, [f"  ana writes: {TEXT}"]),
        (
            True,
            [
                "  ana writes: Where is order 2001, and",
                "  when will it be here? I have been",
                "  waiting [for] a week and a day.",
            ],
        ),
    ],
)
def test_a_long_line_is_wrapped_on_a_terminal_alone(terminal: bool, lines: list[str]) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=40, color_system=None)
    TerminalNarrator(console).person("ana", TEXT)
    assert [line.rstrip() for line in file.getvalue().splitlines()] == lines


@pytest.mark.parametrize("terminal", [False, True])
def test_a_scene_is_set_apart(terminal: bool) -> None:
    file = io.StringIO()
    TerminalNarrator(Console(file=file, force_terminal=terminal, color_system=None)).scene("The next")
    assert [line.rstrip() for line in file.getvalue().splitlines()] == ["", "The next"]


def test_what_is_counted_agrees_with_its_number() -> None:
    file = io.StringIO()
    narrator = TerminalNarrator(Console(file=file, color_system=None))
    narrator.event({"event": "turn_completed", "outcome": "completed", "steps": 1})
    narrator.event({"event": "turn_steered", "count": 2})
    assert "after 1 step;" in file.getvalue()
    assert "2 messages joined" in file.getvalue()
