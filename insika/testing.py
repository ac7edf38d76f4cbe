"""For tests of agents: a scripted model, and ports that remember what they were given. Nothing here reaches a network.

model = ScriptedModel(Script([Call("order_lookup", {"order_id": "1234"}), Say("It is on its way.")]))
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from insika.events import Event
from insika.messages import Message, Role
from insika.ports import ModelEvent, ModelRequest
from insika.providers.offline import BeforeChunk, OfflineProvider, at_once
from insika.providers.scene import Result, Scene
from insika.providers.script import Call, Calls, Cut, Fail, Rule, Say, Script

__all__ = [
    "Call",
    "Calls",
    "Cut",
    "Fail",
    "ListMailbox",
    "RecordingChat",
    "RecordingEmit",
    "RecordingEvents",
    "Result",
    "Rule",
    "Say",
    "Scene",
    "Script",
    "ScriptedModel",
]


class ScriptedModel:
    """A provider that follows one script, whatever model is asked for, and keeps the requests it got."""

    def __init__(self, script: Script, before_chunk: BeforeChunk = at_once) -> None:
        self._provider = OfflineProvider({"script": script}, before_chunk)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        renamed = replace(request, model="script")
        async with aclosing(self._provider.stream(renamed)) as events:
            async for event in events:
                yield event


class RecordingChat:
    """A `Chat` that keeps what is appended to it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    @property
    def texts(self) -> list[str]:
        return [message.content for message in self.messages]

    def add_message(self, role: str, content: str) -> None:
        self.messages.append(Message(Role(role), content))


class RecordingEvents:
    """An `EventSink` that keeps what is published."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def types(self) -> list[str]:
        return [str(event.type) for event in self.events]

    def publish(self, event: Event) -> None:
        self.events.append(event)

    def of(self, type: str) -> list[Event]:
        return [event for event in self.events if event.type == type]


class RecordingEmit:
    """An `Emit` that keeps what a rule says: pairs of type and data."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, type: str, data: Mapping[str, Any], /) -> None:
        self.events.append((str(type), data))


class ListMailbox:
    """A `Mailbox` that holds the given texts; `put` adds one behind them."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.waiting: list[str] = list(texts)

    def put(self, text: str) -> None:
        self.waiting.append(text)

    def take(self, limit: int) -> Sequence[str]:
        taken, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return taken
