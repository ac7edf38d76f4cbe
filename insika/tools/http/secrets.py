"""The headers with secrets of one tool: filled from the environment at the last moment, and hidden wherever they come
back. The values are in no message, no repr and no result of this room."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from insika.http_tools.checks import UNPRINTABLE
from insika.http_tools.placeholders import Place, Template, parse
from insika.tools.tool import ToolError
from insika.urls import HIDDEN


class SecretHeaders:
    """`headers` are texts with `%{env.NAME}`; `variables` is what this process was given, by name."""

    def __init__(self, headers: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self._headers: Mapping[str, Template] = {name: parse(text) for name, text in headers.items()}
        self._variables = variables

    def filled(self) -> dict[str, str]:
        """Raises ToolError, naming the variable, where one is not set or holds what no header can carry."""
        return {name: template.filled(self._value) for name, template in self._headers.items()}

    def hidden(self, text: str) -> str:
        """`text` without the secrets, also in the ways in which a service may have written them down."""
        for spelling in sorted(self._spellings(), key=len, reverse=True):
            text = text.replace(spelling, HIDDEN)
        return text

    def _value(self, place: Place) -> str:
        name = place.path[0]
        value = self._variables.get(name, "").strip()
        if not value:
            raise ToolError(f"nothing was sent: the environment variable {name} is not set where this tool runs")
        if UNPRINTABLE.search(value):
            raise ToolError(f"nothing was sent: the environment variable {name} holds what no header can carry")
        return value

    def _spellings(self) -> Iterator[str]:
        for place in {place for template in self._headers.values() for place in template.places}:
            if value := self._variables.get(place.path[0], "").strip():
                yield from _spellings_of(value)


def _spellings_of(value: str) -> set[str]:
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        quote_plus(value),
        html.escape(value),
        value.encode("utf-8", "replace").decode("latin-1"),
    }
