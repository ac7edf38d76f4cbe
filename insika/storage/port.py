"""The store's port: every operation that touches a session, a job, or configuration, each atomic.

Who owns what
- Producers may only `accept`, `cancel` and `withdraw`, operators besides `decide` and `set_paused`: they count the
  session's mail up under its row's lock, and pull its due time earlier. Never later. What they do is therefore in one
  order with everything else, and an owner that lets go, suspends or crosses a boundary has seen it.
- One owner at a time holds a session, by `claim`. Every operation that takes a `Fence` first updates the session row
  by id and lease, and writes nothing when that finds no row; it then answers None or False. The owner must throw its
  memory away and `load` again: it was urgent mail, a merge, its own earlier write, or the lease is lost.
- Operations that take `Seen` demand besides that nothing urgent is unseen (`urgent`), and `release` and the folded
  release of `commit` that nothing at all is (`mail`). So an interrupt that was acknowledged is a fact.
- Time is the store's own `insika_now()`, never a caller's.

What may fail in between: a caller may not learn whether its write happened (StoreUnavailable). It then loads again
with the lease it holds; the log says what happened. `accept` is repeated under the same job id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from insika.errors import InsikaError
from insika.messages import Usage
from insika.storage.operations import (
    AcceptJob,
    AppendStep,
    AskApproval,
    CallResult,
    CommitTurn,
    CrossBoundary,
    EndTurn,
    FailQueued,
    Fence,
    FinishAtOnce,
    ModelCallKey,
    NewAlert,
    RedirectTurn,
    Release,
    RouteTurn,
    Seen,
    SettledModelCall,
    SettleMail,
    StartTurn,
)
from insika.storage.rows import (
    Accepted,
    ApprovalDecision,
    ApprovalSummary,
    Begun,
    CallRow,
    CallStart,
    Claim,
    Committed,
    Decided,
    Loaded,
    LogEntry,
    Mail,
    ModelCallRow,
    RejectedJob,
    Revision,
    SessionRow,
    SessionSummary,
    Spend,
    TurnRow,
    Withdrawal,
)

NOTHING_OF_THE_LOG = 2**62
"""A sequence number behind every message: for whoever loads and needs none."""


class StoreUnavailable(InsikaError):
    """The store could not be reached, or did not say whether it wrote. Whoever asked must ask again."""

    type = "store_unavailable"


class StoreBusy(StoreUnavailable):
    """This process asks more at once than it has connections for, and this was not even sent. Nothing was written, and
    the store itself may be well: this tells of no outage."""


class StoreRefused(InsikaError):
    """A constraint of the store stopped a write that no correct caller makes. Nothing of that operation was written;
    asking again cannot help."""

    type = "internal_error"


class IntakeStore(Protocol):
    """What producers and their doors do."""

    async def accept(self, job: AcceptJob) -> Accepted:
        """Give the job its verdict and, unless it is a duplicate or rejected, its place. A job rejected here is also
        kept in rejected_jobs; it takes no position and does not use up its id."""
        ...

    async def accept_all(self, jobs: Sequence[AcceptJob]) -> Sequence[Accepted]:
        """The same as `accept` of each, in this order, for less. Where it raises nobody knows what became of any of
        them; each may then be asked about by itself, under its own id."""
        ...

    async def cancel(self, turn_id: str, *, request_id: str) -> Accepted | None:
        """A control message aimed at one turn, queued or running. None: there is no such turn, or it has ended."""
        ...

    async def withdraw(self, session: str, job_id: str, *, request_id: str, tenant: str = "") -> Withdrawal | None:
        """A control message that asks the owner to take one waiting message back, by the id its producer gave it. It
        is no reason to cut or delay a turn: it raises no `urgent_seq`. The same `request_id` again answers the same
        and writes nothing. None: no such message is known."""
        ...

    async def decide(
        self, approval_id: str, decision: ApprovalDecision, *, by: str, reason: str = ""
    ) -> Decided | None:
        """A person's word on an approval: approved or rejected. Counts only once, before it expires, while its turn
        runs or waits; then its session is due now. Expiry is by the store's time: what is late becomes `expired`, and
        that too makes the session due. None: there is no such approval."""
        ...

    async def set_paused(self, name: str, paused: bool, *, tenant: str = "") -> bool:
        """An operator's hold. While it lasts no turn starts, an owner lets go at its next boundary, and nobody claims
        the session, but to settle control messages. Messages are accepted all the same. It counts the session's mail
        up, so that no boundary, release or suspension passes it unseen; saying it again changes nothing. False: there
        is no such session."""
        ...

    async def reject(self, raw: bytes, error: Mapping[str, Any], source: str) -> int:
        """Keep a job that could not be read. Answers its number."""
        ...

    async def rejected_jobs(self, limit: int = 100) -> Sequence[RejectedJob]: ...

    async def rejected_job(self, number: int) -> RejectedJob | None: ...

    async def mark_requeued(self, number: int) -> bool: ...


class OwnerStore(Protocol):
    """What the one owner of a session does, and what leads to owning it."""

    async def claim(
        self,
        session_id: int,
        lease_s: float,
        *,
        take_expired: bool = True,
        take_suspects: bool = True,
        lease_id: str = "",
    ) -> Claim | None:
        """Take the lease of a session that is due, free or (with `take_expired`) expired, and not paused, or paused
        with control messages to settle. Taking over an expired one counts a death; from the second on the session is a
        suspect and only taken with `take_suspects`. Leaves the due time where it is. Ends the time for which the turn
        was parked.

        `lease_id` names the lease, and was never used before; left out, one is made up. Whoever gave it and got no
        answer claims again by the same: what is his already is extended, and neither a death nor another claim."""
        ...

    async def load(self, fence: Fence, *, log_after: int = 0) -> Loaded | None:
        """What an owner goes on from. What a provider wants back verbatim is sent again only while its turn runs, so
        it comes with the messages of the running turn alone; `ReadStore.messages` gives all of it."""
        ...

    async def start(self, fence: Fence, seen: Seen, turn: StartTurn) -> Begun | None:
        """Begin a turn; there must be none, and the session not be paused."""
        ...

    async def route_turn(self, fence: Fence, seen: Seen, turn: RouteTurn) -> bool:
        """Keep what the turn's present agent's classifier said, once, and book what it cost; no call may be open.
        False also when that agent has routed the turn already."""
        ...

    async def redirect_turn(self, fence: Fence, seen: Seen, turn: RedirectTurn) -> bool:
        """The turn is another agent's from now on; no call may be open. False also when it has been handed on
        otherwise than `depth` says."""
        ...

    async def append(self, fence: Fence, step: AppendStep) -> int | None:
        """Write an assistant message with calls; none may be open. Answers its log sequence."""
        ...

    async def open_model_call(
        self, fence: Fence, seen: Seen, turn_id: str, step: int, *, purpose: str, model: str, estimate: Usage
    ) -> ModelCallKey | None:
        """Write that a moderator, or a classifier, is about to be asked on behalf of a turn of this session, whatever
        its state: text is screened before its turn begins, and that of a released steer before it has one (then it is
        the turn it was said to). Answers the row's key, with the number of the next attempt: earlier ones of the same
        step and purpose that are still open are somebody's who died, and settled as estimated by `estimate`. None: the
        fence did not hold, something urgent is unseen, or the session has no such turn."""
        ...

    async def settle_model_call(self, turn_id: str, call: SettledModelCall) -> bool:
        """Book what a model call cost, by its key alone: what was spent was spent, whoever holds the lease by now, also
        when its turn has ended. As measured once, over an estimate too; as estimated only where it is open. False:
        nothing was written."""
        ...

    async def retry_model(self, fence: Fence, seen: Seen, turn_id: str, call: ModelCallKey, *, estimate: Usage) -> bool:
        """Open another attempt's row; attempts of this turn still open are settled as estimated by `estimate`."""
        ...

    async def start_call(
        self, fence: Fence, seen: Seen, turn_id: str, step: int, index: int, *, arguments_hash: str | None = None
    ) -> CallStart:
        """Write that a call is about to run. Afterwards it may have run, whatever happens. With `arguments_hash` it
        moves only when its approval was given, for these arguments, and has not expired; a call about which a person
        was asked never moves without."""
        ...

    async def ask_approvals(self, fence: Fence, seen: Seen, turn_id: str, asks: Sequence[AskApproval]) -> bool:
        """Ask a person about announced calls of the open batch. A call about which somebody was asked before is left
        as it is. False: the fence did not hold, something urgent is unseen, or a call is not an announced one."""
        ...

    async def suspend(self, fence: Fence, seen: Seen, turn_id: str) -> bool:
        """Let the lease go while the turn waits for a person: due when the first of its undecided approvals expires.
        Demands that no mail is unseen, that an approval is undecided, and that no call is in state started. The batch
        stays open, and the turn's time stands still."""
        ...

    async def resume_turn(self, fence: Fence, seen: Seen, turn_id: str) -> bool:
        """A turn that waited runs again, as its next attempt. On one that runs already this changes nothing."""
        ...

    async def finish_call(self, fence: Fence, turn_id: str, step: int, result: CallResult) -> CallStart:
        """Record a result as soon as it exists. It becomes a message only at the boundary."""
        ...

    async def cross_boundary(self, fence: Fence, seen: Seen, boundary: CrossBoundary) -> int | None:
        """Answers the log sequence after the last message written."""
        ...

    async def commit(self, fence: Fence, seen: Seen, turn: CommitTurn) -> Committed | None: ...

    async def end(self, fence: Fence, turn: EndTurn) -> bool: ...

    async def fail_queued(self, fence: Fence, seen: Seen, turn: FailQueued) -> Begun | None: ...

    async def finish_at_once(self, fence: Fence, seen: Seen, turn: FinishAtOnce) -> Begun | None:
        """Begin and complete a turn; demands what `start` does. None runs afterwards."""
        ...

    async def settle_mail(self, fence: Fence, seen: Seen, mail: SettleMail) -> bool: ...

    async def confirm(self, fence: Fence) -> bool:
        """Write nothing new under the lease, durably: the store takes writes again, and this is still the owner's. For
        an owner that was left without an answer, before it does anything a second time."""
        ...

    async def release(self, fence: Fence, seen: Seen, release: Release) -> bool: ...

    async def release_for_drain(self, fence: Fence, *, unknown_result: str, estimate: Usage) -> bool:
        """Let go in the middle of a turn, due now and whatever has arrived: calls that are started become unknown,
        open model calls estimated. Counts no death, and parks the turn. Also how an owner obeys an operator's hold."""
        ...

    async def due_sessions(self, limit: int = 500) -> Sequence[int]:
        """Sessions that are due and unowned, oldest first, each at most once in 5 s, doubling up to 60 s."""
        ...

    async def wake_due(self) -> int:
        """Forget that due, unowned sessions were nudged, so that the next sweep of any process finds them. Answers
        how many there are."""
        ...

    async def next_due_at(self) -> datetime:
        """When the next session or delivery will be due; NEVER if none. For a clock to sleep until."""
        ...


