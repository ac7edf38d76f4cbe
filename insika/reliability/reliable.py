"""The attempts of an agent with a reliability policy: retries, the chain of models, and a gate before each attempt."""

from __future__ import annotations

from collections.abc import Sequence

from insika.errors import CircuitOpen, FailureAction
from insika.reliability.attempts import Decision, FailedAttempt, GiveUp, TryAgain
from insika.reliability.chain import Chain, NextModel, Waits, kindest
from insika.reliability.circuit import Open
from insika.reliability.gate import Gate


class ReliableAttempts:
    """`timeout_s`: how long one attempt may take as a whole."""

    def __init__(self, chain: Chain, gate: Gate, waits: Waits, timeout_s: float) -> None:
        self._chain = chain
        self._gate = gate
        self._waits = waits
        self.timeout_s = timeout_s

    async def before(self, model: str, failed: Sequence[FailedAttempt]) -> str:
        waits: list[float] = []
        for candidate in (model, *self._chain.behind(model)):
            passage = await self._gate.enter(candidate, self.timeout_s)
            if not isinstance(passage, Open):
                return candidate
            waits.append(passage.retry_after_s)
        if failed:
            raise kindest([attempt.error for attempt in failed])
        raise CircuitOpen(
            f"every model that could answer ({', '.join((model, *self._chain.behind(model)))}) has failed too often a "
            "short while ago and is left alone for now",
            retry_after=min(waits),
        )

    async def after(self, failed: Sequence[FailedAttempt], left_s: float) -> Decision:
        last = failed[-1]
        if last.error.action is FailureAction.FATAL:
            await self._gate.left()
        else:
            await self._gate.failed()
        decision = self._chain.after(failed, left_s, self._waits)
        if not isinstance(decision, NextModel):
            return decision
        behind = self._chain.behind(last.model)
        return TryAgain(0.0, behind[0]) if behind else GiveUp(kindest([attempt.error for attempt in failed]))

    async def succeeded(self) -> None:
        await self._gate.succeeded()

    async def left(self) -> None:
        await self._gate.left()
