"""What one step asks of the model: attempt after attempt, until one is whole or the policy gives up.

Each attempt has its row before it is sent. Of a failed one nothing stays but that row, and an event with nothing in it
that a vendor or a model said: what it had shown is void, and the next attempt is built anew from the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from insika.errors import ProviderError
from insika.events import EventType
from insika.messages import NO_USAGE, Usage
from insika.ports import Finished
from insika.reliability.attempts import FailedAttempt, GiveUp
from insika.storage.operations import ModelCallKey
from insika.turn.estimate import estimate_usage
from insika.turn.ports import TurnPorts
from insika.turn.request import ModelAsker
from insika.turn.state import TurnIdentity, TurnState


@dataclass(frozen=True, slots=True)
class Answered:
    """`key` names the attempt that was whole."""

    key: ModelCallKey
    finished: Finished


class StepAsker:
    """Asks for the steps of one turn, and keeps `state` abreast of its attempts and of what they cost."""

    def __init__(self, turn: TurnIdentity, state: TurnState, ports: TurnPorts, asker: ModelAsker) -> None:
        self._turn = turn
        self._state = state
        self._ports = ports
        self._asker = asker

    async def ask(self, purpose: str, *, may_call: bool) -> Answered:
        """Raises ProviderError or ProviderFatal when the policy gives up, and as `ModelAsker.ask` does."""
        state, attempts = self._state, self._ports.attempts
        failed: list[FailedAttempt] = []
        meant = self.model
        model = await attempts.before(meant, failed)
        try:
            key = await self._first(purpose, meant, model)
            while True:
                state.request_open = False
                try:
                    finished = await self._asker.ask(state, key, may_call=may_call, limit_s=attempts.timeout_s)
                    break
                except ProviderError as error:
                    self._tell(key, error)
                    failed.append(FailedAttempt(key.model, error))
                key = await self._next(purpose, failed)
        except BaseException:
            await attempts.left()
            raise
        await attempts.succeeded()
        state.model = key.model
        return Answered(key, finished)

    @property
    def model(self) -> str:
        """The one to ask: it answered last, or is the agent's own."""
        return self._state.model or self._turn.model

    async def _first(self, purpose: str, meant: str, model: str) -> ModelCallKey:
        """The first attempt's key, its row written."""
        state = self._state
        if state.request_open and model == meant:
            return ModelCallKey(state.step, state.attempt, purpose, model)
        cost = state.lost if state.lost != NO_USAGE else self._guess()
        if state.request_open:  # its row is written, but the model it names is not asked
            state.attempt += 1
            cost = NO_USAGE
        key = ModelCallKey(state.step, state.attempt, purpose, model)
        await self._open(key, cost)
        self._tell_change(key, meant)
        return key

    async def _next(self, purpose: str, failed: list[FailedAttempt]) -> ModelCallKey:
        """The next attempt's key, its row written. Raises what the turn ends with when there is no other attempt."""
        state, attempts = self._state, self._ports.attempts
        decision = await attempts.after(failed, self._asker.left_s)
        if isinstance(decision, GiveUp):
            raise decision.error
        await self._asker.rest(decision.after_s)
        model = await attempts.before(decision.model, failed)
        state.attempt += 1
        key = ModelCallKey(state.step, state.attempt, purpose, model)
        state.unbooked = True
        await self._open(key, self._asker.owed)
        self._tell_change(key, failed[-1].model)
        return key

    async def _open(self, key: ModelCallKey, cost: Usage) -> None:
        """Write the row of another attempt, and what the one before it is booked at."""
        state = self._state
        await self._ports.log.retry_model(key, cost)
        if state.unbooked:
            state.usage += cost
        state.unbooked, state.lost = False, NO_USAGE

    def _guess(self) -> Usage:
        """What an attempt that an owner before this one made may have cost."""
        return estimate_usage(self._turn.instructions, self._state.history, tools=self._ports.toolbox.specs())

    def _tell(self, key: ModelCallKey, error: ProviderError) -> None:
        about: dict[str, Any] = {"step": key.step, "attempt": key.attempt, "model": key.model}
        why = {"action": str(error.action), "status": error.status, "retry_after": error.retry_after}
        self._ports.emit(EventType.PROVIDER_FAILURE, {**about, **why})

    def _tell_change(self, key: ModelCallKey, before: str) -> None:
        if key.model != before:
            about = {"step": key.step, "attempt": key.attempt, "model": key.model, "instead_of": before}
            self._ports.emit(EventType.PROVIDER_FALLBACK, about)
