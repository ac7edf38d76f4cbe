"""Counts in the windows of the edge limits what a turn's model calls have cost, as their rows say it.

A call is counted once, whoever reports it and how often; so all of a turn's settled rows are told at each of its ends
and pauses, by whichever owner comes to one. A report that is lost makes a ceiling a little higher, and loses nothing
else: budgets are summed up from the rows themselves.
"""

from __future__ import annotations

from typing import Protocol

from actors.configuration import Configuration
from insika.limits.windows import EdgeWindows, SettledTokens
from insika.storage.port import ReadStore, StoreUnavailable


class TokenCounts(Protocol):
    async def of(self, tenant: str, turn_id: str, agent: str | None) -> None:
        """Count the settled model calls of this turn, which `agent` alone has had; None: others may have had it, too.
        Never raises."""
        ...


class NoTokenCounts:
    async def of(self, tenant: str, turn_id: str, agent: str | None) -> None:
        return None


class WindowTokenCounts:
    def __init__(self, configuration: Configuration, windows: EdgeWindows, rows: ReadStore) -> None:
        self._configuration = configuration
        self._windows = windows
        self._rows = rows

    async def of(self, tenant: str, turn_id: str, agent: str | None) -> None:
        if agent is not None and not self._window_s(agent):
            return
        try:
            rows = await self._rows.model_calls(turn_id)
        except StoreUnavailable:
            return
        for row in rows:
            window_s = self._window_s(row.agent)
            if row.state != "open" and window_s:
                call = (row.turn_id, row.step, row.attempt, row.purpose, row.usage.total)
                self._windows.spend(SettledTokens(tenant, row.agent, window_s, *call))

    def _window_s(self, agent_id: str) -> int:
        """0: this agent has no ceiling."""
        agent = self._configuration.agents.current(agent_id)
        if agent is None:
            return 0
        rules = self._configuration.edge_rules(agent.profile)
        return rules.agent_token_window_s if rules.agent_token_ceiling > 0 else 0
