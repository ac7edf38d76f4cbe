"""The offline provider: scripts speak where a language model would. It needs no network and no key.

It is a stand-in for demonstration and tests and must never be taken for a model; commands that use it print `notice`.
It streams, measures and fails through the same port as the real providers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from insika.errors import ProviderError, ProviderFatal
from insika.messages import Message, ToolCall, Usage, assistant
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta
from insika.providers.scene import Scene, next_call_id
from insika.providers.script import Call, Calls, Cut, Fail, Say, Script

CHARACTERS_PER_TOKEN = 4


def notice(reference: str) -> str:
    """What to tell people who talk with this model of the offline provider."""
    return f"{reference} is a scripted stand-in, not a language model."


class BeforeChunk(Protocol):
    """Called before each chunk of text, from 0, and once more before the end of the stream. It may wait, to slow a
    stream down or hold it, and may raise what a provider may raise, to break it."""

    async def __call__(self, request: ModelRequest, chunk: int, /) -> None: ...


async def at_once(request: ModelRequest, chunk: int, /) -> None:
    """Wait for nothing."""
    return None


class OfflineProvider:
    """A `ModelProvider` whose models are `scripts`, by name."""

    def __init__(self, scripts: Mapping[str, Script], before_chunk: BeforeChunk = at_once) -> None:
        self._scripts = dict(scripts)
        self._before_chunk = before_chunk

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self._scripts)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """As the port says. Raises ProviderFatal for a script that is not there, and what the script says."""
        step = self._script(request.model).answer(Scene.of(request))
        if isinstance(step, Fail):
            await self._before_chunk(request, 0)
            error = ProviderFatal if step.fatal else ProviderError
            raise error(step.message, retry_after=step.retry_after)
        message = _message(step.step if isinstance(step, Cut) else step, request.messages)
        chunks = split_text(message.content)
        if isinstance(step, Cut):
            chunks = chunks[: step.after_chunks]
        for index, chunk in enumerate(chunks):
            await self._before_chunk(request, index)
            yield TextDelta(chunk)
        await self._before_chunk(request, len(chunks))
        if isinstance(step, Cut):
            raise ProviderError(f"the stream broke off after {len(chunks)} chunks")
        yield Finished(message, usage_of(request, message))

    def _script(self, model: str) -> Script:
        if model not in self._scripts:
            known = ", ".join(self._scripts) or "none"
            raise ProviderFatal(f"there is no script {model!r} for the offline provider; there are: {known}")
        return self._scripts[model]


def split_text(text: str) -> list[str]:
    """The chunks in which `text` is streamed: a word each, with the space before it."""
    return re.findall(r"\s*\S+|\s+\Z", text)


def usage_of(request: ModelRequest, answer: Message) -> Usage:
    """An estimate: one token for four characters, begun ones counted whole. Input is the instructions and the texts
    of all messages, output the text of the answer and the names and arguments of its calls; nothing is cached."""
    sent = len(request.instructions) + sum([len(message.content) for message in request.messages])
    given = len(answer.content) + sum(len(call.name) + len(str(call.arguments)) for call in answer.tool_calls)
    return Usage(input=-(-sent // CHARACTERS_PER_TOKEN), output=-(-given // CHARACTERS_PER_TOKEN))


def _message(step: Say | Call | Calls, messages: Sequence[Message]) -> Message:
    if isinstance(step, Say):
        return assistant(step.text)
    calls = [step] if isinstance(step, Call) else step.calls
    announced = [
        ToolCall(
            next_call_id(messages, index) if call.id is None else call.id,
            call.name,
            call.arguments if call.malformed is None else {},
            call.malformed,
        )
        for index, call in enumerate(calls)
    ]
    return assistant(step.text, *announced)
