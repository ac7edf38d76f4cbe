"""Hands a running turn to another agent for its rest, if that agent's guard, limits and budget let it: then the turn is
that agent's by one fenced write; or else it ends here, with the answer or the error that they lead to.

What was said to open the turn was let in by the guard of the agent that it was sent to, and stays in the conversation
also where this one's refuses it.

Warnings of its budget are raised by themselves, since no beginning of a turn is written that could carry them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from actors.admission import Admitted, Limited, Refused, Warnings
from actors.refusing import OUTCOME, reply_of, tell_blocked
from actors.stage import NOT_STAGED, Staged
from actors.turn_start import CLASSIFY, first_call, tell_warnings
from actors.unanswered import UnansweredTurn
from actors.world import World
from insika.crash_points import CrashPoint
from insika.events import EventType
from insika.storage.operations import RedirectTurn
from insika.turn.input_guard import Refusal
from insika.turn.route_step import HandOn


class HandingOn:
    def __init__(self, world: World) -> None:
        self._world = world

    async def hand(self, turn: UnansweredTurn, to: HandOn) -> bool:
        """True: `turn` is the other agent's. False: it has ended. Raises Superseded, and StoreUnavailable."""
        stage = self._world.stage
        await stage.know(to.agent, None)
        try:
            other = stage.hand_on(turn.session, turn.staged, to)
        except NOT_STAGED as error:
            await turn.fail(error)
            return False
        mail = [replace(row, agent=to.agent) for row in turn.opening]
        if refused := await self._world.guard.refusals(mail):
            await self._refuse(turn, to.agent, refused)
            return False
        match await self._world.admissions.ask(other.profile, turn.applicant):
            case Limited(response, breached):
                await turn.answer(response, "limited")
                turn.emit.about(to.agent)(EventType.LIMIT_BREACHED, breached)
            case Refused(why, warnings):
                await self._warn(turn, to.agent, warnings)
                await turn.fail(why)
            case Admitted() if refused := await turn.log.moderated(mail):
                await self._refuse(turn, to.agent, refused)
            case Admitted(warnings, past_budget):
                await self._warn(turn, to.agent, warnings)
                await self._redirect(turn, other.past_budget() if past_budget else other)
                return True
        return False

    async def _refuse(self, turn: UnansweredTurn, agent: str, refused: Mapping[int, Refusal]) -> None:
        counted = await self._world.admissions.attempt(agent, turn.applicant)
        emit = turn.emit.about(agent)
        await turn.answer("" if isinstance(counted, Limited) else reply_of(refused), OUTCOME)
        tell_blocked(emit, refused)
        if isinstance(counted, Limited):
            emit(EventType.LIMIT_BREACHED, counted.breached)

    async def _warn(self, turn: UnansweredTurn, agent: str, warnings: Warnings) -> None:
        if warnings.alerts:
            raised = await self._world.store.raise_alerts(warnings.alerts)
            tell_warnings(turn.emit.about(agent), warnings, raised)

    async def _redirect(self, turn: UnansweredTurn, other: Staged) -> None:
        call = first_call(other, turn.classified)
        agent = other.profile.id
        await turn.log.redirect(RedirectTurn(turn.turn_id, agent, other.revision, other.limits, other.depth, call))
        turn.staged, turn.opened = other, call
        if call.purpose == CLASSIFY:
            turn.classified = call.attempt
        self._world.crash(CrashPoint.TURN_REDIRECTED)
        turn.emit.hand_to(agent)
