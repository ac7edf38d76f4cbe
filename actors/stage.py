"""Sets one turn up: which profile revision, which model, which tools, and where its answer goes.

What a turn began with stays (profile, limits, tools offered); what it is denied is read as it is now, and a tool that
has left the settings is. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from actors.agents import Agent
from actors.configuration import Configuration
from actors.tool_failures import ToolFailures
from actors.tool_set import ToolSet
from insika.agents.limits import TurnLimits
from insika.agents.profile import Profile
from insika.errors import InvalidConfiguration, ProviderFatal, UnknownAgent
from insika.model_endpoints import HostedModels
from insika.policy.tool_lists import allowed_tools
from insika.ports import ModelProvider, ModelRequest
from insika.providers.catalog import ModelCatalog
from insika.session_vars import session_thinking
from insika.storage.operations import NewDelivery
from insika.storage.rows import SessionRow, TurnRow
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads
from insika.tools.tool import ToolContext
from insika.tools.toolbox import TurnToolbox
from insika.turn import sentences
from insika.turn.log import Answer
from insika.turn.output import Answered, answer_deliveries
from insika.turn.route_step import Classify, HandOn, question_of, route_of_turn
from insika.turn.state import TurnIdentity

NOT_STAGED = (UnknownAgent, InvalidConfiguration, ProviderFatal)
"""Why a turn cannot be run here, and will not be by trying again."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A turn ready to run, by the `profile` it began with, or was handed on with. `limits` is what is frozen with it.
    `provider` speaks for every model that there is. `depth` and `routes` as in its row."""

    identity: TurnIdentity
    profile: Profile
    revision: str
    limits: Mapping[str, Any]
    provider: ModelProvider
    toolbox: TurnToolbox
    depth: int = 0
    routes: tuple[str | None, ...] = ()

    def routed(self, route: str | None) -> Staged:
        """The same, as its agent's classifier has found it."""
        routes = (*self.routes, route)
        return replace(self, identity=replace(self.identity, route=route_of_turn(routes)), routes=routes)

    def past_budget(self) -> Staged:
        """The same, but its model is told in each request that the agent's budget is used up."""
        limits = replace(self.identity.limits, past_budget=True)
        identity = replace(self.identity, limits=limits, note=sentences.PAST_BUDGET)
        return replace(self, identity=identity, limits=limits.as_dict())


@dataclass(frozen=True, slots=True)
class Addressee:
    """Where a turn's answer goes: from the message that opened it."""

    agent: str
    channel: str | None
    recipient: str | None


