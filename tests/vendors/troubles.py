"""What can go wrong between a vendor and us, each as a value.

A trouble is made for one request: by a script (`steps.Make`), by the queue `Vendor.troubles`, or by `Vendor.choose`.
`to_json` and `from_json` carry one to a fake that runs in a process of its own.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any


class Ending(enum.StrEnum):
    """How a stream that is cut goes down. `reset`: RST, as from a process that is killed. `close`: FIN in mid-body, so
    that the chunked encoding is broken off. `done`: the body ends properly, only what should have come is missing, as
    a proxy does that lost its upstream."""

    RESET = "reset"
    CLOSE = "close"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Refuses:
    """Answer with `status` in the vendor's own shape; `kind` overrides the error's type, `code` OpenAI's code. `body`
    replaces all of it (a proxy's HTML page, say)."""

    status: int
    message: str = "the fake was told to refuse this request"
    kind: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Resets:
    """The connection is reset when the request has been read, before the first byte of an answer."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Nothing comes, not even headers, until `Vendor.gate` is opened, or for `seconds`; then all goes well. With
    `headers_first` the headers come at once and the wait is before the first event."""

    seconds: float | None = None
    headers_first: bool = False


@dataclass(frozen=True, slots=True)
class Cuts:
    """The stream goes down after `after` events, and after `bytes` bytes of the next one."""

    after: int
    bytes: int = 0
    ending: Ending = Ending.RESET


@dataclass(frozen=True, slots=True)
class Stalls:
    """After `after` events nothing more comes and the connection stays open. With `pings` keep-alives go on coming for
    ever: the stream never ends and never falls silent."""

    after: int
    pings: bool = False


@dataclass(frozen=True, slots=True)
class Garbles:
    """In place of event `at` comes `raw`, then the rest of the stream as it would be."""

    at: int
    raw: str


@dataclass(frozen=True, slots=True)
class Breaks:
    """After `after` events comes the vendor's error event, and the stream ends."""

    after: int
    kind: str | None = None
    message: str = "the fake was told to break off"


Trouble = Refuses | Resets | Waits | Cuts | Stalls | Garbles | Breaks

_KINDS: dict[str, type[Trouble]] = {
    kind.__name__: kind for kind in (Refuses, Resets, Waits, Cuts, Stalls, Garbles, Breaks)
}

MALFORMED = {
    "half a JSON": 'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n',
    "no JSON": "data: <html>502 Bad Gateway</html>\n\n",
    "an array": "data: []\n\n",
    "a number": "data: 7\n\n",
    "null": "data: null\n\n",
    "an empty object": "data: {}\n\n",
    "an unknown event": 'event: weather\ndata: {"type": "weather", "sky": "blue"}\n\n',
    "an empty data line": "data:\n\n",
    "a wrong shape": 'data: {"type": "content_block_delta", "index": "x", "delta": 3, "choices": [{"delta": 3}]}\n\n',
    "a comment": ": nothing to see\n\n",
}
"""Malformed events, and harmless ones that a careful reader must live with (the unknown event, the comment)."""


def retry_after_values(now: datetime) -> dict[str, str | None]:
    """Every kind of Retry-After: RFC 9110 10.2.3 knows seconds and an HTTP date; the rest is what is found outside.
    None: the header is absent. `now`: dates are counted from it."""
    return {
        "seconds": "7",
        "fraction": "0.5",
        "zero": "0",
        "just short": "60",
        "just long": "61",
        "very long": "9999",
        "beyond all bounds": "99999999999999999999",
        "date": format_datetime(now.astimezone(UTC) + timedelta(seconds=30), usegmt=True),
        "date long ahead": format_datetime(now.astimezone(UTC) + timedelta(hours=3), usegmt=True),
        "date gone by": format_datetime(now.astimezone(UTC) - timedelta(hours=1), usegmt=True),
        "negative": "-5",
        "not a number": "NaN",
        "infinite": "inf",
        "rubbish": "soon",
        "empty": "",
        "absent": None,
    }


def rate_limited(retry_after: str | None = None, **headers: str) -> Refuses:
    """429. `headers` are more of them, with _ for -: what the vendors send beside Retry-After is in
    `anthropic_resets` and `openai_resets`."""
    all_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if retry_after is not None:
        all_headers["retry-after"] = retry_after
    return Refuses(429, "This request would exceed your account's rate limit.", headers=all_headers)


def anthropic_resets(at: datetime) -> dict[str, str]:
    """Anthropic's own headers, times in RFC 3339 (platform.claude.com/docs/en/api/rate-limits, "Response headers")."""
    stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("requests", "tokens", "input-tokens", "output-tokens")
    return {
        f"anthropic-ratelimit-{kind}-{name}": value
        for kind in kinds
        for name, value in (("limit", "50"), ("remaining", "0"), ("reset", stamp))
    }


def openai_resets(requests: str = "1s", tokens: str = "6m0s") -> dict[str, str]:
    """OpenAI's own headers, durations as `6m0s` (developers.openai.com/api/docs/guides/rate-limits, "Rate limits in
    headers")."""
    return {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-requests": requests,
        "x-ratelimit-reset-tokens": tokens,
    }


def to_json(trouble: Trouble) -> dict[str, Any]:
    return {"trouble": type(trouble).__name__, **asdict(trouble)}


def from_json(data: Mapping[str, Any]) -> Trouble:
    """Raises KeyError or TypeError for what is no trouble."""
    values = dict(data)
    kind = _KINDS[values.pop("trouble")]
    if "ending" in values:
        values["ending"] = Ending(values["ending"])
    return kind(**values)
