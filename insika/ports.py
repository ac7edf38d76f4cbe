"""The ports of the rules: what the pure parts of the engine ask of the world.

Each is as narrow as its one caller needs. The store's port is `insika.storage.port`.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from insika.choices import Thinking
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

    @property
    def definition(self) -> str:
        """What the tool is made of, where that is data that may change under its name: a digest of it. "" for code."""
        ...


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How one run of a tool ended, as the model will read it. `cut`: nobody saw it end, so that one which changes the
    world may have done so."""

    content: str
    is_error: bool = False
    halts: bool = False
    cut: bool = False


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
    """One request to a model. `model` is the name within the provider, e.g. `claude-sonnet-4-5` or `demo`; `provider`
    the name before it in the reference.

    `tools` are the turn's, always all of them, also where `may_call` is False and none may be called: what was sent
    before must not change. `messages[turn_from:]` are the running turn's; only there may `Message.verbatim` be sent
    back. `thinking` None: say nothing of it to the provider. `max_tokens` bounds the output, reasoning included; None:
    the adapter's default for the model. `note`, unless empty, stands last in the request, as the engine's own word to
    the model; it is in no later request unless it is given again.
    """

    model: str
    instructions: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    provider: str = ""
    may_call: bool = True
    thinking: Thinking | None = None
    max_tokens: int | None = None
    turn_from: int = 0
    note: str = ""

    @property
    def reference(self) -> str:
        """The model as profiles name it."""
        return f"{self.provider}/{self.model}"

    @property
    def callable(self) -> bool:
        """There are tools, and the model may call them."""
        return self.may_call and bool(self.tools)


class Stop(enum.StrEnum):
    """Why a model stopped. `length`: its output limit was reached. `refusal`: it, or its vendor, would not go on."""

    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's reasoning, as far as its vendor shows it. Never part of an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class UsageSoFar:
    """What the request has cost by now, as the vendor counts: replaces what was told before. It is what a stream that
    breaks off later is booked at, with an estimate for what it had said."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Finished:
    """The last thing a stream gives: the whole message, and what it cost. `measured` False: the vendor did not say,
    and `usage` is an estimate."""

    message: Message
    usage: Usage
    stop: Stop = Stop.END
    measured: bool = True


ModelEvent = TextDelta | ThinkingDelta | UsageSoFar | Finished


class ModelProvider(Protocol):
    """Speaks to one kind of model. One call of `stream` is exactly one request, built from `request` alone: retries
    are the engine's."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Deltas as they come, then exactly one `Finished`; nothing after it.

        Raises ProviderError, whose `action` says what may be done about it, and nothing else. Closing the iterator
        abandons the request and its connection."""
        ...
