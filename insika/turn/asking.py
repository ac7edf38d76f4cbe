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
from insika.reliability.attempts import FailedAttempt, GiveUp, TryAgain
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
        state = self._state
        failed: list[FailedAttempt] = []
        key = ModelCallKey(state.step, state.attempt, purpose, self._turn.model)
        if not state.request_open:
            await self._open(key, state.lost if state.lost != NO_USAGE else self._guess())
        while True:
            state.request_open = False
            try:
                return Answered(key, await self._asker.ask(state, key, may_call=may_call))
            except ProviderError as error:
                self._tell(key, error)
                failed.append(FailedAttempt(key.model, error))
                again = self._again(failed)
            await self._asker.rest(again.after_s)
            state.attempt += 1
            key = ModelCallKey(state.step, state.attempt, purpose, again.model)
            state.unbooked = True
            await self._open(key, self._asker.owed)

    def _again(self, failed: list[FailedAttempt]) -> TryAgain:
        """Raises what the turn ends with when there is no other attempt."""
        decision = self._ports.attempts.after(failed, self._asker.left_s)
        if isinstance(decision, GiveUp):
            raise decision.error
        return decision

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
