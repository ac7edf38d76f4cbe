"""What a model has reasoned, kept as far as its vendor wants it back. Pure.

DeepSeek wants the text (api-docs.deepseek.com/guides/thinking_mode). OpenRouter wants `reasoning_details` as they came
(openrouter.ai/docs/use-cases/reasoning-tokens, "Preserving reasoning"), but streams each in fragments of one type and
index, the signature by itself, and a signature holds for the whole text only (agno-agi/agno 8794): they are put
together.
"""

from __future__ import annotations

from typing import Any

from insika.messages import NOTHING_VERBATIM, Verbatim
from insika.providers.openai.dialects import REASONING_CONTENT, REASONING_DETAILS

_GROWING = frozenset({"text", "summary", "data"})


class KeptReasoning:
    """`field`: of the message in which it goes back, as in `dialects`; "" keeps nothing."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._text: list[str] = []
        self._details: list[dict[str, Any]] = []

    def add_text(self, text: str) -> None:
        if self._field == REASONING_CONTENT:
            self._text.append(text)

    def add_details(self, details: object) -> None:
        """A delta's `reasoning_details`; what has another shape is none."""
        if self._field != REASONING_DETAILS or not isinstance(details, list):
            return
        for piece in details:
            if isinstance(piece, dict):
                self._add(piece)

    def verbatim(self, reference: str) -> Verbatim:
        """`reference`: of the model that reasoned."""
        if self._details:
            return Verbatim(reference, tuple(self._details))
        text = "".join(self._text)
        return Verbatim(reference, ({REASONING_CONTENT: text},)) if text else NOTHING_VERBATIM

    def _add(self, piece: dict[str, Any]) -> None:
        found = next((known for known in reversed(self._details) if _same(known, piece)), None)
        if found is None:
            self._details.append(dict(piece))
            return
        for key, value in piece.items():
            if key in _GROWING and isinstance(value, str) and isinstance(found.get(key), str):
                found[key] += value
            elif value is not None or key not in found:
                found[key] = value


def _same(known: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Whether they are fragments of one: those without an index stand for themselves."""
    if piece.get("index") is None or any(known.get(key) != piece.get(key) for key in ("type", "index")):
        return False
    ids = {known.get("id"), piece.get("id")} - {None}
    return len(ids) < 2
