"""How a chat shows what is new: answers stand out, everything on the way to them is dim."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from actors.cli.approval_words import asked_about, expires_in, stands, why_not
from actors.cli.json_views import speaker
from actors.cli.output import how_long, on_one_line, one_line, printable
from insika.storage.rows import ApprovalSummary, Decided, LogEntry, TurnRow, TurnState, Verdict
from insika.turn.sentences import MARK

_RESULT_WIDTH = 160
_ID_WIDTH = 8

RECEIPTS: Mapping[Verdict, str] = {
    Verdict.ACCEPTED: "accepted: it waits for a turn of its own",
    Verdict.MERGED: "merged: it joined a turn that has not started",
    Verdict.STEERED: "steered: it joins the running turn after the tools that run now",
    Verdict.INTERRUPTING: "interrupting: it takes the place of the running turn",
    Verdict.DUPLICATE: "duplicate: it was sent before",
}

_BEFORE_A_RETRY: Mapping[str, str] = {
    "provider_fatal": "Asking again as things stand would not help; when that is mended, ",
    "provider_unavailable": "It may be well again soon: ",
}
"""What a person should know of a model's failure, by its type."""

_WAITS = ("budget_exceeded", "circuit_open", "provider_unavailable")
"""Failures that time mends, where they say after how long."""


def note(text: str) -> Text:
    """Something the chat itself has to say."""
    return Text(f"[{text}]", style="dim")


def chat_id(id_: str) -> str:
    """Enough of an approval's id to know it by in a chat, and to type."""
    return id_[:_ID_WIDTH]


def asks(question: ApprovalSummary, now: datetime, *, alone: bool) -> list[Text]:
    """A call that waits for a person, and how to decide about it. `alone`: no other one waits in this session."""
    id_, left = question.approval.id, expires_in(question, now)
    write = "y or n" if alone else f"y {chat_id(id_)} or n {chat_id(id_)}"
    return [
        Text(f"May {asked_about(question)} run? Write {write}, within {left}.", style="bold yellow"),
        note(f"question {chat_id(id_)}; or from elsewhere: insika approvals show {id_}"),
    ]


def decided(decision: Decided, question: ApprovalSummary) -> Text:
    """What came of a word that was said in this chat."""
    if not decision.won:
        return note(f"{_which(question)}: {on_one_line(why_not(decision.approval))}")
    return note(f"{decision.approval.decision}: {_which(question)}")


def settled(question: ApprovalSummary, now: datetime) -> Text:
    """Of a question about which nobody in this chat has decided, and about which nobody need decide any more."""
    return note(f"no longer asked: {_which(question)}: {on_one_line(stands(question, now))}")


def left_open(question: ApprovalSummary, now: datetime) -> Text:
    decide = f"insika approvals approve {question.approval.id} (or reject)"
    return note(f"{_which(question)} waits for a person, {expires_in(question, now)} left: {decide}")


def said(entry: LogEntry, agent: str, mine: Mapping[int, Verdict]) -> list[Text]:
    """One new entry of the conversation. `mine`: the positions that came from this chat, and their verdicts."""
    message, by = entry.message, speaker(entry)
    if by == "person":
        return _by_person(entry, mine)
    if by == "engine":
        return [Text(f"notice: {printable(message.content.removeprefix(MARK))}", style="yellow")]
    if by == "tool":
        failed = f"  tool failed: {one_line(message.content.removeprefix(MARK), _RESULT_WIDTH)}"
        return [Text(failed, style="dim red")] if message.is_error else []
    if not message.tool_calls:
        return [Text.assemble((f"{agent}: ", "bold cyan"), printable(message.content))]
    narration = [Text(f"  {printable(message.content)}", style="dim italic")] if message.content else []
    return [*narration, *(Text(f"  · {on_one_line(call.name)}", style="dim") for call in message.tool_calls)]


def ended(turn: TurnRow, session: str, *, answered: Collection[str], reply: str = "") -> list[Text]:
    """How a turn ended, where its answer does not say it already. `answered`: the turns whose answer was shown.
    `reply`: what the person was told instead, where a guard refused the turn and that was heard here."""
    if turn.state is TurnState.COMPLETED:
        told = (
            [note("the tool calls were used up; this answer is from what had been found")] if turn.synthesized else []
        )
        return told if turn.id in answered else [*told, note("the turn ended without an answer")]
    if turn.state is TurnState.REFUSED:
        return _refused(turn, reply)
    error = turn.error or {}
    why = f"{error.get('type', turn.outcome)}: {error.get('message', 'no reason is known')}"
    if turn.state is TurnState.FAILED:
        return [Text(f"The turn failed. {printable(why)}.{_again(error, session)}".replace("..", "."), style="red")]
    return [note(f"the turn was {turn.state}: {why}")]


def _again(error: Mapping[str, Any], session: str) -> str:
    """When it is worth running once more, and how. Nothing of what a policy denies: it would be denied again."""
    type_, after = str(error.get("type")), error.get("retry_after")
    if type_ == "policy_denied":
        return ""
    how = f"`insika sessions retry {session}` runs it once more."
    if type_ in _WAITS and isinstance(after, int | float) and after >= 1:
        return f" In about {_about(after)}, {how}"
    return f" {_BEFORE_A_RETRY.get(type_, '')}{how}"


def _about(seconds: float) -> str:
    """Rounded up, for before that it would be in vain: to minutes from one on, to hours from two on."""
    unit = next((unit for unit in (3_600, 60) if seconds > unit * (2 if unit > 60 else 1)), 1)
    return how_long(math.ceil(seconds / unit) * unit)


def _refused(turn: TurnRow, reply: str) -> list[Text]:
    if not reply:
        return [note("a guard refused it: it is not part of the conversation; a safe reply, if it has one, was given")]
    why = note("a guard refused it: it and this safe reply are not part of the conversation")
    return [Text.assemble((f"{turn.agent}: ", "bold cyan"), printable(reply)), why]


def _which(question: ApprovalSummary) -> str:
    return f"{asked_about(question)} (question {chat_id(question.approval.id)})"


def _by_person(entry: LogEntry, mine: Mapping[int, Verdict]) -> list[Text]:
    verdict = mine.get(entry.position or 0)
    if verdict is None:
        return [Text.assemble(("someone: ", "bold"), printable(entry.message.content))]
    if entry.step > 0:
        return [note("your message joined the turn")]
    if verdict is Verdict.STEERED:
        return [note("the turn ended first; your message got a turn of its own")]
    return []
