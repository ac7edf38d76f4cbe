"""Finds out which agent answers a turn, before any is asked for an answer: its classifier is asked, and what the route
says is done. The turn is handed on, ends as stuck, or stays with the agent it has.

Each step is one fenced write, and what it leads to follows from the turn's row: so an owner that dies between two of
them leaves a turn that the next one takes up where it stood, and no agent classifies a turn twice.
"""

from __future__ import annotations

from actors.handing_on import HandingOn
from actors.turn_start import CLASSIFY
from actors.unanswered import UnansweredTurn
from actors.world import World
from insika.crash_points import CrashPoint
from insika.errors import DelegationDepth
from insika.events import EventType
from insika.messages import NO_USAGE, Usage
from insika.ports import ModelRequest
from insika.storage.operations import ModelCallKey, RouteTurn, SettledModelCall
from insika.turn.estimate import estimate_usage
from insika.turn.route_step import AnswerHere, Classify, HandOn, RouteStep, StopStuck, answers_here, next_route_step
from insika.turn.routing import named_route
from insika.turn.side_request import Heard, SideRequest


class TurnRouting:
    """Of one session's turns, one at a time. Raises Superseded when it may not write: load again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._handing_on = HandingOn(world)
        self._request: SideRequest | None = None

    @property
    def asking(self) -> bool:
        """A classifier is talking."""
        return self._request is not None and self._request.asking

    @property
    def owed(self) -> Usage:
        """What a request to a classifier has cost that is not booked."""
        return self._request.owed if self._request is not None else NO_USAGE

    def cut(self) -> None:
        """Abandon the request under way; `route` then raises Superseded. Without one this does nothing."""
        if self._request is not None:
            self._request.cut()

    async def route(self, turn: UnansweredTurn) -> bool:
        """True: `turn.staged` is who answers. False: the turn has ended, as `turn.log` tells."""
        while True:
            try:
                step = self._next(turn)
            except DelegationDepth as error:
                await turn.fail(error)
                return False
            match step:
                case AnswerHere():
                    return True
                case Classify():
                    await self._classify(turn, step)
                case HandOn():
                    if not await self._handing_on.hand(turn, step):
                        return False
                case StopStuck(route, answer):
                    await turn.answer(answer, "stuck")
                    turn.emit(EventType.TURN_STUCK, {"route": route})
                    return False

    def _next(self, turn: UnansweredTurn) -> RouteStep:
        staged = turn.staged
        return next_route_step(staged.profile, staged.routes, staged.depth, self._world.depth_cap)

    async def _classify(self, turn: UnansweredTurn, step: Classify) -> None:
        question = self._world.stage.question(step, turn.applicant.texts)
        key = turn.opened or await self._open_again(turn, question)
        heard = await self._ask(turn, question)
        self._world.crash(CrashPoint.ROUTE_FOUND)
        named = named_route(heard.text, step.routes)
        route = None if heard.error is not None else named or step.routes.default
        await self._keep(turn, step, route, SettledModelCall(key, heard.usage, _state_of(heard)))
        if route is not None:
            told = {"route": route, "model": step.model, "defaulted": named is None}
            turn.emit(EventType.ROUTE_CLASSIFIED, told)

    async def _open_again(self, turn: UnansweredTurn, question: ModelRequest) -> ModelCallKey:
        """The row of one more request, since whoever wrote the last one has gone; what his cost is booked with it."""
        key = ModelCallKey(1, turn.classified + 1, CLASSIFY, question.reference)
        cost = turn.lost if turn.lost != NO_USAGE else estimate_usage(question.instructions, question.messages)
        await turn.log.retry_model(key, cost)
        turn.classified += 1
        if turn.unbooked:
            turn.usage += cost
            turn.unbooked = False
        return key

    async def _ask(self, turn: UnansweredTurn, question: ModelRequest) -> Heard:
        session, staged = turn.session, turn.staged
        policies, emit = self._world.policies, turn.emit
        attempts = policies.attempts(staged.profile, session.tenant, turn.turn_id, session.name, emit)
        self._request = SideRequest(staged.provider, attempts, turn.log.may_start)
        began_s = turn.times.elapsed_s
        try:
            heard = await self._request.ask(question, staged.identity.time_s - began_s)
        finally:
            turn.times.classified(turn.times.elapsed_s - began_s)
        if (error := heard.error) is not None:
            why = {"action": str(error.action), "status": error.status, "retry_after": error.retry_after}
            emit(EventType.PROVIDER_FAILURE, {"purpose": CLASSIFY, "model": question.reference, **why})
        return heard

    async def _keep(self, turn: UnansweredTurn, step: Classify, route: str | None, settled: SettledModelCall) -> None:
        """Write the route, what it cost, and the row of the answer's first request, where this agent gives it."""
        here = answers_here(step.routes, route)
        answers = ModelCallKey(1, 1, "answer", turn.staged.identity.model) if here else None
        await turn.log.route(RouteTurn(turn.turn_id, route, settled, answers))
        self._request = None
        turn.staged, turn.opened = turn.staged.routed(route), answers
        turn.usage += settled.usage
        self._world.crash(CrashPoint.TURN_ROUTED)


def _state_of(heard: Heard) -> str:
    return "measured" if heard.measured else "estimated"
