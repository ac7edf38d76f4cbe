"""In which order a chat shows what it hears and what it finds, however the two come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from rich.text import Text

from actors.cli.chat.talk import Talk
from insika.events import Event, EventType
from insika.messages import Message, ToolCall, assistant, user
from insika.storage.rows import Accepted, LogEntry, TurnState, Verdict

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CALL = assistant("Let me look.", ToolCall("c1", "order_lookup"))


class Paper:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def show(self, text: Text) -> None:
        self.lines.append(text.plain)


class Store:
    """One session without a running turn. `during`: what happens while it is looked at."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.during: Any = lambda: None
        self.ended: Any = None

    def say(self, step: int, message: Message) -> None:
        self.entries.append(LogEntry(len(self.entries) + 1, "t1", 1, step, message))

    async def session(self, name: str, *, tenant: str) -> Any:
        return SimpleNamespace(id=1, log_seq=0, turn_id=None, waiting=0, paused=False)

    async def messages(self, session_id: int, *, after: int) -> Sequence[LogEntry]:
        self.during()
        return [entry for entry in self.entries if entry.seq > after]

    async def turn(self, turn_id: str) -> Any:
        return self.ended

    async def approvals(self, limit: int, *, open_only: bool) -> Sequence[Any]:
        return ()


class Ear:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def think(self, step: int, text: str) -> None:
        data = {"step": step, "text": text}
        self.events.append(Event(EventType.THINKING, NOW, "t1", "ana", "shop", None, 1, step, 1, data))

    def __call__(self) -> Sequence[Event]:
        heard, self.events = self.events, []
        return heard


async def chat() -> tuple[Talk, Store, Ear, Paper]:
    store, ear, paper = Store(), Ear(), Paper()
    nobody: Any = None
    talk = Talk(nobody, nobody, store, paper, "shop", "me", ear)  # type: ignore[arg-type]
    await talk.enter("ana")
    paper.lines.clear()
    return talk, store, ear, paper


async def look(talk: Talk, times: int = 1) -> None:
    """As the chat does by itself, over and over."""
    for _ in range(times):
        await talk._show_news()


async def test_thoughts_stand_between_what_was_said_before_them_and_what_came_of_them() -> None:
    talk, store, ear, paper = await chat()
    ear.think(1, "first\n")
    await look(talk)
    store.say(1, CALL)
    ear.think(2, "second\n")
    await look(talk)
    store.say(2, assistant("It left."))
    await look(talk)
    assert paper.lines == ["  ~ first", "  Let me look.", "  · order_lookup", "  ~ second", "shop: It left."]


async def test_a_whole_turn_that_passes_during_one_look_is_shown_in_its_order() -> None:
    talk, store, ear, paper = await chat()

    def pass_by() -> None:
        store.during = lambda: None
        store.say(0, user("my order?"))
        ear.think(1, "first\n")
        store.say(1, CALL)
        ear.think(2, "second")
        store.say(2, assistant("It left."))

    store.during = pass_by
    await look(talk, 2)
    thoughts_and_words = [line for line in paper.lines if "my order?" not in line]
    assert thoughts_and_words == ["  ~ first", "  Let me look.", "  · order_lookup", "  ~ second", "shop: It left."]


async def test_a_thought_that_comes_after_the_store_was_asked_waits_for_what_stands_before_it() -> None:
    talk, store, ear, paper = await chat()
    original = store.messages

    async def late(session_id: int, *, after: int) -> Sequence[LogEntry]:
        found = await original(session_id, after=after)
        store.messages = original  # type: ignore[method-assign]
        store.say(1, CALL)
        ear.think(2, "second\n")
        return found

    store.messages = late  # type: ignore[method-assign]
    await look(talk)
    assert paper.lines == []
    await look(talk)
    assert paper.lines == ["  Let me look.", "  · order_lookup", "  ~ second"]


async def test_a_refused_message_is_answered_with_the_reply_that_its_person_gets() -> None:
    talk, store, ear, paper = await chat()
    talk._taken(Accepted(Verdict.ACCEPTED, session_id=1, turn_id="t1", position=1), False)
    store.ended = SimpleNamespace(id="t1", state=TurnState.REFUSED, started_at=None, agent="shop")
    reply = {"step": 0, "attempt": 1, "text": "I cannot help with that."}
    ear.events.append(Event(EventType.CONTENT, NOW, "t1", "ana", "shop", None, 1, 0, 1, reply))
    await look(talk)
    assert paper.lines == [
        "shop: I cannot help with that.",
        "[a guard refused it: it and this safe reply are not part of the conversation]",
    ]
