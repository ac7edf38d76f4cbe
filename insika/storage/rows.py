"""What the store gives back: rows as values. Nothing here can be written to; operations are in `operations`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from insika.messages import Message, Usage


class Verdict(enum.StrEnum):
    """What became of a job at the moment it was accepted. `control` is the verdict of a control message."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    MERGED = "merged"
    STEERED = "steered"
    INTERRUPTING = "interrupting"
    REJECTED = "rejected"
    CONTROL = "control"


class TurnState(enum.StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"


TERMINAL = frozenset({TurnState.COMPLETED, TurnState.FAILED, TurnState.CANCELLED, TurnState.REFUSED})


class CallState(enum.StrEnum):
    """`unknown`: it was started, and nobody can say how it ended. `not_run`: it never started and never will."""

    ANNOUNCED = "announced"
    STARTED = "started"
    DONE = "done"
    UNKNOWN = "unknown"
    NOT_RUN = "not_run"


class Ended(enum.StrEnum):
    """How a mailbox row ended: consumed by a turn, refused by a guard, withdrawn, or honoured as a control."""

    TURN = "turn"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    CONTROL = "control"


class ApprovalDecision(enum.StrEnum):
    """What became of an approval. `expired`: its time ran out, also after it was approved and before its call began.
    `void`: its turn ended, or its call was denied, before it could be used."""

    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The verdict of a job, and where it went.

    For `duplicate`, `turn_id` and `turn_state` are the first one's, whatever became of it. For `rejected`, `reason`
    says why and `field` names the field at fault (`id` for the same id with other text; None when the mailbox is
    full), and it is kept as number `rejected_job`. `position` is the job's place in its session's order of arrival.
    """

    verdict: Verdict
    session_id: int
    turn_id: str | None = None
    position: int | None = None
    turn_state: TurnState | None = None
    reason: str | None = None
    field: str | None = None
    rejected_job: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease just taken. `deaths` counts the owners that died since this session's turn last began or ended."""

    session_id: int
    lease_id: str
    epoch: int
    deaths: int


@dataclass(frozen=True, slots=True)
class SessionRow:
    id: int
    tenant: str
    name: str
    epoch: int
    lease_id: str | None
    lease_until: datetime | None
    due_at: datetime
    paused: bool
    mail_seq: int
    urgent_seq: int
    log_seq: int
    waiting: int
    open_calls: int
    turn_id: str | None
    turn_key: str | None
    merge_turn: str | None
    merge_key: str | None
    deaths: int
    load_from: int
    vars: Mapping[str, Any] = field(default_factory=dict)
    parked_ms: int = 0
    """For how long the running turn has had no owner because it was let go on purpose: it waited for a person, for an
    operator's hold to end, or for another worker. None of that is the turn's own time."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One mailbox row. `cuts` is the turn that an interrupt or a cancel was aimed at when it was accepted; `withdraws`
    the position of the message that a control message asks to take back."""

    position: int
    job_id: str
    mode: str
    key: str | None
    text: str
    at: datetime
    verdict: Verdict
    turn_id: str | None
    cuts: str | None
    debounce_ms: int
    debounce_max_ms: int
    agent: str
    channel: str | None
    recipient: str | None
    origin: str
    ended: Ended | None = None
    consumed_by: str | None = None
    customer: str | None = None
    withdraws: int | None = None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn. `profile_revision` and `limits` are frozen when it starts (None before); `error` is the contract's
    error object.

    `agent` is the one that has it now, after `depth` times of being handed on. `routes` is what each of its agents has
    made of it so far, in that order, None for one whose classifier failed: the present one has said so already when
    there are more than `depth`. `route` is the first of them that is one, or what the commit said. `model` is the
    reference of the model that answered last, before that the one that is to answer; None until there is one.
    """

    id: str
    session_id: int
    position: int
    state: TurnState
    outcome: str | None
    attempt: int
    agent: str
    channel: str | None
    recipient: str | None
    origin: str
    profile_revision: str | None
    limits: Mapping[str, Any] | None
    synthesized: bool
    route: str | None
    timing: Mapping[str, Any]
    error: Mapping[str, Any] | None
    started_seq: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    model: str | None = None
    depth: int = 0
    routes: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class CallRow:
    """One announced tool call of the running turn. `index` counts from 0 in announced order within its step."""

    step: int
    index: int
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    side_effect: bool
    state: CallState
    result: str | None = None
    is_error: bool = False
    halts: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One question to a person: may this call run, with exactly these arguments, until `expires_at`? `decision` None:
    nobody has said, though its time may be over."""

    id: str
    turn_id: str
    session_id: int
    call_id: str
    tool: str
    arguments_hash: str
    asked_at: datetime
    expires_at: datetime
    decision: ApprovalDecision | None = None
    decided_by: str | None = None
    reason: str | None = None
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided of an approval. `won` False: it had been decided before, or its time was over (then it is
    `expired` from now on), or its turn has ended; the row says which."""

    approval: ApprovalRow
    won: bool


@dataclass(frozen=True, slots=True)
class ApprovalSummary:
    """An approval for people, with what they must see to decide. `open`: a decision would still count."""

    approval: ApprovalRow
    tenant: str
    session: str
    agent: str
    arguments: Mapping[str, Any]
    open: bool


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A request to take a message back. `control` is the request's own position; None: the message had ended already,
    and `ended` says how. The owner ends the message and the request in one write: once the request has ended, the
    message's row tells whether it came in time (`withdrawn`) or not."""

    session_id: int
    position: int
    control: int | None
    ended: Ended | None = None
    consumed_by: str | None = None


@dataclass(frozen=True, slots=True)
class ModelCallRow:
    """One attempt at a model. `state` is open, measured or estimated. `agent` is the one it is booked to."""

    turn_id: str
    step: int
    attempt: int
    purpose: str
    model: str
    state: str
    usage: Usage
    agent: str = ""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One message of the conversation, with its place: `seq` orders the session, `step` the turn (0 is what the
    person said to open it). `position` is the mailbox row whose text it is; None for what engine and model said."""

    seq: int
    turn_id: str
    epoch: int
    step: int
    message: Message
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything an owner needs to go on, from one snapshot taken while it held the lease.

    `mail` holds the rows that have not ended, by position. `turn`, `calls`, `model_calls` and `approvals` belong to the
    session's running turn; `turn` is None when there is none. `log` begins after the sequence number that the caller
    said it already had; only the running turn's messages come with what their provider wants back verbatim.
    """

    session: SessionRow
    now: datetime
    mail: tuple[Mail, ...]
    turn: TurnRow | None
    calls: tuple[CallRow, ...]
    model_calls: tuple[ModelCallRow, ...]
    log: tuple[LogEntry, ...]
    approvals: tuple[ApprovalRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn has begun, or begun and ended at once. `log_seq` is the session's log sequence after what was written of
    it. `raised`: the keys of those alerts that nobody had raised before; each is this caller's to tell of."""

    log_seq: int
    raised: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Spend:
    """Tokens (input, output, read from a cache and written to one) of settled model calls that began in a day in UTC
    or later, and in a month or later."""

    day: int = 0
    month: int = 0


@dataclass(frozen=True, slots=True)
class CallStart:
    """What became of the attempt to mark a call as started. `held` False: the lease is lost, or something urgent is
    unseen. `moved` False with `held` True: the call was not in a state from which it may start."""

    held: bool
    moved: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """The turn has ended. `released`: the lease went with it."""

    released: bool


@dataclass(frozen=True, slots=True)
class SessionSummary:
    tenant: str
    name: str
    waiting: int
    turn_id: str | None
    turn_state: TurnState | None
    paused: bool
    due_at: datetime
    owned: bool
    messages: int


@dataclass(frozen=True, slots=True)
class RejectedJob:
    """A job that could not be read or was refused, as it came."""

    id: int
    at: datetime
    source: str
    raw: bytes
    error: Mapping[str, Any]
    requeued_at: datetime | None


@dataclass(frozen=True, slots=True)
class Revision:
    """One immutable version of a profile, or of the platform's settings."""

    revision: str
    name: str
    data: Mapping[str, Any]
    source: str
    at: datetime
