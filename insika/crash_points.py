"""The instants at which a process may die, named once, so that the tests can die at each of them.

Production passes `no_crash`, which does nothing. A test passes something that raises, or kills its own process, at
one named point. A new step that writes or reaches out into the world gets its points here.
"""

from __future__ import annotations

import enum
from typing import Protocol


class CrashPoint(enum.StrEnum):
    ACCEPTED = "accepted"  # the job is in the mailbox; the producer has not heard
    CLAIMED = "claimed"  # the lease is ours; nothing is loaded
    LOADED = "loaded"
    TURN_STARTED = "turn_started"  # the user messages are in the log; the model was not asked
    ROUTE_FOUND = "route_found"  # the classifier has answered, or failed; nothing of it is written
    TURN_ROUTED = "turn_routed"  # the route is written, and what it asks for not done
    TURN_REDIRECTED = "turn_redirected"  # another agent has the turn, and nobody was asked
    MODEL_ANSWERED = "model_answered"  # paid for, not written
    STEP_APPENDED = "step_appended"  # calls announced, none started
    CALL_STARTED = "call_started"  # written as started, not run
    CALL_RAN = "call_ran"  # ran, its result not written
    CALL_RECORDED = "call_recorded"
    BATCH_RAN = "batch_ran"  # every result is known; the boundary is not written
    BOUNDARY_CROSSED = "boundary_crossed"
    APPROVAL_ASKED = "approval_asked"  # a person can decide; other calls of the batch may not have run
    TURN_SUSPENDED = "turn_suspended"  # nobody owns the session until somebody decides
    WAITING_RESUMED = "waiting_resumed"  # the turn runs again; what was decided has not been acted on
    TURN_HELD = "turn_held"  # let go in the middle, because an operator holds the session
    MAIL_SETTLED = "mail_settled"  # messages were taken back, withdrawn or refused, and nobody has been told
    ANSWER_READY = "answer_ready"  # the last answer is known, not committed
    COMMITTED = "committed"  # answer and outbox rows are written, the lease may still be held
    TURN_ENDED = "turn_ended"  # failed or cancelled, lease still held
    RELEASED = "released"
    DELIVERY_CLAIMED = "delivery_claimed"  # nothing was sent
    DELIVERY_SENT = "delivery_sent"  # the receiver has answered; the row does not say so
    DELIVERY_SETTLED = "delivery_settled"


class Crash(Protocol):
    def __call__(self, point: CrashPoint, /) -> None: ...


def no_crash(point: CrashPoint, /) -> None:
    return None