class Stage:
    def __init__(
        self,
        configuration: Configuration,
        models: ModelCatalog,
        tools: ToolSet,
        threads: ToolThreads,
    ) -> None:
        self._configuration = configuration
        self._agents = configuration.agents
        self._models = models
        self._tools = tools
        self._threads = threads
        self._allowed: dict[str, tuple[str, ...]] = {}  # by profile revision, among the tools at hand
        self._allowed_among = ToolRegistry()
        self._log = structlog.get_logger("insika.turns")

    async def know(self, agent_id: str, channel: str | None) -> None:
        """Look at the store again where this process does not know the agent, its model's provider or the channel:
        whoever accepted the message knew them, so they may have been applied a moment ago. Raises StoreUnavailable."""
        known = channel is None or self._configuration.last_known_channel(channel) is not None
        agent = self._agents.current(agent_id)
        if not known or agent is None or self._models.problem(agent.profile.model, self._hosted()):
            await self._configuration.refresh()

    def cannot_ask(self, model: str) -> str:
        """Why this model, a whole reference, cannot be asked from here as things stand now; "" when it can."""
        return self._models.problem(model, self._hosted()) or self._models.lack(model, self._hosted())

    def begin(self, session: SessionRow, turn_id: str, agent_id: str) -> Staged:
        """A new turn, by the profile as it is now. Raises UnknownAgent, or ProviderFatal for a model that this process
        does not know or has no key for."""
        agent = self._agents.current(agent_id)
        if agent is None:
            raise UnknownAgent(f"there is no agent {agent_id!r}; apply its profile, then send again", field="agent")
        limits = self._configuration.limits(agent, session_thinking(session.vars))
        return self._staged(session, turn_id, agent, limits, limits.turn_timeout_s)

    async def resume(self, session: SessionRow, turn: TurnRow, now: datetime) -> Staged:
        """A running turn, by the revision and limits it began with, and with the time that is left to it at `now`, the
        store's. Raises as `begin` does, and InvalidConfiguration for a revision that this process cannot read."""
        agent = await self._agents.frozen(turn.profile_revision or "")
        if agent is None or turn.limits is None:
            raise UnknownAgent(f"the profile revision of turn {turn.id} is not in the store", field="agent")
        limits = TurnLimits.from_dict(turn.limits)
        staged = self._staged(session, turn.id, agent, limits, limits.turn_timeout_s - worked_s(session, turn, now))
        identity = replace(staged.identity, route=turn.route)
        return replace(staged, identity=identity, depth=turn.depth, routes=turn.routes)

    def hand_on(self, session: SessionRow, staged: Staged, to: HandOn) -> Staged:
        """The same turn for its rest, by another agent's profile as it is now; the time that it has had still counts.
        Raises UnknownAgent, or ProviderFatal as `begin` does."""
        agent, here = self._agents.current(to.agent), staged.profile.id
        if agent is None:
            raise UnknownAgent(
                f"there is no agent {to.agent!r}, to whom the route {to.route!r} hands the turns of {here!r}; apply "
                f"its profile, or mend routes.{to.route}.delegate in the profile of {here!r}",
                field=f"routes.{to.route}.delegate",
            )
        had_s = staged.identity.limits.turn_timeout_s - staged.identity.time_s
        limits = self._configuration.limits(agent, session_thinking(session.vars))
        other = self._staged(session, staged.identity.turn_id, agent, limits, limits.turn_timeout_s - had_s)
        identity = replace(other.identity, route=staged.identity.route)
        return replace(other, identity=identity, depth=to.depth, routes=staged.routes)

    def speaker(self) -> ModelProvider:
        """Speaks for every model that there is."""
        return self._models.speaker(self._hosted())

    def question(self, step: Classify, texts: Sequence[str]) -> ModelRequest:
        """The request to a classifier. What bounds it is what the settings say of its model."""
        params = self._configuration.settings().model_params.get(step.model)
        return (
            question_of(step, texts) if params is None else question_of(step, texts, params.thinking, params.max_tokens)
        )

    def deliveries(self, session: SessionRow, turn_id: str, to: Addressee, answer: Answer) -> tuple[NewDelivery, ...]:
        """The outbox rows of an answer. A channel that this process has never known has nowhere to deliver to."""
        channel = self._configuration.last_known_channel(to.channel) if to.channel is not None else None
        if to.channel is not None and channel is None:
            self._log.warning("answer kept, not delivered: no such channel", turn_id=turn_id, channel=to.channel)
        agent = answer.agent or to.agent
        answered = Answered(session.id, session.name, turn_id, agent, session.tenant, to.recipient, answer.route)
        return answer_deliveries(channel, answered, answer.content, answer.outcome)

    def _staged(self, session: SessionRow, turn_id: str, agent: Agent, limits: TurnLimits, time_s: float) -> Staged:
        profile = agent.profile
        provider = self._provider(profile)
        identity = TurnIdentity(
            turn_id,
            session.id,
            session.name,
            session.tenant,
            profile.id,
            profile.model,
            profile.instructions,
            limits,
            time_s,
            sentences.PAST_BUDGET if limits.past_budget else "",
        )
        toolbox = TurnToolbox(
            self._tools_now(),
            self._threads,
            self._allowed_by(agent),
            lambda name: self._allowed_now(profile.id, name),
            ToolContext(session.tenant, session.name, profile.id, turn_id, ""),
            limits.tool_timeout_s,
            needs_approval=lambda name: self._needs_approval(agent, name),
            on_raised=ToolFailures(turn_id, session.name, profile.id),
        )
        return Staged(identity, profile, agent.revision, limits.as_dict(), provider, toolbox)

    def _provider(self, profile: Profile) -> ModelProvider:
        try:
            self._models.resolve(profile.model, self._hosted())
        except InvalidConfiguration as error:
            why = "; ".join(why for _, why in error.problems)
            where = f"agent {profile.id!r} cannot be run here on {profile.model}"
            raise ProviderFatal(f"{where}: {why}", field="model") from error
        return self.speaker()

    def _hosted(self) -> Sequence[HostedModels]:
        return self._configuration.settings().providers

    def _tools_now(self) -> ToolRegistry:
        return self._tools.under(self._configuration.settings())

    def _allowed_by(self, agent: Agent) -> tuple[str, ...]:
        tools = self._tools_now()
        if tools is not self._allowed_among:
            self._allowed_among, self._allowed = tools, {}
        if agent.revision not in self._allowed:
            profile = agent.profile
            self._allowed[agent.revision] = allowed_tools(
                tools.grouped, profile.tools_allow, profile.tools_deny, profile.tools_allow_groups
            )
        return self._allowed[agent.revision]

    def _needs_approval(self, began_with: Agent, name: str) -> bool:
        # As it is now; and of an agent that was deleted meanwhile, as it was when its turn began.
        current = self._agents.current(began_with.profile.id) or began_with
        return name in current.profile.approvals_required

    def _allowed_now(self, agent_id: str, name: str) -> bool:
        # An agent that was deleted meanwhile denies nothing new: its turn may end as it began.
        current = self._agents.current(agent_id)
        return current is None or name in self._allowed_by(current)


def worked_s(session: SessionRow, turn: TurnRow, now: datetime) -> float:
    """For how many seconds workers have had the session's running turn in their hands, by the store's clock."""
    if turn.started_at is None:
        return 0.0
    # A clock that was set back gives nobody more time than there was.
    return max(0.0, (now - turn.started_at).total_seconds() - session.parked_ms / 1000)
