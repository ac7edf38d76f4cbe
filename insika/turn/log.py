"""The port through which a running turn writes, and what it hears when it may not.

Whoever implements this holds the session's lease and fences every write with it. The loop never asks whether it owns
the session: it is told, by one of two exceptions, `Superseded` and `insika.errors.LeaseLost`, and must not catch them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from insika.errors import InsikaError
from insika.messages import NO_USAGE, Usage
from insika.storage.operations import AppendStep, AskApproval, CallResult, CrossBoundary, ModelCallKey, SettledModelCall
from insika.storage.rows import Mail


class Superseded(Exception):
    """What this turn remembers is no longer how things stand: urgent mail, or a write that came first. Throw the
    memory away and load again; the lease may well be held still."""


class Suspended(Exception):
    """The turn waits for a person, and its session has been let go. Whoever decides wakes it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What ends a turn well: `agent` answers, on the turn's `route`. `content` may be empty: then nothing is said and
    nothing delivered. `results` closes a halted batch; `model_call` is None when no request of its own made the answer;
    `usage` is the whole turn's. `cut_off`: the model's output limit ended the answer, not the model. `model` is the
    reference of the one that spoke last, "" where none did; `fallback`: it is not the agent's own."""

    step: int
    content: str
    outcome: str
    results: tuple[CallResult, ...] = ()
    model_call: SettledModelCall | None = None
    synthesized: bool = False
    cut_off: bool = False
    model: str = ""
    fallback: bool = False
    usage: Usage = NO_USAGE
    timing: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    route: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """What ends a turn with nothing to deliver. `estimate` is what a request that is still open is booked at; `usage`
    what the turn's other requests have cost."""

    step: int
    error: InsikaError
    results: tuple[CallResult, ...] = ()
    estimate: Usage = NO_USAGE
    usage: Usage = NO_USAGE
    timing: Mapping[str, Any] = field(default_factory=dict)
    route: str | None = None


class TurnLog(Protocol):
    """Every operation raises `Superseded` or `LeaseLost` instead of writing when it may not write."""

    def may_start(self) -> None:
        """Called right before each start in the world: a model request, a tool. Raises LeaseLost once the owner can
        know that its lease may have ended."""
        ...

    def waiting(self) -> Sequence[Mail]:
        """The rows that wait to join this turn, as of the last look, oldest first."""
        ...

    async def look_again(self) -> None:
        """Read the mailbox anew. Raises Superseded when something in it cuts this turn."""
        ...

    async def retry_model(self, call: ModelCallKey, estimate: Usage) -> None:
        """Open another attempt's row; what was open before is booked at `estimate`."""
        ...

    async def append(self, step: AppendStep) -> int: ...

    async def start_call(self, step: int, index: int, *, arguments_hash: str | None = None) -> None:
        """`arguments_hash`: of a call that a person has approved. Raises Superseded also when that has expired."""
        ...

    async def ask_approvals(self, asks: Sequence[AskApproval]) -> None:
        """Ask a person about calls of the open batch."""
        ...

    async def suspend(self) -> None:
        """Every call that can run without a person has its result recorded: let the session go. Returns once it is
        let go, Superseded when something has arrived meanwhile, a decision perhaps."""
        ...

    async def finish_call(self, step: int, result: CallResult) -> None: ...

    async def cross_boundary(self, boundary: CrossBoundary) -> int | None:
        """None: mail has arrived unseen (only with `nothing_unseen`), or the input guard has refused a text that was to
        join, and it has ended; look again and decide anew."""
        ...

    async def commit(self, answer: Answer) -> None: ...

    async def fail(self, failure: Failure) -> None: ...
