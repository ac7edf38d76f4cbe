"""A turn that runs and whose agent has not been asked for an answer: what is known of it, and how it may end now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.admission import Applicant
from actors.stage import Staged
from actors.turn_events import ScopedEvents
from actors.turn_log import OwnedTurnLog
from insika.errors import InsikaError
from insika.messages import NO_USAGE, Usage
from insika.storage.operations import ModelCallKey
from insika.storage.rows import Mail, SessionRow
from insika.turn.log import Answer, Failure
from insika.turn.times import TurnTimes


@dataclass(slots=True)
class UnansweredTurn:
    """`staged` is by the agent that has it. `opening` are the messages that it answers, as guards look at them.
    `opened`: the row of the next request, where this owner has written one and nobody has asked. `classified`: how many
    requests to classifiers have rows. `unbooked`: a row of an owner before this one is open, and `lost` is what it
    cost, where this owner knows although it could not write it. `usage`: what was booked since this owner took it
    up."""

    session: SessionRow
    applicant: Applicant
    opening: Sequence[Mail]
    log: OwnedTurnLog
    emit: ScopedEvents
    times: TurnTimes
    staged: Staged
    opened: ModelCallKey | None
    classified: int = 0
    unbooked: bool = False
    lost: Usage = NO_USAGE
    usage: Usage = NO_USAGE

    @property
    def turn_id(self) -> str:
        return self.staged.identity.turn_id

    async def answer(self, content: str, outcome: str) -> None:
        """End it with an answer that no model gave."""
        staged = self.staged
        await self.log.commit(
            Answer(
                1,
                content,
                outcome,
                usage=self.usage,
                timing=self.times.timing(),
                agent=staged.profile.id,
                route=staged.identity.route,
            )
        )

    async def fail(self, error: InsikaError) -> None:
        timing, route = self.times.timing(), self.staged.identity.route
        await self.log.fail(Failure(1, error, usage=self.usage, timing=timing, route=route))
