"""What an owner or a producer asks of the store: one value for each operation.

An operation is atomic: all of it is written, or nothing. See `port` for what each demands and answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Any

from insika.clock import DUE_NOW
from insika.messages import NO_USAGE, Message, Usage
from insika.storage.rows import ApprovalDecision, CallState, TurnState


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof of ownership. Every fenced operation first updates the session row by these two."""

    session_id: int
    lease_id: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the owner has looked at: `mail` and `urgent` are the session row's counters as it last loaded them."""

    mail: int
    urgent: int


@dataclass(frozen=True, slots=True)
class ModelCallKey:
    """Names one attempt at a model. `purpose` is answer, synthesis, classify or moderate."""

    step: int
    attempt: int
    purpose: str
    model: str


@dataclass(frozen=True, slots=True)
class SettledModelCall:
    key: ModelCallKey
    usage: Usage
    state: str = "measured"


@dataclass(frozen=True, slots=True)
class AcceptJob:
    """A job that was read, ready for its verdict.

    `turn_id` is a fresh uuid, made anew each time the operation is tried; the row decides whether it is used.
    `mode` is what the job or None; where it is None the session's remembered mode counts, else `default_mode`.
    `key` is the digest of agent, channel, recipient and origin: what may be merged or steered together.
    `session_vars` is remembered at first contact; `var_updates` (only thinking, queue_mode) is merged each time.
    """

    tenant: str
    session: str
    job_id: str
    digest: str
    turn_id: str
    text: str
    agent: str
    key: str
    raw: bytes
    mode: str | None = None
    default_mode: str = "followup"
    channel: str | None = None
    recipient: str | None = None
    origin: str = "customer"
    customer: str | None = None
    sent_at: datetime | None = None
    debounce_ms: int = 0
    debounce_max_ms: int = 10_000
    mailbox_max: int = 50
    takes_steers: bool = True
    session_vars: Mapping[str, Any] = field(default_factory=dict)
    var_updates: Mapping[str, Any] = field(default_factory=dict)

    def tried_anew(self, turn_id: str) -> AcceptJob:
        """The same job, for one more try: a turn id that a lost try may have used must not be offered twice."""
        return replace(self, turn_id=turn_id)


