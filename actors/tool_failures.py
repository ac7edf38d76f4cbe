"""Says in the log that a tool raised, and where: what it raised may quote a person, so its text is not written."""

from __future__ import annotations

import traceback

import structlog


class ToolFailures:
    """`on_raised` of one turn's toolbox."""

    def __init__(self, turn_id: str, session: str, agent: str) -> None:
        self._log = structlog.get_logger("insika.tools").bind(turn_id=turn_id, session=session, agent=agent)

    def __call__(self, tool: str, call_id: str, error: BaseException, /) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        raised_at = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
        self._log.warning("tool_failed", tool=tool, call_id=call_id, error=type(error).__name__, raised_at=raised_at)
