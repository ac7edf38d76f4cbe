"""A process is killed by the system while an HTTP tool of its settings waits for its answer: what changed the world is
unknown and not sent again, and what bears a repeat is sent again under the same key."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from actors.environment import Environment
from insika.turn import sentences
from tests.faults.child import Child
from tests.faults.lives import OUTLIVES_EVERYTHING_S
from tests.faults.shop import configured, job
from tests.faults.verdict import Evidence, settled

PARAMETERS = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "gate": {"type": "string"}},
    "required": ["order"],
}


@dataclass
class Warehouse:
    """`asked`: the tools that reached it, with the key of each. It answers nobody until `open`."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, request.headers["Idempotency-Key"]))
        self.reached.set()
        await self.open.wait()
        return web.json_response({"done": request.path})

    def tool(self, name: str, **promises: Any) -> dict[str, Any]:
        request = {
            "method": "PUT",
            "url": f"{self.url}/{name}",
            "headers": {"Idempotency-Key": "%{context.idempotency_key}"},
            "body": {"order": "%{arguments.order}"},
        }
        return {"name": name, "description": "d", "parameters": PARAMETERS, "request": request, **promises}


@pytest.fixture
async def warehouse() -> AsyncIterator[Warehouse]:
    made = Warehouse()
    app = web.Application()
    app.router.add_put("/{tool}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def with_tools(folder: Path, *tools: dict[str, Any]) -> Environment:
    environment = configured(folder, "http://127.0.0.1:9/")
    assert environment.settings is not None
    settings = yaml.safe_load(environment.settings.read_text())
    environment.settings.write_text(yaml.safe_dump({**settings, "http_tools": list(tools)}))
    return environment


async def killed_within(tmp_path: Path, warehouse: Warehouse, **promises: Any) -> Evidence:
    environment = with_tools(tmp_path, warehouse.tool("ship", **promises))
    async with Child(tmp_path, environment, "first") as first:
        await first.send({name: it for name, it in job("s", "j", "A: ship").items() if name != "channel"})
        await warehouse.reached.wait()
        first.signal(signal.SIGKILL)
        assert await first.ends() == -signal.SIGKILL
    warehouse.open.set()
    async with Child(tmp_path, environment, "second", ahead_s=OUTLIVES_EVERYTHING_S) as second:
        await second.hears("turn_completed")
        await settled(tmp_path / "insika.db")
    return Evidence.gathered(tmp_path, [])


async def test_a_request_that_changes_the_world_is_unknown_after_a_kill(tmp_path: Path, warehouse: Warehouse) -> None:
    evidence = await killed_within(tmp_path, warehouse)
    (call,) = evidence.tool_calls
    assert (call["state"], call["result"]) == ("unknown", sentences.UNKNOWN_OUTCOME)
    assert len(warehouse.asked) == 1


async def test_one_that_bears_a_repeat_is_sent_again_under_the_same_key(tmp_path: Path, warehouse: Warehouse) -> None:
    evidence = await killed_within(tmp_path, warehouse, idempotent=True)
    (call,) = evidence.tool_calls
    assert (call["state"], call["result"]) == ("done", '{"done":"/ship"}')
    assert len(warehouse.asked) == 2
    assert len(set(warehouse.asked)) == 1
