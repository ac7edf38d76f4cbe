"""Ids as people type them: whole, or as much of the beginning as no other id has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from actors.cli.refusals import Ambiguous

CANDIDATES = 5


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
        raise Ambiguous(f"{given!r} may be any of: {named}")
    return found[0]
