"""A conversation as people read it: who said what, in which turn and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from actors.cli.json_views import speaker
from actors.cli.output import on_one_line, one_line, printable
from insika.storage.rows import LogEntry, TurnRow, TurnState

STYLES = {"person": "bold", "agent": "", "engine": "yellow", "tool": "dim"}
_RESULT_WIDTH = 200


def told_by_turn(entries: Iterable[LogEntry], turns: Sequence[TurnRow]) -> Iterator[RenderableType]:
    """The whole conversation, with a line where each turn begins. Turns that have said nothing stand at the end."""
    left = {turn.id: turn for turn in turns}
    for turn_id, of_turn in groupby(entries, key=lambda entry: entry.turn_id):
        yield _turn_line(turn_id, left.pop(turn_id, None))
        lines = Table.grid(padding=(0, 2, 0, 0))
        for _ in ("step", "who"):
            lines.add_column(no_wrap=True, style="dim")
        lines.add_column(overflow="fold")
        for entry in of_turn:
            for who, text in _told(entry):
                lines.add_row(str(entry.step), who, text)
        yield lines
    for turn in left.values():
        yield _turn_line(turn.id, turn)


def how_it_stands(turn: TurnRow) -> str:
    """The state, the outcome where that says more, and the error."""
    if turn.error is not None:
        return f"{turn.state}: {turn.error.get('type')}: {turn.error.get('message')}"
    if turn.state is TurnState.COMPLETED and turn.outcome != "completed":
        return f"{turn.state} ({turn.outcome})"
    return str(turn.state)


def _told(entry: LogEntry) -> Iterator[tuple[str, Text]]:
    """Who, and what. An assistant message that announces calls is narration: it is set apart from an answer."""
    message, by = entry.message, speaker(entry)
    if by == "tool":
        failed = "failed: " if message.is_error else ""
        yield "tool", Text(f"{failed}{one_line(message.content, _RESULT_WIDTH)}", style="dim")
        return
    if message.content:
        yield by, Text(printable(message.content), style="dim italic" if message.tool_calls else STYLES[by])
    for call in message.tool_calls:
        yield "calls", Text(on_one_line(call.name), style="dim")


def _turn_line(turn_id: str, turn: TurnRow | None) -> Text:
    return Text(f"turn {turn_id}{'' if turn is None else f'  {on_one_line(how_it_stands(turn))}'}", style="cyan")
