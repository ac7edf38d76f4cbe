"""Which model is asked besides, by the profiles this process knows, before an agent may hear what somebody wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from actors.configuration import Configuration
from actors.stage import Stage
from insika.agents.guardrails import MODERATED
from insika.agents.profile import Profile
from insika.choices import Strictness, Thinking
from insika.policy.guardrails.guards import Guards
from insika.policy.guardrails.pattern import ANY_LANGUAGE
from insika.policy.guardrails.verdict import Block
from insika.ports import ModelProvider, ModelRequest
from insika.turn.input_guard import Refusal
from insika.turn.moderating import question_to_moderator


@dataclass(frozen=True, slots=True)
class Moderator:
    """`model` (a whole reference) judges at this `strictness`; two that agree in that judge alike. What it refuses,
    `refusal` says. `provider` speaks for it."""

    model: str
    strictness: Strictness
    profile: Profile = field(compare=False)
    provider: ModelProvider = field(compare=False)
    refusal: Refusal = field(compare=False)
    thinking: Thinking | None = field(default=None, compare=False)
    max_tokens: int | None = field(default=None, compare=False)

    def question(self, texts: Sequence[str]) -> ModelRequest:
        return question_to_moderator(self.model, self.strictness, texts, self.thinking, self.max_tokens)


class Moderators(Protocol):
    def of(self, agent_id: str) -> Moderator | None:
        """The one of this agent, as its profile is now. None: it has none, or nobody knows it."""
        ...


class NoModerators:
    def of(self, agent_id: str) -> Moderator | None:
        return None


class KnownModerators:
    def __init__(self, configuration: Configuration, stage: Stage, guards: Guards) -> None:
        self._configuration = configuration
        self._stage = stage
        self._guards = guards

    def of(self, agent_id: str) -> Moderator | None:
        agent = self._configuration.agents.current(agent_id)
        rules = agent.profile.guards if agent is not None else None
        if agent is None or rules is None or not rules.input or rules.moderator is None:
            return None
        params = self._configuration.settings().model_params.get(rules.moderator)
        return Moderator(
            rules.moderator,
            rules.strictness,
            agent.profile,
            self._stage.speaker(),
            Refusal(MODERATED, reply=self._guards.safe_reply(Block(MODERATED, "", ANY_LANGUAGE), rules)),
            params.thinking if params is not None else None,
            params.max_tokens if params is not None else None,
        )
