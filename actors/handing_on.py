"""Hands a running turn to another agent for its rest, if that agent's limits and budget let it: then the turn is that
agent's by one fenced write; or else it ends here, with the answer or the error that they lead to.

Warnings of its budget are raised by themselves, since no beginning of a turn is written that could carry them.
"""

from __future__ import annotations

from actors.admission import Admitted, Limited, Refused, Warnings
from actors.stage import NOT_STAGED, Staged
from actors.turn_start import CLASSIFY, first_call, tell_warnings
from actors.unanswered import UnansweredTurn
from actors.world import World
from insika.crash_points import CrashPoint
from insika.events import EventType
from insika.storage.operations import RedirectTurn
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
        match await self._world.admissions.ask(other.profile, turn.applicant):
            case Limited(response, breached):
                await turn.answer(response, "limited")
                turn.emit.about(to.agent)(EventType.LIMIT_BREACHED, breached)
            case Refused() as refused:
                await self._warn(turn, to.agent, refused.warnings)
                await turn.fail(refused.error)
            case Admitted(warnings, past_budget):
                await self._warn(turn, to.agent, warnings)
                await self._redirect(turn, other.past_budget() if past_budget else other)
                return True
        return False

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
