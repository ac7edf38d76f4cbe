"""Whether the settings and the profiles in force, and the files they come from, can be read here, and whether what the
agents name is here: their models and tools."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from actors.configuration import edge_rules
from actors.doctor.finding import Finding, fail, ok, warn
from actors.parts import Parts
from actors.references import (
    delegate_warnings,
    further_model_warnings,
    guard_warnings,
    model_problems,
    policy_warnings,
    tool_warnings,
)
from actors.samples.demo_agent import is_sample
from insika.agents.profile import Profile, load_profile
from insika.errors import InvalidConfiguration
from insika.model_endpoints import HostedModels
from insika.settings import Settings, load_settings
from insika.storage.rows import Revision
from insika.text import counted

SETTINGS = "settings"
AGENTS = "agents"
TOOLS = "tools"


def read_settings(row: Revision | None) -> Settings | Finding:
    """The settings in force, or why they cannot be read."""
    if row is None:
        return Settings()
    try:
        return load_settings(dict(row.data), f"settings revision {row.revision[:12]}")
    except InvalidConfiguration as error:
        what = f"The settings in force cannot be read: {_listed(error)}."
        return fail(SETTINGS, what, "Apply settings that this version reads: insika settings apply FILE")


def read_profiles(rows: Iterable[Revision]) -> tuple[list[Profile], list[Finding]]:
    """The agents in force, and those that cannot be read. The sample agent is nobody's to mend, and left out."""
    profiles, findings = [], []
    for row in rows:
        try:
            profile = load_profile(dict(row.data), row.name)
        except InvalidConfiguration as error:
            what = f"Agent {row.name} cannot be read, so that its jobs are rejected: {_listed(error)}."
            findings.append(fail(AGENTS, what, "Apply a profile that this version reads: insika agents apply FILE"))
            continue
        if not is_sample(row.data):
            profiles.append(profile)
    return profiles, findings


def unreadable_file(variable: str, error: InvalidConfiguration | str) -> Finding:
    """A file that processes apply when they start."""
    why = error if isinstance(error, str) else f"{error.where}: {_listed(error)}"
    about = AGENTS if variable == "INSIKA_AGENTS_DIR" else SETTINGS
    return fail(about, f"What {variable} names cannot be applied, and no process starts: {why}.", "Mend that file.")


def unusable_tools(error: InvalidConfiguration | str) -> Finding:
    why = error if isinstance(error, str) else _listed(error)
    return fail(TOOLS, f"INSIKA_TOOLS cannot be used, and no worker starts: {why}.", "Mend the module it names.")


def judged(profiles: Sequence[Profile], parts: Parts | None, given: Sequence[HostedModels] = ()) -> Iterator[Finding]:
    """`parts`: the models and tools of this process; None where they could not be read. `given`: the providers of the
    settings."""
    if not profiles:
        yield warn(AGENTS, "There are no agents, so every job is rejected.", "Run: insika agents apply FILE")
    elif parts is not None:
        ids = {profile.id for profile in profiles}
        lacking = [finding for profile in profiles for finding in _lacking(profile, ids, parts, given)]
        yield from lacking or [ok(AGENTS, f"{counted(len(profiles), 'agent')}; what they name is here.")]


def _lacking(
    profile: Profile, known: Collection[str], parts: Parts, given: Sequence[HostedModels]
) -> Iterator[Finding]:
    do = "Correct the profile, or have INSIKA_TOOLS name the module, in the environment of each worker."
    for path, why in model_problems(profile, parts.models, given):
        provide = "Correct the profile, or name the provider in the settings: insika settings apply FILE"
        hosted = parts.models.own(profile.model) is None
        what = f"Agent {profile.id} cannot run with what is here: {path}: {why}."
        yield fail(AGENTS, what, provide if hosted else do)
    named = (
        *further_model_warnings(profile, parts.models, given),
        *delegate_warnings(profile, known),
        *tool_warnings(profile, parts.tools),
        *policy_warnings(profile, parts.policies),
        *guard_warnings(profile),
    )
    for path, why in named:
        yield warn(AGENTS, f"Agent {profile.id} names what is not here: {path}: {why}.", do)


def public(profiles: Sequence[Profile], settings: Settings) -> Iterator[Finding]:
    """Which agents each public channel is taken for."""
    bounded = [profile.id for profile in profiles if edge_rules(profile, settings).for_the_public]
    for channel in settings.channels if profiles else ():
        if channel.public and bounded:
            few = ", ".join(bounded) if len(bounded) < len(profiles) else "every agent"
            yield ok(AGENTS, f"Channel {channel.id} is public, and taken for {few}.")
        elif channel.public:
            what = (
                f"Channel {channel.id} is public, and no agent has a chat_rate_limit in force: its jobs are rejected."
            )
            yield warn(
                AGENTS, what, "Set limits.chat_rate_limit in a profile, or edge.chat_rate_limit in the settings."
            )


def _listed(error: InvalidConfiguration) -> str:
    return "; ".join(f"{path or '(top level)'}: {why}" for path, why in error.problems)
