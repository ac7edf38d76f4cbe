"""What people write passes here before it may enter the conversation, by whatever door it came.

The owner asks with exactly the rows that it is about to take, and again for those it takes at a boundary: so a text
that stands among others, or that was steered in, is looked at like any other. A refused row ends in the mailbox and
never reaches the log; a refused interrupt does not interrupt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from insika.storage.rows import Mail


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a guard refused a text: names of the guard's own, never the text. `reason` says of what kind it is, `pattern`
    ("" for none) what was found. `reply` ("" for none) is what the person is to read instead of an answer."""

    reason: str
    pattern: str = ""
    reply: str = ""


class InputGuard(Protocol):
    async def refusals(self, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        """Those of the rows that must not be said, by position. The same row may be asked about more than once, and
        gets the same answer while its turn's rules stay the same."""
        ...


class NoInputGuard:
    async def refusals(self, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        return {}
