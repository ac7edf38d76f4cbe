"""The guard of every text that wants to enter a conversation, by its agent's profile as it is when it is asked.

The same for what opens a turn, what was collected, what is steered in and what interrupts: each text is looked at by
itself, and nothing in it may exempt it, not even the mark under which the engine speaks. What the engine itself says
never passes here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from insika.agents.guardrails import Guardrails
from insika.policy.guardrails.guards import Guards
from insika.policy.guardrails.verdict import Block
from insika.storage.rows import Mail
from insika.turn.input_guard import Refusal

RulesOf = Callable[[str], Awaitable[Guardrails]]
"""The guardrails in force now of an agent, by its id; the default ones of an agent that nobody knows."""


class ProfileGuard:
    def __init__(self, rules_of: RulesOf, guards: Guards) -> None:
        self._rules_of = rules_of
        self._guards = guards

    async def refusals(self, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        """Raises what `rules_of` raises: as long as nobody knows the rules, nobody may say anything."""
        rules = {agent: await self._rules_of(agent) for agent in dict.fromkeys(row.agent for row in mail)}
        refused: dict[int, Refusal] = {}
        for row in mail:
            verdict = self._guards.verdict(row.text, rules[row.agent])
            if isinstance(verdict, Block):
                reply = self._guards.safe_reply(verdict, rules[row.agent])
                refused[row.position] = Refusal(verdict.category, verdict.pattern, reply)
        return refused
