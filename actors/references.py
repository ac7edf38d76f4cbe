"""Whether what a profile names exists in this process: its model, its tools and their groups.

A profile is checked for itself where it is read; this asks the process that is to run it. Another process may have
other tools, which is why a name that is missing is told and never a reason to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import structlog

from actors.agents import Agent
from actors.samples.demo_agent import demo_profile
from insika.agents.profile import Profile
from insika.errors import InvalidConfiguration
from insika.parsing import did_you_mean
from insika.providers.catalog import ModelCatalog
from insika.providers.offline import OfflineProvider
from insika.tools.registry import ToolRegistry

Problem = tuple[str, str]
"""A dotted path and what is wrong there."""


def model_problems(profile: Profile, models: ModelCatalog) -> Sequence[Problem]:
    """Why no turn of this agent could run here; empty when one could."""
    try:
        provider, name = models.resolve(profile.model)
    except InvalidConfiguration as error:
        return error.problems
    if not isinstance(provider, OfflineProvider) or name in provider.models:
        return ()
    return [("model", f"there is no script {name!r}; there are: {', '.join(provider.models) or 'none'}")]


def tool_warnings(profile: Profile, tools: ToolRegistry) -> Sequence[Problem]:
    """Each name in the profile's tool lists that stands for nothing here: a deny-list with a slip denies nothing, and
    nobody is asked about a tool whose name has one."""
    groups = sorted({group for _, group in tools.grouped if group is not None})
    return [
        *_missing("tools_allow", profile.tools_allow, tools.names, "no tool is called {} here"),
        *_missing("tools_allow_groups", profile.tools_allow_groups, groups, "no tool is in a group called {} here"),
        *_missing("tools_deny", profile.tools_deny, tools.names, "no tool is called {} here"),
        *_missing("approvals_required", profile.approvals_required, tools.names, "no tool is called {} here"),
    ]


def log_what_is_missing(profiles: Iterable[Profile], models: ModelCatalog, tools: ToolRegistry) -> None:
    """One warning for each name that means nothing in this process."""
    log = structlog.get_logger("insika.agents")
    for profile in profiles:
        for path, why in (*model_problems(profile, models), *tool_warnings(profile, tools)):
            log.warning("profile names what is not here", agent=profile.id, field=path, reason=why)


def written_by_users(agents: Iterable[Agent]) -> list[Profile]:
    """The sample agent stays in the store when its tools have made way for others; nobody needs to be told."""
    sample = demo_profile().revision()
    return [agent.profile for agent in agents if agent.revision != sample]


def _missing(key: str, named: Iterable[str] | None, known: Sequence[str], sentence: str) -> list[Problem]:
    return [
        (f"{key}.{at}", sentence.format(repr(name)) + did_you_mean(name, known))
        for at, name in enumerate(named or ())
        if name not in known
    ]
