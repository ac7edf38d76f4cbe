"""What the turns of a process reach the world through, put together: the same in a worker and embedded."""

from __future__ import annotations

from actors.admission import KeptLimits
from actors.configuration import Configuration
from actors.environment import Environment
from actors.guarding import outgoing_by, profile_guard
from actors.moderators import KnownModerators
from actors.own_policies import PolicedAdmissions
from actors.parts import Parts
from actors.reliable_turns import ReliableTurns
from actors.stage import Stage
from actors.token_counts import WindowTokenCounts
from actors.tool_set import ToolSet
from actors.wakes import Wakes
from actors.world import World
from insika.coordination.port import Coordination
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.storage.port import Store
from insika.tools.threads import ToolThreads


def turn_world(  # noqa: PLR0917 - what a process has opened, once
    environment: Environment,
    parts: Parts,
    store: Store,
    configuration: Configuration,
    tools: ToolSet,
    coordination: Coordination,
    wakes: Wakes,
) -> World:
    stage = Stage(configuration, parts.models, tools, ToolThreads(environment.slots))
    guards = Guards(read_library())
    limits = KeptLimits(configuration, coordination.windows, store)
    return World(
        store,
        stage,
        coordination.events,
        parts.clock,
        wakes,
        parts.crash,
        profile_guard(configuration, stage, guards),
        turn_timing=environment.turn_timing,
        depth_cap=environment.subagent_depth_cap,
        policies=ReliableTurns(configuration, coordination.circuits, store, parts.clock, stage.cannot_ask),
        admissions=PolicedAdmissions(limits, parts.policies, ToolThreads(environment.slots)),
        tokens=WindowTokenCounts(configuration, coordination.windows, store),
        outgoing=outgoing_by(guards),
        moderators=KnownModerators(configuration, stage, guards),
    )
