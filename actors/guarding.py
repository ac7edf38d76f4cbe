"""The guards of a process that runs turns: the rules that come with Insika, by the profiles this process knows."""

from __future__ import annotations

from collections.abc import Callable

from actors.configuration import Configuration
from actors.stage import Stage
from insika.agents.guardrails import Guardrails
from insika.policy.guardrails.guards import Guards
from insika.turn.outgoing import UNGUARDED, OutgoingGuard
from insika.turn.profile_guard import ProfileGuard

OutgoingBy = Callable[[Guardrails], OutgoingGuard]
"""Who looks through the answers of an agent with these rules."""


def everything_leaves(rules: Guardrails) -> OutgoingGuard:
    """Nobody's rules are asked for: for those who bring a world of their own."""
    return UNGUARDED


def outgoing_by(guards: Guards) -> OutgoingBy:
    return lambda rules: guards.output(rules) if rules.output else UNGUARDED


def profile_guard(configuration: Configuration, stage: Stage, guards: Guards) -> ProfileGuard:
    async def rules_of(agent_id: str) -> Guardrails:
        await stage.know(agent_id, None)
        agent = configuration.agents.current(agent_id)
        return Guardrails() if agent is None else agent.profile.guards

    return ProfileGuard(rules_of, guards)
