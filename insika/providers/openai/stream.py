"""The chunks of one completion, read into the events of the port. Pure; a chunk is the JSON value as it came.

Sources: developers.openai.com/api/docs, API reference chat/streaming (chunks, `finish_reason`, usage in a last chunk
without choices; DeepSeek puts it beside the finish reason, vLLM can put it on every chunk);
openrouter.ai/docs/api/reference/streaming (errors in mid-stream); api-docs.deepseek.com, "Create Chat Completion"
(`insufficient_system_resource`); vllm-project/vllm 53269 (a call that hit the limit is called finished).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from insika.messages import NOTHING_VERBATIM, Message, Role, Usage
from insika.ports import Finished, ModelEvent, ModelRequest, Stop, TextDelta, ThinkingDelta, UsageSoFar
from insika.providers.endpoint import Dialect
from insika.providers.openai.calls import StreamedCalls
from insika.providers.openai.dialects import REASONING_CONTENT, REASONING_DETAILS, WAYS
from insika.providers.openai.kept import KeptReasoning
from insika.providers.openai.usage import usage_of
from insika.providers.openai.wording import BrokenOff, Failed, Halves, Unreadable, text_in
from insika.turn.estimate import estimate_tokens, estimate_usage

_SHOWN_IN = (REASONING_CONTENT, "reasoning")
"""Where a delta shows what is reasoned; servers that are changing from one to the other send both."""
_LIMIT = "length"
_FILTERED = "content_filter"
_GAVE_UP = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons of a server that could not go on: what came before them is no answer."""


class Answer:
    """What one stream has said so far. `has_begun`: an event came."""

    def __init__(self, request: ModelRequest, dialect: Dialect) -> None:
        self._request = request
        self._said: list[str] = []
        self._text, self._thought = Halves(), Halves()
        self._reasoned = 0
        self._kept = KeptReasoning(WAYS[dialect].kept)
        self._calls = StreamedCalls()
        self.has_begun = False
        self._finish = ""
        self._refused = False
        self._usage: Usage | None = None

    @property
    def is_whole(self) -> bool:
        """The model has said why it stopped: nothing more of the message can come, though its usage may."""
        return bool(self._finish)

    def read(self, chunk: object) -> Iterator[ModelEvent]:
        """What one chunk adds. Raises Unreadable for what is none, Failed where the vendor gives up."""
        self.has_begun = True
        if not isinstance(chunk, Mapping):
            raise Unreadable("an event that is no object")
        if chunk.get("object") == "error" or isinstance(chunk.get("error"), Mapping):
            error = chunk.get("error")
            raise Failed(error if isinstance(error, Mapping) else chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list | None):
            raise Unreadable("choices that are no list")
        for choice in choices or ():
            if not isinstance(choice, Mapping):
                raise Unreadable("a choice that is no object")
            yield from self._choice(choice)
            yield from self._costs(choice.get("usage"))
        yield from self._costs(chunk.get("usage"))

    def finished(self) -> Finished:
        """What the stream comes to. Raises BrokenOff when the model had not stopped."""
        if not self._finish:
            raise BrokenOff
        usage = self._usage or self._estimate()
        refused = self._refused or self._finish == _FILTERED
        cut = self._finish == _LIMIT or self._ran_into_limit()
        calls = () if refused else self._calls.whole(cut=cut)
        verbatim = self._kept.verbatim(self._request.reference) if calls else NOTHING_VERBATIM
        message = Message(Role.ASSISTANT, "".join(self._said), calls, verbatim=verbatim)
        return Finished(message, usage, self._stop(refused, cut, bool(calls)), measured=self._usage is not None)

    def rest(self) -> Iterator[ModelEvent]:
        """What was held back of text and thinking, once nothing more comes."""
        if text := self._text.rest():
            self._said.append(text)
            yield TextDelta(text)
        if thought := self._thought.rest():
            yield ThinkingDelta(thought)

    def _choice(self, choice: Mapping[str, object]) -> Iterator[ModelEvent]:
        if isinstance(error := choice.get("error"), Mapping):
            raise Failed(error)
        delta = choice.get("delta")
        if not isinstance(delta, Mapping | None):
            raise Unreadable("a delta that is no object")
        yield from self._delta(delta or {})
        if reason := text_in(choice, "finish_reason"):
            self._finish = reason
            if reason in _GAVE_UP:
                raise Failed({"type": "server_error", "code": reason})

    def _delta(self, delta: Mapping[str, object]) -> Iterator[ModelEvent]:
        thought = next((shown for name in _SHOWN_IN if (shown := text_in(delta, name))), "")
        if thought := self._thought.join(thought):
            self._reasoned += len(thought)
            self._kept.add_text(thought)
            yield ThinkingDelta(thought)
        self._kept.add_details(delta.get(REASONING_DETAILS))
        refusal = text_in(delta, "refusal")
        self._refused = self._refused or bool(refusal)
        if text := self._text.join(text_in(delta, "content") + refusal):
            self._said.append(text)
            yield TextDelta(text)
        calls = delta.get("tool_calls")
        if not isinstance(calls, list | None):
            raise Unreadable("tool calls that are no list")
        for piece in calls or ():
            self._calls.add(piece)
        if delta.get("function_call") is not None:
            self._calls.add_legacy(delta["function_call"])

    def _costs(self, counted: object) -> Iterator[ModelEvent]:
        """Each usage is that of the whole request so far: it takes the place of the one before."""
        usage = usage_of(counted)
        if usage is not None and usage != self._usage:
            self._usage = usage
            yield UsageSoFar(usage)

    def _ran_into_limit(self) -> bool:
        """The output is as long as it may be, whatever the finish reason says of the calls in it."""
        limit = self._request.max_tokens
        return limit is not None and self._usage is not None and bool(self._calls) and self._usage.output >= limit

    def _stop(self, refused: bool, cut: bool, calls: bool) -> Stop:
        if refused:
            return Stop.REFUSAL
        if cut:
            return Stop.LENGTH
        return Stop.CALLS if calls else Stop.END

    def _estimate(self) -> Usage:
        said = sum(len(text) for text in self._said) + self._reasoned + self._calls.characters
        request = self._request
        sent = estimate_usage(request.instructions, request.messages, said)
        tools = sum(len(tool.name) + len(tool.description) + len(str(tool.parameters)) for tool in request.tools)
        return Usage(sent.input + estimate_tokens(len(request.note) + tools), sent.output)
