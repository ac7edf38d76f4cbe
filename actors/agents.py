"""The agents of this process: every profile revision it has met, and which one is current.

Revisions never change, so they are kept once read; only which one is current is asked again, by `refresh`. A turn
goes on with the revision it began with, whatever was applied since.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import structlog

from insika.agents.profile import Profile, load_profile
from insika.errors import InvalidConfiguration
from insika.storage.port import ConfigurationStore
from insika.storage.rows import Revision


@dataclass(frozen=True, slots=True)
class Agent:
    """One revision of one agent."""

    profile: Profile
    revision: str


class AgentDirectory:
    def __init__(self, store: ConfigurationStore) -> None:
        self._store = store
        self._known: dict[str, Agent] = {}
        self._current: Mapping[str, Agent] = {}
        self._unreadable: set[str] = set()
        self._log = structlog.get_logger("insika.agents")

    async def refresh(self) -> None:
        """Learn which revisions are current. Raises StoreUnavailable; what was known stays.

        A profile that this process cannot read, because another version wrote it, is nobody here; the rest are."""
        current = {}
        for row in await self._store.current_profiles():
            if row.revision in self._unreadable:
                continue
            try:
                current[row.name] = self._learn(row)
            except InvalidConfiguration as error:
                self._unreadable.add(row.revision)
                self._log.error("profile not read", agent=row.name, reason=error.message)
        self._current = current

    def current(self, agent: str) -> Agent | None:
        return self._current.get(agent)

    def all_current(self) -> Collection[Agent]:
        return self._current.values()

    async def frozen(self, revision: str) -> Agent | None:
        """The revision a turn began with; None if the store does not have it. Raises InvalidConfiguration for one
        that this process cannot read."""
        if revision not in self._known:
            row = await self._store.profile(revision)
            if row is None:
                return None
            self._learn(row)
        return self._known[revision]

    def _learn(self, row: Revision) -> Agent:
        known = self._known.get(row.revision)
        if known is None:
            known = Agent(load_profile(row.data, f"profile {row.name}, revision {row.revision[:12]}"), row.revision)
            self._known[row.revision] = known
        return known
