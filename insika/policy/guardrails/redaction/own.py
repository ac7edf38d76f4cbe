"""Finds what a profile itself wants removed."""

from __future__ import annotations

from insika.agents.guardrails import OwnRedaction
from insika.policy.guardrails.redaction.finding import Hit, Hold
from insika.regex import LinearRegex


class OwnFinder:
    """Nothing can be told of a pattern before as many characters have come as its matches may have."""

    begins = ""

    def __init__(self, own: OwnRedaction) -> None:
        self._kind = own.kind
        self._regex = LinearRegex(own.pattern)
        self._at_most = own.at_most

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        decided = len(text) if ended else max(at, len(text) - self._at_most)
        encoded = _bytes(text)
        place = len(_bytes(text[:at]))
        while (span := self._regex.first_from(encoded, place)) is not None:
            start = len(encoded[: span[0]].decode("utf-8", "surrogatepass"))
            if start >= decided:
                break
            farthest = span[0] + len(_bytes(text[start : start + self._at_most]))
            end = self._regex.at(encoded, span[0], farthest)
            if end is not None and end > span[0]:
                return Hit(start, start + len(encoded[span[0] : end].decode("utf-8", "surrogatepass")), self._kind)
            place = span[0] + len(_bytes(text[start : start + 1]))
        return None if ended else Hold(decided)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
