"""The URL of an HTTP tool: literal up to its path, so that nothing a model writes can choose where a request goes.

Whether the host may be reached at all is the egress guard's to say, at sending.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from insika.http_tools.placeholders import Place, Template, parse
from insika.urls import webhook_url

_PARTS = re.compile(r"https?://([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?", re.DOTALL)


def url_template(text: str) -> str:
    """`text`, if it is such a URL. Raises ValueError, without the parts that may be secret."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise ValueError("must be a URL that begins with https:// or http://")
    host, path, _, fragment = parts.groups()
    if "%" in host:
        raise ValueError("must name its host as it is: placeholders may stand in the path and behind it")
    if "@" in host:
        raise ValueError("must hold no user or password; an Authorization in secret_headers says who asks")
    if fragment is not None:
        raise ValueError("must end before the #, which is never sent")
    webhook_url(parse(text).filled(lambda place: "x"))
    if "\\" in text:
        raise ValueError("must not hold a backslash")
    if any(unquote(segment).partition(";")[0] in (".", "..") for segment in path.split("/")):
        raise ValueError("must not hold . or .. as a part of its path")
    return text


def path_and_query(text: str) -> tuple[str, Template, Template]:
    """A URL's beginning up to the path, its path and its query. For what `url_template` has accepted."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise ValueError("is not the URL of an HTTP tool")
    return text[: parts.start(2)], parse(parts[2]), parse(parts[3] or "")


def places_in_path(text: str) -> tuple[Place, ...]:
    """Raises ValueError as `parse` does."""
    parts = _PARTS.fullmatch(text)
    return tuple(parse(parts[2]).places) if parts is not None else ()
