"""Which edge limits hold for a turn that begins: the agent's where it says something, else the platform's. Pure.

A key that an agent's profile holds counts, also when it says null or 0, which is off; one that it leaves out is the
platform's to say. Counting is `insika.limits.windows`' part.

Source: the order's "Layer 4: Edge limits": 60 s and 86,400 s unless the platform says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from insika.agents.precedence import first_present
from insika.limits.windows import TokenCeiling, TurnAttempt, WindowCheck, WindowReading

LIMIT_RESPONSE = "I cannot answer right now. Please try again in a little while."
"""What a person reads where a limit is breached and nobody has worded it."""


@dataclass(frozen=True, slots=True)
class EdgeRules:
    """What is in force for one agent. A limit of 0 is off. `response`: what a breach is answered with."""

    chat_rate_limit: int = 0
    chat_rate_window_s: int = 60
    agent_token_ceiling: int = 0
    agent_token_window_s: int = 86_400
    response: str = LIMIT_RESPONSE

    @classmethod
    def of(cls, agent: Mapping[str, Any], platform: Mapping[str, Any]) -> EdgeRules:
        """`agent` and `platform`: the keys that each of them gives, and no others."""
        default = cls()
        return cls(
            chat_rate_limit=first_present("chat_rate_limit", agent, platform, default=0) or 0,
            chat_rate_window_s=platform.get("chat_rate_window") or default.chat_rate_window_s,
            agent_token_ceiling=first_present("agent_token_ceiling", agent, platform, default=0) or 0,
            agent_token_window_s=platform.get("agent_token_window") or default.agent_token_window_s,
            response=platform.get("limit_response") or default.response,
        )

    @property
    def any(self) -> bool:
        return self.chat_rate_limit > 0 or self.agent_token_ceiling > 0

    @property
    def for_the_public(self) -> bool:
        """Whether a channel that anybody may write to can be given to the agent: somebody bounds how often."""
        return self.chat_rate_limit > 0

    def attempts(self, tenant: str, session: str, turn_id: str) -> tuple[TurnAttempt, ...]:
        """What counts this turn in its session's window. Nothing where that limit is off."""
        if self.chat_rate_limit <= 0:
            return ()
        return (TurnAttempt(tenant, session, turn_id, self.chat_rate_limit, self.chat_rate_window_s),)

    def checks(self, tenant: str, session: str, agent: str, turn_id: str) -> tuple[WindowCheck, ...]:
        """What is to be asked before this turn may ask a model. Nothing where all is off."""
        found: list[WindowCheck] = [*self.attempts(tenant, session, turn_id)]
        if self.agent_token_ceiling > 0:
            found.append(TokenCeiling(tenant, agent, self.agent_token_ceiling, self.agent_token_window_s))
        return tuple(found)


def breach(readings: Sequence[WindowReading]) -> WindowReading | None:
    """The breach to tell of: the one that lasts longest."""
    breached = [reading for reading in readings if reading.breached]
    return max(breached, key=lambda reading: reading.retry_after_s) if breached else None
