"""Ids as people type them: whole, or as much of the beginning as no other id has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from actors.cli.refusals import Ambiguous

CANDIDATES = 5
BEGINNING_MIN = 4
"""Characters, at least, by which something is named that cannot be taken back."""
_SHOWN_MAX = 60


async def whole_id(given: str, beginning_with: Callable[[str, int], Awaitable[Sequence[str]]]) -> str:
    """The one id that is `given` or begins with it; `given` itself when there is none, so that looking it up says so.
    Raises Ambiguous, naming the candidates, when there are several."""
    if not given:
        return given
    found = await beginning_with(given, CANDIDATES + 1)
    if not found or given in found:
        return given
    if len(found) > 1:
        named = ", ".join(found[:CANDIDATES]) + (", ..." if len(found) > CANDIDATES else "")
        raise Ambiguous(f"{as_given(given)} may be any of: {named}")
    return found[0]


async def decided_id(given: str, beginning_with: Callable[[str, int], Awaitable[Sequence[str]]]) -> str:
    """As `whole_id`, for what cannot be taken back: raises Ambiguous for a beginning of less than BEGINNING_MIN
    characters, too."""
    whole = await whole_id(given, beginning_with)
    if whole != given and len(given) < BEGINNING_MIN:
        raise Ambiguous(f"{given!r} is too short to decide by; write at least {BEGINNING_MIN} characters of the id")
    return whole


def as_given(given: str) -> str:
    """What was given as an id, for an error: quoted, and cut where it is longer than any id."""
    return repr(given if len(given) <= _SHOWN_MAX else given[: _SHOWN_MAX - 1] + "…")
