"""Whether what a profile names exists in this process: its model, its model's key, its tools and their groups,
its policies.

A profile is checked for itself where it is read; this asks the process that is to run it. Another process may have
other tools and keys, which is why one that is missing is told and never a reason to refuse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import structlog

from actors.agents import Agent
from actors.configuration import Configuration
from actors.parts import Parts
from actors.samples.demo_agent import is_sample
from actors.tool_set import ToolSet
from insika.agents.policies import Policy
from insika.agents.profile import Profile
from insika.model_endpoints import HostedModels
from insika.parsing import did_you_mean
from insika.pattern_files import read_library
from insika.policy.own import OwnPolicies
from insika.providers.catalog import ModelCatalog
from insika.providers.offline import OfflineProvider
from insika.tools.registry import ToolRegistry

Problem = tuple[str, str]
"""A dotted path and what is wrong there."""


def model_problems(profile: Profile, models: ModelCatalog, given: Sequence[HostedModels]) -> Sequence[Problem]:
    """Why no turn of this agent could run with these models, whatever keys there are; empty when one could. `given`:
    the providers of the settings."""
    why = _model_problem(profile.model, models, given)
    return [("model", why)] if why else ()


def _model_problem(reference: str, models: ModelCatalog, given: Sequence[HostedModels]) -> str:
    if why := models.problem(reference, given):
        return why
    provider, name = models.own(reference), reference.partition("/")[2]
    if not isinstance(provider, OfflineProvider) or name in provider.models:
        return ""
    return f"there is no script {name!r}; there are: {', '.join(provider.models) or 'none'}"


def key_warnings(profile: Profile, models: ModelCatalog, given: Sequence[HostedModels]) -> Sequence[Problem]:
    """What a process with this environment lacks to ask the agent's model; empty when it lacks nothing."""
    why = models.lack(profile.model, given)
    return [("model", why)] if why else ()


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


def policy_warnings(profile: Profile, policies: OwnPolicies) -> Sequence[Problem]:
    """Each of the user's own policies that the profile names and that is not here."""
    sentence = "no policy is called {} here, and where none is, no turn of this agent begins"
    known = (*policies.names, *Policy)
    return _missing("policies", profile.policies, known, sentence)


def further_model_warnings(profile: Profile, models: ModelCatalog, given: Sequence[HostedModels]) -> Sequence[Problem]:
    """Why a model that the profile names beside the agent's own cannot be asked from here, and what that comes to."""
    found: list[Problem] = []
    for path, model, otherwise in _further_models(profile):
        if why := _model_problem(model, models, given) or models.lack(model, given):
            found.append((path, f"{why}; {otherwise}"))
    return found


def _further_models(profile: Profile) -> Iterator[tuple[str, str, str]]:
    if profile.routes is not None and profile.routes.model is not None:
        yield "routes.model", profile.routes.model, "without it turns go unrouted"
    for at, model in enumerate(profile.reliability.fallback if profile.reliability is not None else ()):
        yield f"reliability.fallback.{at}", model, "it is passed over"
    if profile.guards.moderator is not None:
        yield "guardrails.moderator", profile.guards.moderator, "without it nothing is moderated but by the patterns"


def delegate_warnings(profile: Profile, known: Collection[str]) -> Sequence[Problem]:
    """Each agent that a route hands turns to and that is not among the `known` ones, or is this agent itself."""
    found: list[Problem] = []
    for name, route in profile.routes.routes.items() if profile.routes is not None else ():
        path, agent = f"routes.{name}.delegate", route.delegate
        if agent == profile.id:
            found.append((path, "hands the turn to the agent that has it, which only uses up how often it may be"))
        elif agent is not None and agent not in known:
            sentence = f"there is no agent {agent!r} here, and where there is none, a turn of this route fails"
            found.append((path, sentence + did_you_mean(agent, sorted(known))))
    return found


def guard_warnings(profile: Profile) -> Sequence[Problem]:
    """Each name in what the profile removes from its guardrails that stands for nothing in this version."""
    removed = profile.guards.remove
    return (
        _missing("guardrails.remove", removed, read_library().removable, "there is no pattern or kind {}")
        if removed
        else ()
    )


def log_what_is_missing(configuration: Configuration, parts: Parts, tools: ToolSet, *, runs_turns: bool) -> None:
    """One warning for each name that means nothing in this process. `runs_turns`: it needs the keys of models, the
    secrets of tools, and policies."""
    log = structlog.get_logger("insika.agents")
    settings = configuration.settings()
    here, given, models = tools.under(settings), settings.providers, parts.models
    agents = configuration.agents.all_current()
    known = {agent.profile.id for agent in agents}
    for profile in written_by_users(agents):
        missing = [*model_problems(profile, models, given), *tool_warnings(profile, here), *guard_warnings(profile)]
        missing += delegate_warnings(profile, known)
        if runs_turns:
            missing += [*key_warnings(profile, models, given), *further_model_warnings(profile, models, given)]
            missing += policy_warnings(profile, parts.policies)
        for path, why in missing:
            log.warning("profile names what is not here", agent=profile.id, field=path, reason=why)
    for path, why in tools.unset_variables(settings) if runs_turns else ():
        log.warning("settings name what is not here", field=path, reason=why)


def written_by_users(agents: Iterable[Agent]) -> list[Profile]:
    """The sample agent stays in the store when its tools have made way for others; nobody needs to be told."""
    return [agent.profile for agent in agents if not is_sample(agent.profile.document())]


def _missing(key: str, named: Iterable[str] | None, known: Sequence[str], sentence: str) -> list[Problem]:
    return [
        (f"{key}.{at}", sentence.format(repr(name)) + did_you_mean(name, known))
        for at, name in enumerate(named or ())
        if name not in known
    ]
