"""Tells the demo: for people as lines one can follow, for programs as one JSON object a line.

It only tells what it is given. Nothing in the story waits for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from actors.receiver import Received
from actors.samples.demo_agent import OFFLINE_DEMO
from insika.providers.offline import notice
from insika.text import counted

Event = Mapping[str, Any]


class Narrator(Protocol):
    def opening(self, directory: str, receiver: str) -> None: ...

    def scene(self, title: str) -> None: ...

    def person(self, session: str, text: str) -> None: ...

    def event(self, event: Event) -> None: ...

    def received(self, received: Received) -> None: ...

    def killing(self, pid: int) -> None: ...

    def finished(self, totals: Mapping[str, Any]) -> None: ...


class JsonNarrator:
    """Everything, one object a line; each has an `event`."""

    def opening(self, directory: str, receiver: str) -> None:
        self._say("demo.started", directory=directory, receiver=receiver, notice=notice(OFFLINE_DEMO))

    def scene(self, title: str) -> None:
        self._say("demo.scene", title=title)

    def person(self, session: str, text: str) -> None:
        self._say("demo.person", session=session, text=text)

    def event(self, event: Event) -> None:
        sys.stdout.write(json.dumps(event) + "\n")

    def received(self, received: Received) -> None:
        self._say("demo.received", **received.as_dict())

    def killing(self, pid: int) -> None:
        self._say("demo.killed", pid=pid, signal="SIGKILL")

    def finished(self, totals: Mapping[str, Any]) -> None:
        self._say("demo.finished", **totals)

    def _say(self, event: str, **fields: Any) -> None:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()


class TerminalNarrator:
    def __init__(self, console: Console) -> None:
        self._console = console

    def opening(self, directory: str, receiver: str) -> None:
        self._line(f"[dim]{escape(notice(OFFLINE_DEMO))} No network and no key are used.[/dim]")
        self._line(f"[dim]Store: SQLite in {escape(directory)}. Answers are delivered to {escape(receiver)}.[/dim]")

    def scene(self, title: str) -> None:
        self._line("")
        self._line(f"[bold]{escape(title)}[/bold]")

    def person(self, session: str, text: str) -> None:
        self._line(f"  [cyan]{escape(session)}[/cyan] writes: {escape(text)}")

    def event(self, event: Event) -> None:
        teller = _TELLERS.get(event["event"])
        if teller is not None:
            self._line(f"    {teller(event)}")

    def received(self, received: Received) -> None:
        payload = received.payload
        self._line(f"  [green]{escape(payload['recipient'])} reads: {escape(payload['content'])}[/green]")
        self._line(f"    [dim]POST {escape(received.id)}, signature checked, arrived {_times(received.count)}[/dim]")

    def killing(self, pid: int) -> None:
        self._line(f"  [red]kill -9 {pid}[/red]")

    def finished(self, totals: Mapping[str, Any]) -> None:
        runs: Mapping[str, int] = totals["tool_runs"]
        self._line("")
        self._line("[bold]What came of it[/bold]")
        for answer, count in totals["arrivals"].items():
            self._line(f"  {escape(answer)} arrived {_times(count)}")
        for call, count in runs.items():
            self._line(f"  {escape(call)} ran {_times(count)}")
        delivered, recovered = counted(totals["deliveries"], "answer"), counted(totals["recovered_turns"], "turn")
        self._line(
            f"  {delivered} delivered, {totals['duplicates']} of them again; {recovered} finished by another process."
        )

    def _line(self, markup: str) -> None:
        """On a terminal wrapped to its width, under where the line began; elsewhere whole, to be searched."""
        if not (self._console.is_terminal and markup):
            self._console.print(markup, highlight=False, soft_wrap=True)
            return
        text = markup.lstrip(" ")
        indent = len(markup) - len(text)
        self._console.print(Padding(Text.from_markup(text), (0, 0, 0, indent), expand=False), highlight=False)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _verdict(event: Event) -> str:
    meaning = {
        "accepted": "it gets a turn of its own",
        "steered": "it waits to join the running turn at its next boundary",
        "duplicate": "it was taken before; nothing runs twice",
    }.get(event["verdict"], "")
    return f"[yellow]{escape(event['verdict'])}[/yellow][dim]: {meaning}[/dim]"


def _completed(event: Event) -> str:
    steps = counted(event["steps"], "step")
    return f"[dim]turn {escape(event['outcome'])} after {steps}; answer and delivery committed together[/dim]"


def _joined(event: Event) -> str:
    return f"[yellow]{counted(event['count'], 'message')} joined the turn at this boundary[/yellow]"


def _warned(event: Event) -> str:
    return f"[yellow]budget: {event['remaining']} of {event['max']} calls left, and the model is told[/yellow]"


def _resumed(event: Event) -> str:
    return f"[yellow]turn taken up again from its log, attempt {event['attempt']}[/yellow]"


_TELLERS: Mapping[str, Callable[[Event], str]] = {
    "verdict": _verdict,
    "job_kept_aside": lambda e: f"[yellow]kept aside[/yellow][dim]: {escape(e['message'])}[/dim]",
    "intermediate": lambda e: f"[dim]step {e['step']}: “{escape(e['text'])}”[/dim]",
    "tool_called": lambda e: f"[blue]{escape(e['tool'])}[/blue] [dim]runs (step {e['step']})[/dim]",
    "tool_returned": lambda e: f"[blue]{escape(e['tool'])}[/blue] [dim]{escape(e['state'])}; the batch closes[/dim]",
    "turn_steered": _joined,
    "tool_budget_warned": _warned,
    "turn_resumed": _resumed,
    "turn_completed": _completed,
    "turn_failed": lambda e: f"[red]turn failed: {escape(str(e['error']))}[/red]",
    "delivery_failed": lambda e: f"[red]delivery {escape(e['outcome'])}: {escape(e['reason'])}[/red]",
}
