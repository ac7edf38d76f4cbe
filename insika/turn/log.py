"""The port through which a running turn writes, and what it hears when it may not.

Whoever implements this holds the session's lease and fences every write with it. The loop never asks whether it owns
the session: it is told, by one of the two exceptions here, and must not catch them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from insika.storage.operations import AppendStep, CallResult, CommitTurn, CrossBoundary, EndTurn, ModelCallKey
from insika.storage.rows import Mail


class Superseded(Exception):  # noqa: N818 - it is news, not an error
    """What this turn remembers is no longer how things stand: urgent mail, or a write that came first. Throw the
    memory away and load again; the lease may well be held still."""


class TurnLog(Protocol):
    """Every operation raises `Superseded` or `insika.errors.LeaseLost` instead of writing when it may not write."""

    def may_start(self) -> None:
        """Called right before each start in the world: a model request, a tool. Raises LeaseLost once the owner can
        know that its lease may have ended (protocol: local deadline)."""
        ...

    def waiting(self) -> Sequence[Mail]:
        """The rows that wait to join this turn, as of the last look, oldest first."""
        ...

    async def look_again(self) -> None:
        """Read the mailbox anew. Raises Superseded when something in it cuts this turn."""
        ...

    async def retry_model(self, call: ModelCallKey) -> None: ...

    async def append(self, step: AppendStep) -> None: ...

    async def start_call(self, step: int, index: int) -> None: ...

    async def finish_call(self, step: int, result: CallResult) -> None: ...

    async def cross_boundary(self, boundary: CrossBoundary) -> bool:
        """False: mail has arrived unseen (only with `nothing_unseen`); look again and decide anew."""
        ...

    async def commit(self, turn: CommitTurn) -> None: ...

    async def end(self, turn: EndTurn) -> None: ...
