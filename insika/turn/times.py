"""Where the time of one turn goes, in the hands of the owner that has it now. In milliseconds, by the boot clock.

What an owner before this one spent is not in it: the rows of the turn tell when it began and ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from insika.clock import Clock
from insika.events import EventType
from insika.ports import Emit


class TurnTimes:
    """How long the turn took, and its models and its tools in all. Counts from the moment it is made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._model_s = 0.0
        self._tools_s = 0.0
        self._routing_s = 0.0
        self._asked_at = self._acting_at = self._began

    @property
    def elapsed_s(self) -> float:
        return self._clock.monotonic() - self._began

    def asked(self, step: int, attempt: int) -> None:
        """A request is sent."""
        self._asked_at = self._clock.monotonic()

    def heard(self) -> None:
        """The first piece of what the model says has come, or its whole message when that came in one."""
        return None

    def answered(self) -> None:
        """The request is over, well or not."""
        self._model_s += self._since_asked_s()

    def classified(self, seconds: float) -> None:
        """A classifier was asked for so long; more than one may be, where agents hand the turn on."""
        self._routing_s += seconds

    def acting(self) -> None:
        """The tools of a batch begin."""
        self._acting_at = self._clock.monotonic()

    def acted(self) -> None:
        """They have ended, well or not."""
        self._tools_s += self._clock.monotonic() - self._acting_at

    def timing(self) -> Mapping[str, Any]:
        """For the turn's record. `routing_ms` only where a classifier was asked."""
        routing = {"routing_ms": _ms(self._routing_s)} if self._routing_s else {}
        return {
            "total_ms": _ms(self.elapsed_s),
            **routing,
            "model_ms": _ms(self._model_s),
            "tools_ms": _ms(self._tools_s),
        }

    def _since_asked_s(self) -> float:
        return self._clock.monotonic() - self._asked_at


@dataclass(slots=True)
class _Step:
    """One step's requests. `ttft_s` is of the last of them."""

    step: int
    attempts: int = 0
    spent_s: float = 0.0
    ttft_s: float | None = None

    def told(self) -> Mapping[str, Any]:
        ttft_ms = None if self.ttft_s is None else _ms(self.ttft_s)
        return {"step": self.step, "attempts": self.attempts, "ms": _ms(self.spent_s), "ttft_ms": ttft_ms}


class DetailedTimes(TurnTimes):
    """The same step by step, and an event for the first piece of the turn's first model request.

    `queued_ms`: from the arrival of the message that opened the turn to its start, by the store's clock. `prepare_ms`
    goes from there to the first request, or to the first tool of a turn that was taken up in the middle of a batch;
    `model` lists the steps, each with the attempts that this owner made at it, the time of all of them, and the time to
    the first token of the last (None: it gave none). The commit, which writes these numbers, cannot be among them.
    """

    def __init__(self, clock: Clock, emit: Emit, queued_ms: float) -> None:
        super().__init__(clock)
        self._emit = emit
        self._queued_ms = queued_ms
        self._prepare_s: float | None = None
        self._steps: list[_Step] = []
        self._attempt = 1

    def asked(self, step: int, attempt: int) -> None:
        super().asked(step, attempt)
        self._prepared()
        if not self._steps or self._steps[-1].step != step:
            self._steps.append(_Step(step))
        self._steps[-1].attempts += 1
        self._steps[-1].ttft_s = None
        self._attempt = attempt

    def heard(self) -> None:
        at = self._steps[-1]
        if at.ttft_s is not None:
            return
        at.ttft_s = self._since_asked_s()
        if at.step == 1:
            told = {"step": at.step, "attempt": self._attempt, "ttft_ms": _ms(at.ttft_s)}
            self._emit(EventType.TTFT, told)

    def answered(self) -> None:
        super().answered()
        self._steps[-1].spent_s += self._since_asked_s()

    def acting(self) -> None:
        super().acting()
        self._prepared()

    def timing(self) -> Mapping[str, Any]:
        prepare_s = self.elapsed_s if self._prepare_s is None else self._prepare_s
        return {
            "queued_ms": self._queued_ms,
            "prepare_ms": _ms(prepare_s),
            "model": [step.told() for step in self._steps],
            **super().timing(),
        }

    def _prepared(self) -> None:
        if self._prepare_s is None:
            self._prepare_s = self.elapsed_s


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