@dataclass(frozen=True, slots=True)
class StartTurn:
    """Begin a turn with the waiting rows at `positions` (in order). Their texts become the turn's first messages.

    `merging`: at load, this turn was the one that messages still merged into; then nothing may have arrived since.
    `steerable_key` None: the turn takes no steers. `alerts`: what is raised by its beginning.
    """

    turn_id: str
    positions: tuple[int, ...]
    agent: str
    channel: str | None
    recipient: str | None
    origin: str
    profile_revision: str
    limits: Mapping[str, Any]
    model_call: ModelCallKey
    steerable_key: str | None
    merging: bool = False
    refused: tuple[int, ...] = ()
    load_from: int | None = None
    alerts: tuple[NewAlert, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteTurn:
    """What its present agent's classifier made of a turn, and what asking it cost. Each agent of a turn says so once.

    `route` None: it failed, and the turn is unrouted. `next_call` opens the next request's row; None where the turn is
    redirected, or ends, instead.
    """

    turn_id: str
    route: str | None
    model_call: SettledModelCall
    next_call: ModelCallKey | None = None


@dataclass(frozen=True, slots=True)
class RedirectTurn:
    """Hand a running turn to another agent for its rest. From now on what it asks is booked to that one.

    `depth`: how often it has been handed on with this, from 1; one more than the row says. `model_call` opens the new
    agent's first request's row, a classifier's perhaps. What people may still steer, and where its answer goes, stays.
    """

    turn_id: str
    agent: str
    profile_revision: str
    limits: Mapping[str, Any]
    depth: int
    model_call: ModelCallKey


@dataclass(frozen=True, slots=True)
class AnnouncedCall:
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    side_effect: bool


@dataclass(frozen=True, slots=True)
class AppendStep:
    """The assistant message that opens a batch, its calls, and what the request cost."""

    turn_id: str
    step: int
    message: Message
    calls: tuple[AnnouncedCall, ...]
    model_call: SettledModelCall


@dataclass(frozen=True, slots=True)
class AskApproval:
    """A question to a person about one announced call. `id` was never used before; `arguments_hash` is
    `insika.policy.approvals.arguments_hash` of what would run; `valid_s` seconds from the store's now it expires."""

    id: str
    call_id: str
    tool: str
    arguments_hash: str
    valid_s: float


@dataclass(frozen=True, slots=True)
class CallResult:
    """How one call ended. `state` is done, unknown or not_run. `approval`: what the call's approval becomes with this,
    where it is undecided or was approved and not used (expired or void); None leaves it."""

    index: int
    call_id: str
    state: CallState
    content: str
    is_error: bool = False
    halts: bool = False
    approval: ApprovalDecision | None = None


@dataclass(frozen=True, slots=True)
class Absorbed:
    """A waiting message that enters the running turn, as the model will read it."""

    position: int
    content: str


@dataclass(frozen=True, slots=True)
class CrossBoundary:
    """Close the batch of `step`: all N results in announced order, then the engine's notices, then steered texts.

    `results` holds all N; those whose call is already recorded change nothing there, the others are recorded now.
    `next_call` opens the next request's row. `takes_steers` False: from now on the turn takes no more of them.
    `nothing_unseen`: also demand that no mail at all has arrived since the owner last looked (`Seen.mail`), so that
    a message cannot slip past the boundary at which it could have joined.
    """

    turn_id: str
    step: int
    results: tuple[CallResult, ...]
    next_call: ModelCallKey
    notices: tuple[str, ...] = ()
    absorbed: tuple[Absorbed, ...] = ()
    refused: tuple[int, ...] = ()
    takes_steers: bool = True
    nothing_unseen: bool = False


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """An outbox row to be written with its cause. What bounds its sending is frozen on it.

    `lane` orders deliveries: those of one lane are sent in the order of their positions. Times are in seconds.
    """

    channel: str
    lane: str
    recipient: str
    payload: Mapping[str, Any]
    url: str
    guarantee: str = "at_most_once"
    max_attempts: int = 3
    timeout_s: float = 15.0
    order_wait_s: float = 60.0
    kind: str = "answer"
    unique_key: str | None = None


@dataclass(frozen=True, slots=True)
class NewAlert:
    """Something that operators are told of once, whoever sees it first: written with its cause, and only where `key`
    was never raised before.

    `delivery` is the outbox row by which they are told; None: by no webhook, but that it was raised is kept all the
    same, for whoever raised it first also emits its event. The row belongs to no session and has a lane of its own, so
    that no order holds it up: of `delivery`, `lane` and `unique_key` are not looked at. `kind` tells it from an answer.
    """

    key: str
    delivery: NewDelivery | None = None


@dataclass(frozen=True, slots=True)
class CommitTurn:
    """End the turn with what it has to say.

    `results` closes an open batch first (a halted one). `answer` "" writes no message. `model_call` is None when the
    answer came from no request of its own (a halt). `route` None leaves what the turn's classifier said. `release_due`:
    with nothing unseen and no other mail, also let the lease go, due again then; None keeps it.
    """

    turn_id: str
    step: int
    answer: str
    outcome: str
    deliveries: tuple[NewDelivery, ...]
    results: tuple[CallResult, ...] = ()
    model_call: SettledModelCall | None = None
    synthesized: bool = False
    route: str | None = None
    timing: Mapping[str, Any] = field(default_factory=dict)
    release_due: datetime | None = None


@dataclass(frozen=True, slots=True)
class EndTurn:
    """End the turn without an answer. `results` answers what is left of an open batch, so that the conversation
    stays valid. `control` are the positions of control messages honoured by this. Open model calls are settled as
    estimated by `estimate`."""

    turn_id: str
    step: int
    state: TurnState
    outcome: str
    error: Mapping[str, Any]
    results: tuple[CallResult, ...] = ()
    control: tuple[int, ...] = ()
    estimate: Usage = NO_USAGE
    timing: Mapping[str, Any] = field(default_factory=dict)
    deliveries: tuple[NewDelivery, ...] = ()


@dataclass(frozen=True, slots=True)
class FailQueued:
    """Start and fail a turn in one statement: what the person said enters the log, nothing else happens. `estimate`
    settles what is open of the turn's model calls: a moderator may have been asked before it could begin."""

    turn_id: str
    positions: tuple[int, ...]
    agent: str
    channel: str | None
    recipient: str | None
    origin: str
    error: Mapping[str, Any]
    merging: bool = False
    alerts: tuple[NewAlert, ...] = ()
    estimate: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class FinishAtOnce:
    """Start and complete a turn in one statement, with an answer that no model was asked for.

    As `StartTurn` as to what it takes and refuses, as `CommitTurn` as to what it says; the lease is kept. `estimate`:
    as in `FailQueued`.
    """

    turn_id: str
    positions: tuple[int, ...]
    agent: str
    channel: str | None
    recipient: str | None
    origin: str
    profile_revision: str
    limits: Mapping[str, Any]
    answer: str
    outcome: str
    deliveries: tuple[NewDelivery, ...] = ()
    merging: bool = False
    refused: tuple[int, ...] = ()
    alerts: tuple[NewAlert, ...] = ()
    estimate: Usage = NO_USAGE
    timing: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SettleMail:
    """End waiting rows without running them: refused by a guard, or withdrawn, by a cancel of their queued turn or one
    by one. `control` are the requests that are settled by this; without `positions`, they came too late.

    `turn_id` is the queued turn that ends with them (None: it lives on); `steerable_key` given back to the running
    turn when a refused interrupt had taken it and nothing newer is urgent. `estimate` settles what is open of the model
    calls of a turn that ends so, and `deliveries` are what its people are told (without `turn_id`: none). Its outcome
    is the word of its state.
    """

    positions: tuple[int, ...]
    how: str
    turn_id: str | None
    turn_state: TurnState
    control: tuple[int, ...] = ()
    merging: bool = False
    steerable_key: str | None = None
    estimate: Usage = NO_USAGE
    deliveries: tuple[NewDelivery, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """Let the lease go; the session wants an owner again at `due_at` (NEVER: when mail comes)."""

    due_at: datetime = DUE_NOW


def answering(call: ModelCallKey | None) -> str | None:
    """The model that is to answer a turn with this call. None: it is asked for something else, or there is none."""
    return call.model if call is not None and call.purpose == "answer" else None


def utc_midnights(*starts: datetime) -> None:
    """Raises ValueError unless each of them is the first moment of a day in UTC, as windows of spend begin."""
    for start in starts:
        if start.utcoffset() != timedelta(0) or start.time() != time.min:
            raise ValueError(f"spend is summed up by days in UTC, which begin at midnight; {start} is none")
