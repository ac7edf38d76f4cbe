"""Whether the work goes on: sessions nobody comes for, deliveries that do not leave, and what waits for a person."""

from __future__ import annotations

from collections.abc import Iterator

from actors.doctor.finding import Finding, fail, ok, warn
from insika.storage.inspection import Contents, DeliveryFacts, SessionFacts
from insika.text import counted

SESSIONS = "sessions"
DELIVERIES = "deliveries"
JOBS = "jobs"
LATE_S = 60.0
"""Longer than any hint is held back, and than a lease is over before somebody looks."""


def judged(contents: Contents) -> Iterator[Finding]:
    unread = "could not be counted within the time there is: there are many rows."
    if contents.sessions is None:
        yield warn(SESSIONS, f"What waits {unread}", "Ask again when the database is less busy.")
    else:
        yield from _sessions(contents.sessions)
    if contents.deliveries is None:
        yield warn(DELIVERIES, f"Deliveries {unread}", "Ask again when the database is less busy.")
    else:
        yield from _deliveries(contents.deliveries)
    if contents.rejected:
        what = f"Jobs that could not be accepted, and were not handed in again: {contents.rejected}."
        yield warn(JOBS, what, "See why: insika rejected list")


def _sessions(sessions: SessionFacts) -> Iterator[Finding]:
    start = "Start a worker, or see in the workers' logs why none has room."
    if sessions.expired:
        what = f"Sessions whose worker is gone for a minute, and which nobody has taken over: {sessions.expired}."
        yield fail(SESSIONS, what, start)
    if sessions.overdue:
        since = f"the first waits since {_span(sessions.overdue_s)}"
        yield fail(SESSIONS, f"Sessions that are due and nobody's: {sessions.overdue}; {since}.", start)
    if sessions.suspects:
        what = f"Sessions that outlived two workers, and end their turn at the next death: {sessions.suspects}."
        yield warn(SESSIONS, what, "See in the workers' logs what its tools do: memory, os._exit, a blocked loop.")
    if sessions.held:
        what = f"Sessions with messages that an operator holds: {sessions.held}."
        yield warn(SESSIONS, what, "Let them go on when it is time: insika sessions resume SESSION")
    yield ok(SESSIONS, f"{sessions.owned} at work, {counted(sessions.waiting, 'message')} waiting for a turn.")


def _deliveries(deliveries: DeliveryFacts) -> Iterator[Finding]:
    if deliveries.overdue:
        since = f"the first since {_span(deliveries.overdue_s)}"
        what = f"Deliveries that are due and not sent: {deliveries.overdue}, {since}."
        do = "See that `insika outbox` runs; an earlier one of the same session holds those behind it."
        yield warn(DELIVERIES, what, do)
    if deliveries.abandoned:
        what = f"Deliveries whose sender is gone, and which nobody has settled: {deliveries.abandoned}."
        yield fail(DELIVERIES, what, "Start `insika outbox`, or run: insika recover")
    if deliveries.uncertain:
        what = f"Deliveries that may or may not have arrived: {deliveries.uncertain}."
        yield warn(DELIVERIES, what, "Decide: insika outbox list --state uncertain, then insika outbox resend ID")
    if deliveries.failed:
        what = f"Deliveries that failed for good: {deliveries.failed}."
        yield warn(DELIVERIES, what, "See why: insika outbox list --state failed; then insika outbox resend ID")
    yield ok(DELIVERIES, f"{deliveries.pending} pending.")


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7_200 else f"{seconds / 3_600:.0f} hours"
