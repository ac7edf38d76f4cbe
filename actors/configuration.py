"""What this process knows of the configuration in the store, and how files get into it.

The store holds what is in force. A file is applied at boot; what an operator changed later stays in force until that
file changes. Whoever asks here gets what was in force at the last `refresh`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from actors.agents import Agent, AgentDirectory
from insika.agents.limits import TurnLimits, turn_limits
from insika.agents.profile import Profile
from insika.channels import Channel
from insika.choices import Thinking
from insika.config_files import load_profile_folder, load_settings_file
from insika.errors import InvalidConfiguration
from insika.limits.edge import EdgeRules
from insika.parsing import Document
from insika.settings import Settings, load_settings
from insika.storage.port import ConfigurationStore
from insika.storage.rows import Revision

OPERATOR = "operator"

Objections = Callable[[Settings], Sequence[tuple[str, str]]]
"""What a process has against settings that are well-formed: dotted paths, and why they cannot hold here."""


def no_objections(settings: Settings) -> Sequence[tuple[str, str]]:
    return ()


class Configuration:
    """Settings that there are `objections` to are not taken: a file with such is not applied."""

    def __init__(self, store: ConfigurationStore, objections: Objections = no_objections) -> None:
        self._store = store
        self._objections = objections
        self._settings = Settings()
        self._settings_revision = ""
        self._refused = ""
        self._informed = False
        self._log = structlog.get_logger("insika.configuration")
        self._limits: dict[tuple[str, Thinking | None], TurnLimits] = {}  # under the settings at hand
        self._channels: dict[str, Channel] = {}
        self.agents = AgentDirectory(store)

    def settings(self) -> Settings:
        return self._settings

    def last_known_channel(self, id: str) -> Channel | None:
        """The channel as it is, or as this process last knew it: what was said to be delivered there still is."""
        return self._channels.get(id)

    def alert_webhook(self, agent_id: str) -> str | None:
        """Where the operators of this agent want to be told, as things stand; None: nowhere."""
        agent = self.agents.current(agent_id)
        alerts = agent.profile.alerts if agent is not None else None
        return alerts.webhook if alerts is not None else None

    def limits(self, agent: Agent, session_thinking: Thinking | None = None) -> TurnLimits:
        """What bounds a turn of this agent that begins now; `session_thinking`: what the session has of its own."""
        known = (agent.revision, session_thinking)
        if known not in self._limits:
            self._limits[known] = turn_limits(agent.profile, self._settings, session_thinking=session_thinking)
        return self._limits[known]

    def edge_rules(self, profile: Profile) -> EdgeRules:
        """The edge limits in force for an agent, by this profile of it and the platform's settings."""
        return edge_rules(profile, self._settings)

    async def apply_files(self, settings_file: Path | None, agents_dir: Path | None) -> None:
        """Apply what the environment names, where it has changed. Raises InvalidConfiguration, before anything of the
        faulty file is applied."""
        settings = self._unopposed(load_settings_file(settings_file), settings_file) if settings_file else None
        profiles = load_profile_folder(agents_dir) if agents_dir is not None else ()
        if settings is not None:
            await self._store.apply_settings(settings.revision(), settings.document(), file_source(settings.revision()))
        await self.apply_profiles(profiles, from_file=True)

    async def apply_profiles(self, profiles: Iterable[Profile], *, from_file: bool) -> list[str]:
        """The ids of those that made a difference."""
        changed = []
        for profile in profiles:
            revision = profile.revision()
            source = file_source(revision) if from_file else OPERATOR
            if await self._store.apply_profile(profile.id, revision, profile.document(), source):
                changed.append(profile.id)
        return changed

    async def refresh(self) -> None:
        """Learn what is in force. Raises StoreUnavailable; what was known stays. So it does when there are settings
        that this process cannot read or objects to; only the first time, this raises InvalidConfiguration."""
        row = await self._store.current_settings()
        if row is not None and row.revision not in (self._settings_revision, self._refused):
            self._learn(row)
        self._informed = True
        await self.agents.refresh()

    def _learn(self, row: Revision) -> None:
        where = f"settings revision {row.revision[:12]}"
        try:
            self._settings = self._unopposed(load_settings(dict(row.data), where), where)
        except InvalidConfiguration as error:
            if not self._informed:
                raise
            self._refused = row.revision
            self._log.error("settings not taken, the old ones hold", reason=error.message)
            return
        self._settings_revision = row.revision
        self._limits.clear()
        self._channels.update((channel.id, channel) for channel in self._settings.channels)

    def _unopposed(self, settings: Settings, where: str | Path) -> Settings:
        if problems := self._objections(settings):
            raise InvalidConfiguration(str(where), list(problems))
        return settings


def edge_rules(profile: Profile, settings: Settings) -> EdgeRules:
    return EdgeRules.of(_given(profile.limits, _EDGE_KEYS), _given(settings.edge, type(settings.edge).model_fields))


_EDGE_KEYS = ("chat_rate_limit", "agent_token_ceiling")


def _given(document: Document, keys: Iterable[str]) -> Mapping[str, Any]:
    """Those of its keys that were written down, whatever they hold."""
    written = document.model_fields_set
    return {key: getattr(document, key) for key in keys if key in written}


def file_source(revision: str) -> str:
    return f"file:{revision}"
