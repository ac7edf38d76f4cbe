"""A conversation as people read it: who said what, in which turn and step. Used by `sessions show` and the chat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from actors.cli.json_views import speaker
from actors.cli.output import one_line, printable
from insika.storage.rows import LogEntry, TurnRow, TurnState

STYLES = {"person": "bold", "agent": "", "engine": "yellow", "tool": "dim"}
_RESULT_WIDTH = 200


def told(entry: LogEntry) -> list[Text]:
    """One entry as lines. An assistant message that announces calls is narration: it is set apart from an answer."""
    message, by = entry.message, speaker(entry)
    where = f"[{entry.step}] " if entry.step else ""
    if by == "tool":
        outcome = "failed: " if message.is_error else ""
        return [Text(f"{where}tool    {outcome}{one_line(message.content, _RESULT_WIDTH)}", style="dim")]
    lines: list[Text] = []
    if message.content:
        style = "dim italic" if message.tool_calls else STYLES[by]
        lines.append(Text(f"{where}{by:<7} {printable(message.content)}", style=style))
    lines.extend(Text(f"{where}calls   {printable(call.name)}", style="dim") for call in message.tool_calls)
    return lines


def told_by_turn(entries: Iterable[LogEntry], turns: Sequence[TurnRow]) -> list[Text]:
    """The whole conversation, with a line where each turn begins. Turns that never said anything stand at the end."""
    known = {turn.id: turn for turn in turns}
    lines: list[Text] = []
    begun: set[str] = set()
    for entry in entries:
        if entry.turn_id not in begun:
            begun.add(entry.turn_id)
            lines.append(turn_line(entry.turn_id, known.get(entry.turn_id)))
        lines.extend(told(entry))
    lines.extend(turn_line(turn.id, turn) for turn in turns if turn.id not in begun)
    return lines


def turn_line(turn_id: str, turn: TurnRow | None) -> Text:
    return Text(f"turn {turn_id}{'' if turn is None else f'  {how_it_stands(turn)}'}", style="cyan")


def how_it_stands(turn: TurnRow) -> str:
    """The state, the outcome where that says more, and the error."""
    if turn.error is not None:
        return f"{turn.state}: {turn.error.get('type')}: {turn.error.get('message')}"
    if turn.state is TurnState.COMPLETED and turn.outcome != "completed":
        return f"{turn.state} ({turn.outcome})"
    return str(turn.state)
