"""The ports of the rules: what the pure parts of the engine ask of the world.

Each is as narrow as its one caller needs. The store's port is `insika.storage.port`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from insika.messages import Message, ToolCall, Usage


class Emit(Protocol):
    """`emit(type, data)`: an event of the turn at hand. The turn's identity is already bound."""

    def __call__(self, type: str, data: Mapping[str, Any], /) -> None: ...


class Chat(Protocol):
    """The tail of a conversation. It can only be appended to; nothing already there can be reached."""

    def add_message(self, role: str, content: str) -> None: ...


class Mailbox(Protocol):
    """The messages that wait to join the running turn, oldest first."""

    def take(self, limit: int) -> Sequence[str]:
        """At most `limit` of the waiting texts, in order of arrival. What is taken belongs to the caller and is not
        given again; what is not taken stays."""
        ...


# --- models -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolTraits(Protocol):
    """What the loop must know of a tool before it may run it."""

    @property
    def side_effect(self) -> bool:
        """It changes the world: it is written as started before it runs, and never run again by itself."""
        ...

    @property
    def idempotent(self) -> bool:
        """It bears two runs with one key, and so may be run again when nobody knows how the first ended."""
        ...


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How one run of a tool ended, as the model will read it."""

    content: str
    is_error: bool = False
    halts: bool = False
    timed_out: bool = False


class Toolbox(Protocol):
    """The tools of one turn."""

    def specs(self) -> Sequence[ToolSpec]:
        """What the model is offered, in an order that does not change within a profile revision."""
        ...

    def find(self, name: str) -> ToolTraits | None:
        """None: there is no such tool, or this agent may not use it as things stand now."""
        ...

    def repeatable(self, name: str) -> bool:
        """Calling this tool again with equal arguments is ordinary use (a clock, a queue): no repetition. The answer
        stays while the turn runs, also when the tool is denied meanwhile: a resumed turn must count as before."""
        ...

    def needs_approval(self, name: str) -> bool:
        """A person must approve each call of this tool before it runs, as things stand now."""
        ...

    def refuse(self, call: ToolCall) -> CallOutcome | None:
        """Why this call cannot be run as it is written; None if it can. Asked before a call is recorded as started."""
        ...

    async def run(self, call: ToolCall, step: int) -> CallOutcome:
        """Check the arguments and run the call under its time limit. Never raises for what the tool does."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model. `model` is the name within the provider, e.g. `claude-sonnet-4-5` or `demo`."""

    model: str
    instructions: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last thing a stream gives: the whole message, and what it cost."""

    message: Message
    usage: Usage


ModelEvent = TextDelta | ThinkingDelta | Finished


class ModelProvider(Protocol):
    """Speaks to one kind of model. One call of `stream` is exactly one request: retries are the engine's."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Deltas as they come, then exactly one `Finished`.

        Raises ProviderError (may be tried again) or ProviderFatal (may not). Closing the iterator abandons the
        request."""
        ...