class LeaseRenewal(Protocol):
    """Renewal has its own connection and is called from its own thread, so that a busy loop cannot starve it."""

    def renew(self, fences: Sequence[Fence], lease_s: float) -> Mapping[str, int]:
        """Extend these leases. Answers those that are still held, by lease id, each with its session's `urgent_seq`,
        so that an owner learns of an interrupt or a cancel without asking; one that is locked or lost is missing.
        Raises StoreUnavailable; then none of them was extended, as far as anybody knows."""
        ...

    def close(self) -> None: ...


class ConfigurationStore(Protocol):
    """Profiles and settings as immutable revisions; the newest applied one is current."""

    async def apply_profile(self, name: str, revision: str, data: Mapping[str, Any], source: str) -> bool:
        """True when this made a difference. `source` is "file:<digest>" or "operator": what an operator changed later
        wins over a file until the file changes."""
        ...

    async def current_profiles(self) -> Sequence[Revision]: ...

    async def profile(self, revision: str) -> Revision | None: ...

    async def apply_settings(self, revision: str, data: Mapping[str, Any], source: str) -> bool: ...

    async def current_settings(self) -> Revision | None: ...


class SpendStore(Protocol):
    """What was spent. It is the sum of the rows of `model_calls`, and no counter is kept on a turn's path: the clock
    adds rows that are settled to the sum of their day, and marks each as added in the same statement."""

    async def spend(self, tenant: str, agent: str, day_start: datetime, month_start: datetime) -> Spend:
        """What one agent's settled model calls of one tenant cost, measured or estimated, those that began at
        `day_start` or later, and at `month_start` or later. A call counts where it began, whenever it is settled.

        Costs two ranges of an index: a row for each day of the month, and one for each model call of this agent that
        has not been added up yet, which are those of the last minute where a clock runs. Raises ValueError unless both
        are midnights in UTC."""
        ...

    async def roll_up_spend(self, until: datetime, *, limit: int = 1_000) -> int:
        """Add settled model calls that began before `until` to the sums of their days, `limit` of them at most, and
        answer how many: fewer than `limit` were all there are. It changes no sum that `spend` answers.

        Each row is added once, whoever else does the same at this moment. What is measured only after its estimate was
        added corrects the sum with it."""
        ...


