"""What the log says of a tool that raised: where, and never what."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from actors.tool_failures import ToolFailures
from insika.messages import ToolCall
from insika.tools.invoke import run_tool
from insika.tools.python_tools import tool
from insika.tools.threads import ToolThreads
from insika.tools.tool import ToolContext


@tool
def blocking(order_id: str) -> str:
    raise LookupError(f"no order {order_id}")


@tool
async def on_loop(order_id: str) -> str:
    raise LookupError(f"no order {order_id}")


@pytest.mark.parametrize(("failing", "line"), [(blocking, 18), (on_loop, 23)])
async def test_a_tool_that_raises_is_told_by_its_place_and_not_by_its_words(failing, line) -> None:
    context = ToolContext("", "ana", "shop", "t1", "c1")
    with capture_logs() as logs:
        outcome = await run_tool(
            failing,
            ToolCall("c1", failing.name, {"order_id": "secret-1234"}),
            context,
            30,
            ToolThreads(),
            on_raised=ToolFailures("t1", "ana", "shop"),
        )
    assert outcome.is_error
    assert logs == [
        {
            "event": "tool_failed",
            "log_level": "warning",
            "tool": failing.name,
            "call_id": "c1",
            "error": "LookupError",
            "raised_at": f"{__file__}:{line}",
            "turn_id": "t1",
            "session": "ana",
            "agent": "shop",
        }
    ]
