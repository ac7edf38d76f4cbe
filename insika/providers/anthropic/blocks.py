"""The blocks of an answer while they are streamed, each piece by piece. Pure.

What the vendor wants back is kept as it came, fields that nobody here knows among it. A character may be torn between
two pieces: its first half waits for the second.

Source: platform.claude.com/docs/en/build-with-claude/streaming ("Content block delta types"; the arguments of a call
are pieces of JSON, and nothing at all where there are none) and build-with-claude/thinking ("Streaming thinking").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from insika.documents import parse_json
from insika.messages import ToolCall
from insika.text import clean_text, loses_nothing


class Malformed(Exception):
    """What came is not what the API says. Never leaves this package; its text holds nothing that was streamed."""


_DELTAS = {
    "text_delta": ("text", "text", "text"),
    "thinking_delta": ("thinking", "thinking", "thinking"),
    "signature_delta": ("thinking", "signature", "signature"),
    "input_json_delta": ("tool_use", "partial_json", "input"),
}
"""By the type of a delta: the block that it belongs to, its own field, and the block's that it adds to."""


@dataclass(slots=True)
class Block:
    """`opened`: the block as it was announced. `strange`: pieces came that nobody here knows, so that it cannot be put
    together."""

    opened: Mapping[str, Any]
    closed: bool = False
    strange: bool = False
    _pieces: dict[str, list[str]] = field(default_factory=dict)
    _torn: str = ""

    @classmethod
    def announced(cls, content_block: object) -> Block:
        """Raises Malformed."""
        if not isinstance(content_block, Mapping) or not isinstance(content_block.get("type"), str):
            raise Malformed("a block without a type")
        block = cls(content_block)
        if block.type == "tool_use" and not all(isinstance(content_block.get(key), str) for key in ("id", "name")):
            raise Malformed("a call without an id or a name")
        for key in ("text", "thinking", "signature"):
            if isinstance(given := content_block.get(key), str) and given:
                block._pieces[key] = [given]
        return block

    @property
    def type(self) -> str:
        return str(self.opened["type"])

    def take(self, delta: object) -> str:
        """The piece of text or thinking that can be shown now; "" for other deltas. Raises Malformed."""
        if not isinstance(delta, Mapping) or not isinstance(delta.get("type"), str):
            raise Malformed("a delta without a type")
        if delta["type"] not in _DELTAS:
            self.strange = self.type != "text"  # citations and the like leave a text what it is
            return ""
        kind, key, adds_to = _DELTAS[delta["type"]]
        piece = delta.get(key)
        if kind != self.type or not isinstance(piece, str) or self.closed:
            raise Malformed("a delta that does not fit its block")
        self._pieces.setdefault(adds_to, []).append(piece)
        return self._whole_characters(piece) if key in ("text", "thinking") else ""

    def close(self) -> str:
        """What was still waiting for its second half."""
        self.closed = True
        waiting, self._torn = self._torn, ""
        return clean_text(waiting)

    def shown_at_once(self) -> str:
        """What stood in the announcement already."""
        return self._whole_characters(self._joined(self.type)) if self.type in ("text", "thinking") else ""

    @property
    def characters(self) -> int:
        """Of all that was said in it."""
        return sum(len(piece) for pieces in self._pieces.values() for piece in pieces)

    @property
    def text(self) -> str:
        return clean_text(self._joined("text")) if self.type == "text" else ""

    def call(self, *, may_be_cut: bool) -> ToolCall:
        """`may_be_cut`: the output's limit was reached behind its last piece. Arguments that are whole JSON are whole:
        no beginning of an object is one."""
        id, name, raw = str(self.opened["id"]), str(self.opened["name"]), self._joined("input")
        arguments = self._arguments(raw)
        if may_be_cut and (arguments is None or not raw):
            return ToolCall(id, name, cut_off=True)
        return ToolCall(id, name, malformed=clean_text(raw)) if arguments is None else ToolCall(id, name, arguments)

    def to_send_back(self, call: ToolCall | None) -> dict[str, Any] | None:
        """As the vendor wants it back, of a call with the arguments of `call`; None where there is nothing to send:
        the vendor itself refuses the blank texts that its models write."""
        match self.type:
            case "text":
                return {"type": "text", "text": self.text} if self.text.strip() else None
            case "thinking":
                return {**self.opened, "thinking": self._joined("thinking"), "signature": self._joined("signature")}
            case "tool_use":
                return {**self.opened, "input": dict(call.arguments) if call else {}}
        return dict(self.opened)

    @property
    def can_be_sent_back(self) -> bool:
        """Thinking without a signature cannot, nor can a block of which pieces are unknown."""
        return not self.strange and (self.type != "thinking" or bool(self._joined("signature")))

    def _arguments(self, raw: str) -> dict[str, Any] | None:
        if not raw:
            given = self.opened.get("input")
            return dict(given) if isinstance(given, Mapping) else {}
        try:
            value = parse_json(raw)
        except ValueError:
            return None
        return dict(value) if isinstance(value, Mapping) else None

    def _joined(self, key: str) -> str:
        whole = "".join(self._pieces.get(key, ()))
        return clean_text(whole) if "\0" not in whole and loses_nothing(whole) else whole

    def _whole_characters(self, piece: str) -> str:
        piece = self._torn + piece
        self._torn = piece[-1] if piece and "\ud800" <= piece[-1] <= "\udbff" else ""
        return clean_text(piece[: len(piece) - len(self._torn)])