class AlertStore(Protocol):
    """Alerts whose cause is no write of this store. The others go with their cause."""

    async def raise_alerts(self, alerts: Sequence[NewAlert]) -> frozenset[str]:
        """Write those whose keys were never raised before. Answers those keys: their events are this caller's to
        emit."""
        ...


class TurnStore(OwnerStore, AlertStore, Protocol):
    """What running a turn needs."""


class ReadStore(Protocol):
    """What people look at. Reads only; nothing here decides anything."""

    async def sessions(self, limit: int = 100, *, tenant: str | None = None) -> Sequence[SessionSummary]: ...

    async def session(self, name: str, *, tenant: str = "") -> SessionRow | None: ...

    async def session_by_id(self, session_id: int) -> SessionRow | None: ...

    async def messages(self, session_id: int, *, after: int = 0) -> Sequence[LogEntry]:
        """The conversation in order, from behind the sequence number `after`."""
        ...

    async def mail(self, session_id: int) -> Sequence[Mail]:
        """Every message that was accepted, ended or not, by position."""
        ...

    async def turn(self, turn_id: str) -> TurnRow | None: ...

    async def turns(self, session_id: int) -> Sequence[TurnRow]: ...

    async def latest_turns(self, limit: int = 100, *, session_id: int | None = None) -> Sequence[TurnRow]:
        """The newest first; of one session, or of all."""
        ...

    async def turn_ids(self, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin with `prefix`, in their order."""
        ...

    async def calls(self, turn_id: str) -> Sequence[CallRow]: ...

    async def model_calls(self, turn_id: str) -> Sequence[ModelCallRow]: ...

    async def approvals(self, limit: int = 100, *, open_only: bool = False) -> Sequence[ApprovalSummary]:
        """The oldest open ones first, then the others, newest first; `open_only`: without the others."""
        ...

    async def approval(self, approval_id: str) -> ApprovalSummary | None: ...

    async def approval_ids(self, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin with `prefix`, in their order."""
        ...


class Store(IntakeStore, OwnerStore, ConfigurationStore, ReadStore, SpendStore, AlertStore, Protocol):
    """All of it. Callers should ask for the narrow one they use."""

    def renewal(self) -> LeaseRenewal: ...

    async def close(self) -> None: ...
