"""The vendor's failures in the house's words. Pure: what may be done is decided by `insika.reliability.classify`.

A message holds the status, the vendor's kind of error, the id of the request, under which the vendor can look it up,
and the place in the request that it names. Nothing else of what the vendor or the SDK says is kept, not even bounded:
their sentences quote prompts, and an error of ours is written to logs and shown to clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.reliability.classify import action_of

_KIND = re.compile(r"[a-z0-9_.]{1,64}")
_REQUEST_ID = re.compile(r"[a-zA-Z0-9_-]{1,80}")
_PLACE = re.compile(
    r"(?:messages|system|tools|thinking|tool_choice|output_config|max_tokens|model)(?:\.[a-z_0-9]+){0,9}\b"
)
"""The path with which the vendor begins to say what is wrong; indices and names of its own fields."""

_ADVICE = {
    "authentication_error": "the key is not taken: see that it is right, and has not expired",
    "permission_error": "the key may not do this: see the account's workspaces and settings",
    "not_found_error": "see that the vendor has this model, and that the base URL is right",
    "billing_error": "see the account's billing",
    "request_too_large": "the conversation is too large: set limits.context_budget",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a failure says of itself. `status` 0: it came in a stream. `kinds`: all the vendor's words for it."""

    status: int
    kinds: tuple[str, ...] = ()
    place: str = ""
    request_id: str = ""
    retry_after_s: float | None = None


def told(status: int, body: object, request_id: str | None = None, retry_after_s: float | None = None) -> Told:
    """`body`: of the error, in the vendor's shape or any other (api/errors, "Error shapes")."""
    outer: Mapping[str, object] = body if isinstance(body, Mapping) else {}
    error = outer.get("error")
    error = error if isinstance(error, Mapping) else {}
    details = error.get("details")
    code = details.get("error_code") if isinstance(details, Mapping) else None
    kinds = tuple(str(kind) for kind in (error.get("type"), code) if isinstance(kind, str) and _KIND.fullmatch(kind))
    place = _PLACE.match(str(error.get("message", "")))
    id = str(request_id or outer.get("request_id") or "")
    return Told(status, kinds, place[0] if place else "", id if _REQUEST_ID.fullmatch(id) else "", retry_after_s)


def refused(who: str, what: Told) -> ProviderError:
    """`who`: the model and where it is reached."""
    action = action_of(what.status, frozenset(what.kinds), what.retry_after_s)
    said = [str(what.status)] * bool(what.status) + list(what.kinds) or ["an error of no kind"]
    at = f" at {what.place}" if what.place else ""
    when = "refused the request" if what.status else "broke off its answer"
    id = f" (request {what.request_id})" if what.request_id else ""
    advice = next((f"; {_ADVICE[kind]}" for kind in what.kinds if kind in _ADVICE), "")
    error = ProviderFatal if action is FailureAction.FATAL else ProviderError
    return error(
        f"{who} {when}: {' '.join(said)}{at}{id}{advice}",
        action=action,
        status=what.status,
        retry_after=what.retry_after_s,
    )


def unreachable(who: str, why: str) -> ProviderError:
    """No connection came about, so that nothing of the request has left."""
    return ProviderError(f"{who} could not be reached: {why}", sent=False)


def broken_off(who: str, why: str) -> ProviderError:
    """The request has left, or may have, and no whole answer came."""
    return ProviderError(f"{who} gave no whole answer: {why}")


def surprise(who: str, error: Exception) -> ProviderFatal:
    """What nobody has thought of. The text of `error` is not repeated: it may quote anything."""
    return ProviderFatal(f"{who} could not be asked: {type(error).__name__} was raised on the way")
