"""What can be wrong with HTTP tools beyond the shape of their fields: names given twice, schemas that cannot be kept,
placeholders for what is not there, headers that are not a tool's to set, and secrets in the open.

It reads the document as it was written, so that each mistake is told at its own path, whatever else is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from insika.documents import Path
from insika.http_tools.argument_schema import always_there, schema_problems
from insika.http_tools.placeholders import ARGUMENTS, CONTEXT, ENV, RESULT, Place, parse
from insika.http_tools.urls import places_in_path
from insika.parsing import Problem, did_you_mean

CONTEXT_NAMES = ("tenant", "session", "agent", "turn_id", "call_id", "idempotency_key")
"""All that a request may tell of the turn it serves: what the engine knows and no model can write."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.1
UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header can carry: a line break in one would begin another."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
"""They say how a message is sent, which is the connection's business."""
_SECRET = frozenset(["api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token"])
_BODILESS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class _Known:
    """`arguments` None: the schema is at fault, and no name is held against it."""

    arguments: tuple[str, ...] | None
    always: frozenset[str]


def http_tool_problems(document: Mapping[str, object]) -> Iterator[Problem]:
    """What is wrong with the `http_tools` of a settings document and no single field of them can know."""
    given = document.get("http_tools")
    first: dict[str, int] = {}
    for at, tool in enumerate(given if isinstance(given, list) else []):
        if not isinstance(tool, Mapping):
            continue
        name = tool.get("name")
        if isinstance(name, str) and first.setdefault(name, at) != at:
            yield ("http_tools", at, "name"), f"is the name of http_tools.{first[name]} already; rename one of them"
        for path, why in _of_one(tool):
            yield ("http_tools", at, *path), why


def _of_one(tool: Mapping[str, Any]) -> Iterator[Problem]:
    parameters = tool.get("parameters", {"type": "object"})
    known = _Known(None, frozenset())
    if isinstance(parameters, Mapping):
        found = list(schema_problems(parameters))
        yield from ((("parameters", *path), why) for path, why in found)
        if not found:
            known = _Known(tuple(parameters.get("properties", ())), frozenset(always_there(parameters)))
    request, secrets = tool.get("request"), tool.get("secret_headers")
    if isinstance(request, Mapping):
        yield from ((("request", *path), why) for path, why in _of_request(request, known))
    headers = request.get("headers") if isinstance(request, Mapping) else None
    yield from _header_names(_named(headers), _named(secrets))
    for name, text in _named(secrets).items():
        yield from ((("secret_headers", name), why) for why in _of_secret(text))
    for path, halt in _one_or_several(tool.get("halt_when")):
        if isinstance(halt, Mapping):
            say = halt.get("say")
            yield from ((("halt_when", *path, "say"), why) for why in _places(say, (RESULT,), known))


def _of_request(request: Mapping[str, Any], known: _Known) -> Iterator[Problem]:
    sources = (ARGUMENTS, CONTEXT)
    url = request.get("url")
    yield from ((("url",), why) for why in _places(url, sources, known))
    yield from ((("url",), why) for why in _absent_in_path(url, known))
    for section in ("query", "headers"):
        for name, text in _named(request.get(section)).items():
            yield from (((section, name), why) for why in _places(text, sources, known))
            if section == "headers" and isinstance(text, str) and UNPRINTABLE.search(text):
                yield (section, name), "must hold no line break and no other control character"
    if request.get("body") is not None and request.get("method", "GET") in _BODILESS:
        yield ("body",), f"must not be there: a {request.get('method', 'GET')} sends none"
    yield from ((("body", *path), why) for path, why in _of_body(request.get("body"), (), known))


