"""The input guard of a process that runs turns: the rules that come with Insika, by the profiles this process knows."""

from __future__ import annotations

from actors.configuration import Configuration
from actors.stage import Stage
from insika.agents.guardrails import Guardrails
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.turn.profile_guard import ProfileGuard


def profile_guard(configuration: Configuration, stage: Stage) -> ProfileGuard:
    async def rules_of(agent_id: str) -> Guardrails:
        await stage.know(agent_id, None)
        agent = configuration.agents.current(agent_id)
        return Guardrails() if agent is None else agent.profile.guards

    return ProfileGuard(rules_of, Guards(read_library()))
