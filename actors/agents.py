"""The agents of this process: every profile revision it has met, and which one is current.

Revisions never change, so they are kept once read; only which one is current is asked again, by `refresh`. A turn
goes on with the revision it began with, whatever was applied since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from insika.agents.profile import Profile, load_profile
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

    async def refresh(self) -> None:
        """Learn which revisions are current. Raises StoreUnavailable; what was known stays."""
        self._current = {row.name: self._learn(row) for row in await self._store.current_profiles()}

    def current(self, agent: str) -> Agent | None:
        return self._current.get(agent)

    async def frozen(self, revision: str) -> Agent | None:
        """The revision a turn began with; None if the store does not have it."""
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
