"""Whether a turn that is about to begin may ask a model: the edge limits, then the calendar budgets. Nothing is written
here; what the answer leads to is written with the turn's beginning. The user's own policies come after them, elsewhere.

Asked once a turn, of the agent that has it: a turn that is taken up again was admitted when it began. One that a guard
refuses is only counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from actors.configuration import Configuration
from insika.agents.budget import Budget
from insika.agents.profile import Profile
from insika.choices import Origin
from insika.errors import BudgetExceeded, InsikaError
from insika.events import EventType
from insika.limits.alerts import About, new_alert
from insika.limits.budgets import Calendar, Crossing, Exhausted, Spent, has_cap, judge
from insika.limits.edge import breach
from insika.limits.windows import EdgeWindows, WindowReading
from insika.storage.operations import NewAlert
from insika.storage.port import SpendStore


@dataclass(frozen=True, slots=True)
class Warnings:
    """What is raised with the turn's beginning: each alert, and by its key the data of the event that whoever raises
    it first also emits."""

    alerts: tuple[NewAlert, ...] = ()
    events: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


NO_WARNINGS = Warnings()


@dataclass(frozen=True, slots=True)
class Admitted:
    """It may. `past_budget`: its budget is soft and used up, which the model is told in each request."""

    warnings: Warnings = NO_WARNINGS
    past_budget: bool = False


@dataclass(frozen=True, slots=True)
class Limited:
    """It may not, and is answered with `response`. `breached` is what the event `limit_breached` says."""

    response: str
    breached: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """It may not, and fails with `error`."""

    error: InsikaError
    warnings: Warnings


Admission = Admitted | Limited | Refused


@dataclass(frozen=True, slots=True)
class Applicant:
    """The turn that wants to begin; `now` is the store's time. `texts` are what was said, oldest first; the rest is of
    the message that opens it."""

    tenant: str
    session: str
    turn_id: str
    now: datetime
    texts: tuple[str, ...] = ()
    channel: str | None = None
    recipient: str | None = None
    customer: str | None = None
    origin: str = Origin.CUSTOMER


class Admissions(Protocol):
    async def ask(self, profile: Profile, turn: Applicant) -> Admission:
        """Raises StoreUnavailable."""
        ...

    async def attempt(self, agent: str, turn: Applicant) -> Limited | Admitted:
        """Count a turn that a guard refuses, and that asks nobody, among those of its session, once however often it
        is counted. Limited: the session has begun too many, and nobody needs to answer it."""
        ...


class EveryoneAdmitted:
    """No limits are kept: for those who bring a world of their own."""

    async def ask(self, profile: Profile, turn: Applicant) -> Admission:
        return Admitted()

    async def attempt(self, agent: str, turn: Applicant) -> Limited | Admitted:
        return Admitted()


class KeptLimits:
    def __init__(self, configuration: Configuration, windows: EdgeWindows, spend: SpendStore) -> None:
        self._configuration = configuration
        self._windows = windows
        self._spend = spend

    async def ask(self, profile: Profile, turn: Applicant) -> Admission:
        rules = self._configuration.edge_rules(profile)
        if rules.any:
            readings = await self._windows.admit(rules.checks(turn.tenant, turn.session, profile.id, turn.turn_id))
            if (reading := breach(readings)) is not None:
                return Limited(rules.response, _breached(reading))
        if profile.budget is None or not has_cap(profile.budget):
            return Admitted()
        return await self._by_budget(profile, profile.budget, turn)

    async def attempt(self, agent: str, turn: Applicant) -> Limited | Admitted:
        known = self._configuration.agents.current(agent)
        if known is None:
            return Admitted()
        rules = self._configuration.edge_rules(known.profile)
        attempts = rules.attempts(turn.tenant, turn.session, turn.turn_id)
        if attempts and (reading := breach(await self._windows.admit(attempts))) is not None:
            return Limited(rules.response, _breached(reading))
        return Admitted()

    async def _by_budget(self, profile: Profile, budget: Budget, turn: Applicant) -> Admission:
        calendar = Calendar.of(turn.now)
        spent = await self._spend.spend(turn.tenant, profile.id, calendar.day, calendar.month)
        verdict = judge(budget, Spent(spent.day, spent.month), turn.now)
        warnings = _warnings(profile, turn, verdict.crossed)
        if not isinstance(verdict, Exhausted):
            return Admitted(warnings, verdict.past_cap)
        error = BudgetExceeded(
            f"the {verdict.window} budget of agent {profile.id!r} is used up; raise its cap in the profile, or wait "
            "until the window rolls",
            field=f"budget.{verdict.window}",
            retry_after=round(verdict.retry_after_s, 1),
        )
        return Refused(error, warnings)


def _breached(reading: WindowReading) -> Mapping[str, Any]:
    check = reading.check
    return {
        "kind": str(check.kind),
        "limit": check.limit,
        "window": check.window_s,
        "retry_after": round(reading.retry_after_s, 1),
    }


def _warnings(profile: Profile, turn: Applicant, crossed: Sequence[Crossing]) -> Warnings:
    if not crossed:
        return NO_WARNINGS
    about = About(profile.id, turn.now, turn.tenant, turn.turn_id, turn.session)
    webhook = profile.alerts.webhook if profile.alerts is not None else None
    events = {crossing.key(turn.tenant, profile.id): _told(crossing) for crossing in crossed}
    alerts = tuple(new_alert(key, EventType.BUDGET_WARNING, data, about, webhook) for key, data in events.items())
    return Warnings(alerts, events)


def _told(crossing: Crossing) -> Mapping[str, Any]:
    return {
        "window": str(crossing.window),
        "level": str(crossing.level),
        "spent": crossing.spent,
        "cap": crossing.cap,
    }
