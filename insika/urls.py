"""Addresses as text: what those may look like that answers, alerts and models' requests are sent to, and what of them
may be shown.

Whether one may be reached at all is the egress guard's to say, at sending.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit

HIDDEN = "***"
"""Stands for what is secret."""


def webhook_url(text: str) -> str:
    """`text`, if it is an http or https URL with a host and without a user. Raises ValueError, without the URL's
    parts that may be secret."""
    if _has_user(_http(text, "https://example.com/insika")):
        raise ValueError("must hold no user or password; receivers check the signature instead")
    return text


def api_url(text: str) -> str:
    """`text`, if it is an http or https URL that paths can be put behind: without a user, a query and a fragment.
    Raises ValueError, without the URL's parts that may be secret."""
    parts = _http(text, "https://api.example.com/v1")
    if _has_user(parts):
        raise ValueError("must hold no user or password; a key is named by its variable instead")
    if "?" in text or "#" in text:
        raise ValueError("must end before a ? or #: the paths of the API are put behind it")
    return text


def redacted_url(url: str) -> str:
    """A URL to show people: what stands behind the question mark may be a token."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=HIDDEN, fragment="")) if parts.query else url


def _http(text: str, example: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"must be a URL, like {example}") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("must be a URL that begins with https:// or http://")
    if not parts.hostname or port == 0 or not text.isprintable() or " " in text:
        raise ValueError(f"must be a URL with a host, like {example}")
    return parts


def _has_user(parts: SplitResult) -> bool:
    return parts.username is not None or parts.password is not None
