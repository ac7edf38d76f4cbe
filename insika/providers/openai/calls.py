"""The tool calls of a message, put together from the pieces in which they are streamed. Pure.

By the book a call has an index, says its id and name once, and gives its arguments in pieces (developers.openai.com/
api/docs, API reference chat/streaming). Found outside it, and read here: every call at index 0 (ollama/ollama 15457),
no index at all (ollama/ollama 7881, openai/openai-python 2806), an index that changes within a call (sgl-project/sglang
6310), ids and names repeated or missing, a call whole in one piece, arguments as an object, and the single
`function_call` of old (API reference, deprecated).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from insika.documents import parse_json
from insika.messages import ToolCall
from insika.providers.openai.wording import Unreadable, text_in


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)


class StreamedCalls:
    """The calls of one message, in the order in which they were begun. `characters`: of names and arguments so far."""

    def __init__(self) -> None:
        self.characters = 0
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, piece: object) -> None:
        """One element of a delta's `tool_calls`. Raises Unreadable for what has not its shape."""
        if not isinstance(piece, Mapping):
            raise Unreadable("a tool call that is no object")
        function = piece.get("function")
        if function is not None and not isinstance(function, Mapping):
            raise Unreadable("a tool call whose function is no object")
        id, name = text_in(piece, "id"), text_in(function or {}, "name")
        arguments = _arguments(function or {})
        call = self._call(piece.get("index"), id, name)
        call.id = call.id or id
        if not call.name:
            call.name = name
            self.characters += len(name)
        call.pieces.append(arguments)
        self.characters += len(arguments)

    def add_legacy(self, function: object) -> None:
        """A delta's `function_call`: the message has but one call."""
        self.add({"index": 0, "function": function})

    def whole(self, *, cut: bool) -> tuple[ToolCall, ...]:
        """`cut`: the output limit was reached. The last call is then called cut off, also where its arguments can be
        read: servers have been seen to close what a model had left open (vllm-project/vllm PR 46303)."""
        last = len(self._calls) - 1
        return tuple(_read(call, cut_off=cut and at == last) for at, call in enumerate(self._calls))

    def _call(self, index: object, id: str, name: str) -> _Call:
        """The call that a piece belongs to, a new one where it begins one."""
        if not isinstance(index, int) or isinstance(index, bool):
            return self._unnumbered(id, name)
        known = self._at.get(index)
        if known is None and self._calls and not id and not name:
            known = self._calls[-1]
        begins_another = known is not None and id and known.id not in ("", id) and name and known.name
        if known is None or begins_another:
            known = self._begin()
        self._at[index] = known
        return known

    def _unnumbered(self, id: str, name: str) -> _Call:
        of_that_id = next((call for call in self._calls if id and call.id == id), None)
        if of_that_id is not None:
            return of_that_id
        return self._begin() if id or name or not self._calls else self._calls[-1]

    def _begin(self) -> _Call:
        self._calls.append(_Call())
        return self._calls[-1]


def _arguments(function: Mapping[str, object]) -> str:
    given = function.get("arguments")
    if isinstance(given, Mapping):
        return json.dumps(given, ensure_ascii=False)
    return text_in(function, "arguments")


def _read(call: _Call, *, cut_off: bool) -> ToolCall:
    if cut_off:
        return ToolCall(call.id, call.name, cut_off=True)
    raw = "".join(call.pieces)
    if not raw.strip():
        return ToolCall(call.id, call.name)
    try:
        arguments = parse_json(raw)
    except ValueError:
        return ToolCall(call.id, call.name, {}, raw)
    return (
        ToolCall(call.id, call.name, arguments)
        if isinstance(arguments, dict)
        else ToolCall(call.id, call.name, {}, raw)
    )