def _of_body(body: object, path: Path, known: _Known) -> Iterator[Problem]:
    if isinstance(body, Mapping):
        for name, value in body.items():
            if "%{" in name:
                yield (*path, name), "must not hold a placeholder in its name"
            yield from _of_body(value, (*path, name), known)
    elif isinstance(body, list):
        for at, value in enumerate(body):
            yield from _of_body(value, (*path, at), known)
    else:
        yield from ((path, why) for why in _places(body, (ARGUMENTS, CONTEXT), known, all_of_them=True))


def _of_secret(text: object) -> Iterator[str]:
    yield from _places(text, (ENV,), _Known(None, frozenset()))
    if isinstance(text, str) and "%{" not in text:
        yield "must take the secret from a variable, as in: Bearer %{env.SHOP_TOKEN}"
    if isinstance(text, str) and UNPRINTABLE.search(text):
        yield "must hold no line break and no other control character"


def _header_names(headers: Mapping[str, object], secrets: Mapping[str, object]) -> Iterator[Problem]:
    given: dict[str, str] = {}
    for path, names in ((("request", "headers"), headers), (("secret_headers",), secrets)):
        for name in names:
            if not _TOKEN.fullmatch(name):
                yield (*path, name), "is not the name of a header"
            elif name.lower() in _OURS:
                yield (*path, name), "is not a tool's to set; remove it"
            elif path == ("request", "headers") and name.lower() in _SECRET:
                yield (*path, name), "belongs into secret_headers, with its value in a variable: %{env.NAME}"
            elif name.lower() in given:
                yield (*path, name), f"is given already, as {given[name.lower()]}"
            given.setdefault(name.lower(), ".".join((*path, name)))


def _places(text: object, sources: Sequence[str], known: _Known, *, all_of_them: bool = False) -> Iterator[str]:
    """What is wrong with the placeholders of one text. `all_of_them`: `%{arguments}` may stand for all arguments."""
    if not isinstance(text, str):
        return
    try:
        template = parse(text)
    except ValueError as error:
        yield str(error)
        return
    for place in template.places:
        if place.source not in sources:
            yield _misplaced(place, sources)
        elif place.source == ARGUMENTS:
            if not place.path and not (all_of_them and template.whole):
                yield f"must name an argument: %{{arguments.NAME}}, not {place}"
            elif place.path and known.arguments is not None and place.path[0] not in known.arguments:
                hint = did_you_mean(place.path[0], known.arguments)
                yield f"holds {place}, and parameters declare no such argument{hint}"
        elif place.source == CONTEXT and (len(place.path) != 1 or place.path[0] not in CONTEXT_NAMES):
            yield f"holds {place}; of its context a call knows {', '.join(CONTEXT_NAMES)}"
        elif place.source == ENV:
            yield from _of_variable(place)


def _of_variable(place: Place) -> Iterator[str]:
    if len(place.path) != 1 or not _VARIABLE.fullmatch(place.path[0]):
        yield f"must name a variable: %{{env.NAME}}, not {place}"
    elif place.path[0].startswith("INSIKA_"):
        yield f"holds {place}: the variables of Insika itself are not sent to anybody"


def _misplaced(place: Place, sources: Sequence[str]) -> str:
    if place.source == ENV:
        return f"holds {place}: secrets may stand in secret_headers, and nowhere else"
    return f"holds {place}, which is not known here; use {' or '.join(f'%{{{source}.NAME}}' for source in sources)}"


def _absent_in_path(url: object, known: _Known) -> Iterator[str]:
    try:
        places = places_in_path(url) if isinstance(url, str) else ()
    except ValueError:
        return
    optional = set(known.arguments or ()) - known.always
    for place in places:
        if place.source == ARGUMENTS and place.path and place.path[0] in optional:
            yield f"holds {place} in its path: make the argument required, or give it a default"


def _named(section: object) -> Mapping[str, object]:
    return section if isinstance(section, Mapping) else {}


def _one_or_several(halts: object) -> Iterator[tuple[Path, object]]:
    if isinstance(halts, list):
        yield from (((at,), halt) for at, halt in enumerate(halts))
    else:
        yield (), halts
