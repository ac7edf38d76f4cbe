"""The events of one stream, read into what the port gives: pieces, what it costs by now, and the whole at last. Pure.

Events come in a fixed order, and each block is opened, filled and closed; an answer counts only when the vendor has
said why it stopped and that it has. New kinds of events and deltas are let pass, as the vendor asks.

What the reasons to stop mean here: `max_tokens` and `model_context_window_exceeded` are limits, and so is
`pause_turn`, with which the vendor breaks off its own tools. Behind `refusal` nothing that was announced is run: its
calls are left out. `end_turn`, `tool_use`, `stop_sequence` and every reason that nobody knows yet end a message that
is whole.

Sources, under platform.claude.com/docs/en: build-with-claude/streaming ("Event types", "Error events"),
build-with-claude/handling-stop-reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from insika.messages import NOTHING_VERBATIM, Message, Role, ToolCall, Usage, Verbatim
from insika.ports import Finished, ModelEvent, Stop, TextDelta, ThinkingDelta, UsageSoFar
from insika.providers.anthropic.blocks import Block, Malformed
from insika.providers.anthropic.kept import verbatim_of
from insika.providers.anthropic.request import WireRequest
from insika.providers.anthropic.usage import Counts
from insika.turn.estimate import estimate_tokens
from insika.turn.model_message import spoken

_LIMITS = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})
_OF_A_MESSAGE = frozenset({"content_block_start", "content_block_delta", "content_block_stop", "message_delta"})


def read_event(name: str | None, data: str) -> Mapping[str, Any]:
    """One event of the stream, by its name and data; one without data is none (WHATWG, "Server-sent events"). Raises
    Malformed."""
    if not data and name in (None, "ping"):
        return {"type": "ping"}
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise Malformed("an event that is no JSON") from None
    if not isinstance(event, dict):
        raise Malformed("an event that is no object")
    return event


class Reading:
    """One answer to `asked`. `model` is the whole reference. `done`: it is whole."""

    def __init__(self, model: str, asked: WireRequest) -> None:
        self._model = model
        self._asked = asked
        self._blocks: dict[int, Block] = {}
        self._counts = Counts()
        self._reason: str | None = None
        self._started = False
        self.done = False

    def take(self, event: Mapping[str, Any]) -> Iterator[ModelEvent]:
        """What this event comes to, in deltas and counts. Raises Malformed."""
        kind = event.get("type")
        if not isinstance(kind, str):
            raise Malformed("an event without a type")
        if kind == "message_start":
            yield from self._start(event.get("message"))
        elif kind in _OF_A_MESSAGE:
            if not self._started or self.done:
                raise Malformed("an event outside of the message")
            yield from self._told(event) if kind == "message_delta" else self._block(kind, event)
        elif kind == "message_stop":
            self._end()

    def finished(self) -> Finished:
        """The whole, once it is `done`."""
        calls, stop = self._calls(), self._stop()
        if stop is Stop.REFUSAL:
            calls = {}
        elif calls and stop is Stop.END:
            stop = Stop.CALLS
        text = spoken("".join(block.text for block in self._in_order().values()))
        message = Message(Role.ASSISTANT, text, tuple(calls.values()), verbatim=self._verbatim(calls))
        usage = self._counts.usage if self._counts.measured else self._estimate()
        return Finished(message, usage, stop, self._counts.measured)

    # --- events ---

    def _start(self, message: object) -> Iterator[ModelEvent]:
        if self._started or not isinstance(message, Mapping):
            raise Malformed("a message that begins twice, or is none")
        self._started = True
        yield from self._charged(message.get("usage"))

    def _told(self, event: Mapping[str, Any]) -> Iterator[ModelEvent]:
        delta = event.get("delta")
        reason = delta.get("stop_reason") if isinstance(delta, Mapping) else 0
        if not isinstance(reason, str | None):
            raise Malformed("a message that ends for no reason")
        self._reason = reason or self._reason
        yield from self._charged(event.get("usage"), at_end=True)

    def _charged(self, told: object, *, at_end: bool = False) -> Iterator[ModelEvent]:
        if self._counts.take(told, at_end=at_end):
            yield UsageSoFar(self._counts.usage)

    def _block(self, kind: str, event: Mapping[str, Any]) -> Iterator[ModelEvent]:
        index = event.get("index")
        if not isinstance(index, int) or (kind == "content_block_start") == (index in self._blocks):
            raise Malformed("a block that is opened twice, or not at all")
        if kind == "content_block_start":
            block = self._blocks[index] = Block.announced(event.get("content_block"))
            shown = block.shown_at_once()
        else:
            block = self._blocks[index]
            shown = block.take(event.get("delta")) if kind == "content_block_delta" else block.close()
        if shown:
            yield TextDelta(shown) if block.type == "text" else ThinkingDelta(shown)

    def _end(self) -> None:
        if not self._started or self._reason is None or not all(block.closed for block in self._blocks.values()):
            raise Malformed("a message that ends before it is whole")
        self.done = True

    # --- the whole ---

    def _in_order(self) -> dict[int, Block]:
        return dict(sorted(self._blocks.items()))

    def _calls(self) -> dict[int, ToolCall]:
        blocks = self._in_order()
        last = next(reversed(blocks), None)
        return {
            index: block.call(may_be_cut=index == last and self._stop() is not Stop.END)
            for index, block in blocks.items()
            if block.type == "tool_use"
        }

    def _stop(self) -> Stop:
        if self._reason == "refusal":
            return Stop.REFUSAL
        return Stop.LENGTH if self._reason in _LIMITS else Stop.END

    def _verbatim(self, calls: Mapping[int, ToolCall]) -> Verbatim:
        """Only a message with calls is sent back before its turn has ended."""
        blocks = self._in_order()
        if not calls or not all(block.can_be_sent_back for block in blocks.values()):
            return NOTHING_VERBATIM
        back = [block.to_send_back(calls.get(index)) for index, block in blocks.items()]
        return verbatim_of(self._model, [block for block in back if block is not None], self._asked.bound_to)

    def _estimate(self) -> Usage:
        """What was told, and an estimate for the rest, so that spend errs upwards."""
        told = self._counts.usage
        said = estimate_tokens(sum(block.characters for block in self._blocks.values()))
        if self._counts.knows_input:
            return Usage(told.input, max(told.output, said), told.cache_read, told.cache_write)
        sent = len(json.dumps(self._asked.parameters, ensure_ascii=False))
        return Usage(input=estimate_tokens(sent), output=max(told.output, said))
