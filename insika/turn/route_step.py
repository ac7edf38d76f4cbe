"""What comes next of a turn before its agent is asked for an answer: it is classified, handed to another agent, ended
as stuck, or none of these. Pure: the same rows always give the same step.

What holds: each agent of a turn classifies it once, and says so in the turn's row, so that whoever takes the turn up
again goes on from what was said; and agents that hand it on to each other stop at the cap.

Source: the order's "Intent routing".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from insika.agents.routes import Route, Routes
from insika.choices import Thinking
from insika.errors import DelegationDepth
from insika.messages import user
from insika.ports import ModelRequest
from insika.turn.routing import classifier_instructions, classifier_message


@dataclass(frozen=True, slots=True)
class Classify:
    """Ask `model` (a whole reference) for the route, by `routes`."""

    routes: Routes
    model: str


@dataclass(frozen=True, slots=True)
class HandOn:
    """`agent` has the turn from now on, as the route `route` says; with this it was handed on `depth` times."""

    agent: str
    route: str
    depth: int


@dataclass(frozen=True, slots=True)
class StopStuck:
    """The turn ends here, and `answer` is what it answers."""

    route: str
    answer: str


@dataclass(frozen=True, slots=True)
class AnswerHere:
    """The agent that has the turn answers it."""


RouteStep = Classify | HandOn | StopStuck | AnswerHere


class HasRoutes(Protocol):
    """An agent, as far as it tells turns apart. `model` is the whole reference of its own."""

    @property
    def id(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def routes(self) -> Routes | None: ...


def next_route_step(agent: HasRoutes, found: Sequence[str | None], depth: int, cap: int) -> RouteStep:
    """`agent` has the turn, after it was handed on `depth` times. `found`: what each of the turn's agents has made of
    it so far, None for one whose classifier failed. `cap`: how often a turn may be handed on.

    Raises DelegationDepth where it would be handed on more often."""
    routes = agent.routes
    if routes is None:
        return AnswerHere()
    if len(found) <= depth:
        return Classify(routes, routes.model or agent.model)
    name = found[depth]
    route = _route_of(routes, name)
    if name is None or route is None:
        return AnswerHere()
    if route.stuck:
        return StopStuck(name, route.lead_in)
    if route.delegate is None:
        return AnswerHere()
    if depth >= cap:
        raise DelegationDepth(
            f"agent {agent.id!r} hands this turn on by its route {name!r}, but it was handed on {depth} times before, "
            f"and INSIKA_SUBAGENT_DEPTH_CAP is {cap}; see whether the routes of these agents lead to each other",
            field=f"routes.{name}.delegate",
        )
    return HandOn(route.delegate, name, depth + 1)


def answers_here(routes: Routes, name: str | None) -> bool:
    """A turn of this route, None for none, is answered by the agent that classified it."""
    route = _route_of(routes, name)
    return route is None or not (route.stuck or route.delegate is not None)


def route_of_turn(found: Sequence[str | None]) -> str | None:
    """The route that the whole turn is said to have taken: the first that an agent of it found."""
    return next((name for name in found if name is not None), None)


def question_of(
    step: Classify, texts: Sequence[str], thinking: Thinking | None = None, max_tokens: int | None = None
) -> ModelRequest:
    """The request to the classifier, about what was said to open the turn. It has nothing in common with the requests
    of the conversation: no tools, and nothing that was said before."""
    provider, _, model = step.model.partition("/")
    return ModelRequest(
        model,
        classifier_instructions(step.routes),
        (user(classifier_message(texts)),),
        provider=provider,
        may_call=False,
        thinking=thinking,
        max_tokens=max_tokens,
    )


def _route_of(routes: Routes, name: str | None) -> Route | None:
    return None if name is None else routes.routes.get(name)
