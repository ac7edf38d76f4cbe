"""The addresses that answers and alerts are sent to, as text: what they may look like, and what of them may be shown.

Whether one may be reached at all is the egress guard's to say, at sending.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

HIDDEN = "***"
"""Stands for what is secret."""


def webhook_url(text: str) -> str:
    """`text`, if it is an http or https URL with a host and without a user. Raises ValueError, without the URL's
    parts that may be secret."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("must be a URL, like https://example.com/insika") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("must be a URL that begins with https:// or http://")
    if not parts.hostname or port == 0 or not text.isprintable() or " " in text:
        raise ValueError("must be a URL with a host, like https://example.com/insika")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must hold no user or password; receivers check the signature instead")
    return text


def redacted_url(url: str) -> str:
    """A URL to show people: what stands behind the question mark may be a token."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=HIDDEN, fragment="")) if parts.query else url
