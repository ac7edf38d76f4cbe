"""The tools of one turn: which of the process's tools this agent is offered and may use, and how its calls are run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from insika.messages import ToolCall
from insika.ports import CallOutcome, ToolSpec
from insika.tools.invoke import OnRaised, OutcomeKind, ToolOutcome, nobody_hears, refuse_call, run_tool
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads, TurnThreads
from insika.tools.tool import Tool, ToolContext
from insika.turn import sentences


class TurnToolbox:
    """A `Toolbox` over a registry.

    `offered`: the names that the turn's frozen profile allows; one that is not in the registry any more is left out.
    `may_use` says whether a name is still allowed now, `needs_approval` whether a person must approve its calls: both
    are asked each time. `context` is the turn's; each call gets it with its own id. `timeout_s` is for tools that have
    no limit of their own. `on_raised` hears of what tools raise.
    """

    def __init__(  # noqa: PLR0917 - six, of which two are the process's and four the turn's
        self,
        registry: ToolRegistry,
        threads: ToolThreads,
        offered: Iterable[str],
        may_use: Callable[[str], bool],
        context: ToolContext,
        timeout_s: float,
        *,
        needs_approval: Callable[[str], bool],
        on_raised: OnRaised = nobody_hears,
    ) -> None:
        self._tools = {name: tool for name in offered if (tool := registry.get(name)) is not None}
        self._specs = registry.specs(self._tools)
        self._threads = TurnThreads(threads)
        self._may_use = may_use
        self._needs_approval = needs_approval
        self._context = context
        self._timeout_s = timeout_s
        self._on_raised = on_raised

    def specs(self) -> Sequence[ToolSpec]:
        return self._specs

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name) if self._may_use(name) else None

    def repeatable(self, name: str) -> bool:
        tool = self._tools.get(name)
        return tool is not None and tool.repeatable

    def needs_approval(self, name: str) -> bool:
        return self._needs_approval(name)

    @property
    def in_threads(self) -> int:
        """Calls of this turn that are in a thread now, with those that were given up and have not returned."""
        return self._threads.running

    def refuse(self, call: ToolCall) -> CallOutcome | None:
        tool = self.find(call.name)
        if tool is None:
            return _missing(call)
        refused = refuse_call(tool, call)
        return None if refused is None else _as_port(refused)

    async def run(self, call: ToolCall, step: int) -> CallOutcome:
        tool = self.find(call.name)
        if tool is None:
            return _missing(call)
        context = dataclasses.replace(self._context, call_id=call.id)
        outcome = await run_tool(tool, call, context, self._timeout_s, self._threads, on_raised=self._on_raised)
        return _as_port(outcome)


def _missing(call: ToolCall) -> CallOutcome:
    return CallOutcome(sentences.tool_not_available(call.name), is_error=True)


def _as_port(outcome: ToolOutcome) -> CallOutcome:
    return CallOutcome(outcome.content, outcome.is_error, outcome.halts, cut=outcome.kind is OutcomeKind.CUT)
