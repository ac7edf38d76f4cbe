"""Makes the request of one call: a description's texts, filled with the call's arguments and with what the engine
knows of the turn.

What a model writes can end up as one segment of a path, one value of a query, one header or one value of the body, and
never as more than that: not as another segment, another host, another header.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from insika.http_tools.checks import CONTEXT_NAMES, UNPRINTABLE
from insika.http_tools.description import Method, Request
from insika.http_tools.placeholders import ARGUMENTS, CONTEXT, MISSING, Place, Template, as_text, parse, value_at
from insika.http_tools.urls import path_and_query
from insika.tools.tool import ToolContext, ToolError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SLASHES = re.compile(r"/|\\|%2f|%5c", re.IGNORECASE)
_PARAMETERS = re.compile(r";|%3b", re.IGNORECASE)
_DOTS = re.compile(r"(?:\.|%2e)+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Outgoing:
    """One request, ready to be sent; its headers may hold secrets. `url` is yet to be judged by the egress guard."""

    method: Method
    url: str
    headers: Mapping[str, str]
    body: bytes | None


class RequestTemplate:
    def __init__(self, request: Request) -> None:
        self._method = request.method
        self._origin, self._path, self._query_in_url = path_and_query(request.url)
        self._query = {name: _template_of(value) for name, value in request.query.items()}
        self._headers = {name: parse(text) for name, text in request.headers.items()}
        self._body = request.body

    def problems(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Why these arguments, which fit the tool's schema, cannot be sent: by name, without their values."""
        values = {ARGUMENTS: arguments}
        for place in self._path.places:
            if place.source == ARGUMENTS and (why := _unfit_in_path(value_at(values, _steps(place)))):
                yield ".".join(place.path), why
        for template in self._headers.values():
            for place in template.places:
                value = value_at(values, _steps(place))
                if value is not MISSING and UNPRINTABLE.search(as_text(value)):
                    yield (
                        ".".join(place.path),
                        "must hold no line break and no control character: it stands in a header",
                    )

    def filled(self, arguments: Mapping[str, Any], context: ToolContext, secrets: Mapping[str, str]) -> Outgoing:
        """`arguments` are such that `problems` finds nothing. Raises ToolError where the turn's own context cannot
        stand in a URL or a header; nothing of the message is a secret."""
        values = {ARGUMENTS: arguments, CONTEXT: {name: getattr(context, name) for name in CONTEXT_NAMES}}
        body = _filled(self._body, values)
        headers = {"Accept": "application/json, text/*;q=0.9", "Accept-Encoding": "identity"}
        if body is not MISSING and body is not None:
            headers["Content-Type"] = "application/json"
        given = {**self._filled_headers(values), **secrets}
        replaced = {name.lower() for name in given}
        return Outgoing(
            self._method,
            self._filled_url(values),
            {**{name: text for name, text in headers.items() if name.lower() not in replaced}, **given},
            None if body is MISSING or body is None else json.dumps(body, ensure_ascii=False).encode(),
        )

    def _filled_url(self, values: Mapping[str, Any]) -> str:
        def in_path(place: Place) -> str:
            value = value_at(values, _steps(place))
            if why := _unfit_in_path(value):
                raise ToolError(f"nothing was sent: {place} {why}")
            return quote(as_text(value), safe="")

        def in_query(place: Place) -> str:
            value = value_at(values, _steps(place))
            return "" if value is MISSING or value is None else quote(as_text(value), safe="")

        query = [self._query_in_url.filled(in_query)] if self._query_in_url.pieces else []
        for name, template in self._query.items():
            value = _text_in(template, values)
            for each in value if isinstance(value, list) else [value]:
                if each is not MISSING and each is not None:
                    query.append(f"{quote(name, safe='')}={quote(as_text(each), safe='')}")
        path = self._path.filled(in_path)
        return self._origin + path + ("?" + "&".join(query) if query else "")

    def _filled_headers(self, values: Mapping[str, Any]) -> dict[str, str]:
        filled = {}
        for name, template in self._headers.items():
            value = _text_in(template, values)
            if value is MISSING or value is None:
                continue
            text = as_text(value)
            if UNPRINTABLE.search(text):
                raise ToolError(f"nothing was sent: the header {name} would hold a control character")
            filled[name] = text
        return filled


def _steps(place: Place) -> tuple[str, ...]:
    return (place.source, *place.path)


def _template_of(value: Any) -> Template:
    return parse(value) if isinstance(value, str) else Template((as_text(value),))


def _text_in(template: Template, values: Mapping[str, Any]) -> Any:
    """The text, or, where it is all one placeholder, the value itself; MISSING where something in it is absent."""
    if template.whole is not None:
        return value_at(values, _steps(template.whole))
    found = {place: value_at(values, _steps(place)) for place in template.places}
    if any(value is MISSING or value is None for value in found.values()):
        return MISSING
    return template.filled(lambda place: as_text(found[place]))


def _filled(body: Any, values: Mapping[str, Any]) -> Any:
    """The body with every text in it filled; what is absent is left out, with its name or its place in a list."""
    if isinstance(body, Mapping):
        fields = {name: _filled(value, values) for name, value in body.items()}
        return {name: value for name, value in fields.items() if value is not MISSING}
    if isinstance(body, list):
        return [value for value in (_filled(each, values) for each in body) if value is not MISSING]
    return _text_in(parse(body), values) if isinstance(body, str) else body


def _unfit_in_path(value: Any) -> str:
    """Why a value cannot be one segment of a path, or "": what servers take for another path is refused, however often
    they undo the escaping."""
    if value is MISSING or value is None:
        return "is needed: it stands in the path of a URL"
    text = as_text(value)
    if not text.strip():
        return "must not be empty: it stands in the path of a URL"
    if _CONTROL.search(text):
        return "must hold no control character: it stands in the path of a URL"
    # Some servers cut a part at its first ; before they look at it (RFC 3986, 3.3, on parameters of a segment).
    if any(_DOTS.fullmatch(_PARAMETERS.split(piece, maxsplit=1)[0]) for piece in _SLASHES.split(text)):
        return "must not lead to another path: it has . or .. as a part"
    return ""
