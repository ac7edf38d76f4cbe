"""The errors that people and programs see, each with the stable `type` that the public contract names.

An error says what is wrong, where (`field`, a dotted path, when one can be named) and what to do. Anything that is
not an `InsikaError` is a defect of ours or of a tool, and is reported as such.
"""

from __future__ import annotations

import enum
from typing import Any


class InsikaError(Exception):
    """Base of all errors that carry a contract type."""

    type = "internal_error"

    def __init__(self, message: str, *, field: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after = retry_after

    def as_dict(self) -> dict[str, Any]:
        """The contract's error object: `{"type", "message", "field"?, "retry_after"?}`, `retry_after` in seconds."""
        body: dict[str, Any] = {"type": self.type, "message": self.message}
        if self.field is not None:
            body["field"] = self.field
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        return body


class InvalidJob(InsikaError):
    """A job that cannot be read; it is kept raw and never retried by itself."""

    type = "invalid_job"


class UnknownAgent(InvalidJob):
    type = "unknown_agent"


class InvalidConfiguration(InsikaError):
    """A profile, a settings file or an environment that says something it may not. `problems` lists every mistake."""

    type = "invalid_configuration"

    def __init__(self, where: str, problems: list[tuple[str, str]]) -> None:
        lines = "\n".join(f"  {path or '(top level)'}: {why}" for path, why in problems)
        super().__init__(f"{where} is not valid:\n{lines}", field=problems[0][0] if problems else None)
        self.where = where
        self.problems = problems


class ToolRepetition(InsikaError):
    """The model made the same call again after it had been told."""

    type = "tool_repetition"


class TurnTimeout(InsikaError):
    type = "timeout"


class WorkerLost(InsikaError):
    """A turn whose workers died too often: it ends here, visibly."""

    type = "worker_lost"


class Cancelled(InsikaError):
    type = "cancelled"


class Interrupted(InsikaError):
    type = "interrupted"


class LeaseLost(InsikaError):
    """Another owner has the session, or may have it. Stop at once; publish nothing."""

    type = "lease_lost"


class BudgetExceeded(InsikaError):
    """A calendar budget of the agent is used up; `retry_after` says when its window rolls."""

    type = "budget_exceeded"


class PolicyDenied(InsikaError):
    """A policy of the agent does not let this turn run."""

    type = "policy_denied"


class DelegationDepth(InsikaError):
    """Agents handed the turn on to each other too often."""

    type = "delegation_depth"


class FailureAction(enum.StrEnum):
    """What may be done about a model that could not answer. `rate_limited_long`: the vendor asks for a wait of more
    than 60 s, which no turn spends waiting. What nobody knows is fatal."""

    RETRYABLE = "retryable"
    RATE_LIMITED_SHORT = "rate_limited_short"
    RATE_LIMITED_LONG = "rate_limited_long"
    FATAL = "fatal"


class ProviderError(InsikaError):
    """A model could not answer. `retry_after`: seconds the vendor asked to wait. `status`: of its HTTP answer, 0 when
    there was none. `sent` False: for certain nothing of the request reached the vendor."""

    type = "provider_unavailable"
    action = FailureAction.RETRYABLE

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        retry_after: float | None = None,
        action: FailureAction | None = None,
        status: int = 0,
        sent: bool = True,
    ) -> None:
        super().__init__(message, field=field, retry_after=retry_after)
        self.action = self.action if action is None else action
        self.status = status
        self.sent = sent


class ProviderFatal(ProviderError):
    """The request or the account is wrong: trying again cannot help."""

    type = "provider_fatal"
    action = FailureAction.FATAL


class CircuitOpen(ProviderError):
    """No model of the chain may be asked now: each has failed too often a short while ago."""

    type = "circuit_open"
    action = FailureAction.RATE_LIMITED_LONG
