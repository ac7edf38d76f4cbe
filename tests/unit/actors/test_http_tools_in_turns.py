"""Turns that call HTTP tools: offered and denied as the settings in force say, approved, halting, and never twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from actors.control import Control
from actors.embedded import Embedded, Parts
from actors.environment import Environment
from insika.agents.profile import load_profile
from insika.clock import SystemClock
from insika.errors import InvalidConfiguration
from insika.providers.catalog import ModelCatalog
from insika.settings import load_settings
from insika.storage.rows import ApprovalDecision, CallState
from insika.testing import Call, Calls, Rule, Say, Script, ScriptedModel
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry
from insika.turn import sentences
from tests.receivers import LyingReceiver, closes_after_reading

PATIENCE_S = 20.0
TOKEN = "t0ken-of-the-shop"
PARAMETERS = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


@dataclass
class Shop:
    """Answers with what it was asked, and writes it down. `held`: answers once it is told to go on."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    authorized: list[str | None] = field(default_factory=list)
    held: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.raw_path}")
        self.authorized.append(request.headers.get("Authorization"))
        self.reached.set()
        if self.held:
            await self.go_on.wait()
        return web.json_response({"asked": request.raw_path, "by": request.headers.get("Authorization")})


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    made = Shop()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def described(shop_url: str, name: str = "lookup", method: str = "GET", **more: Any) -> dict[str, Any]:
    request = {"method": method, "url": f"{shop_url}/{name}/%{{arguments.id}}"}
    return {"name": name, "description": f"It is {name}.", "parameters": PARAMETERS, "request": request, **more}


def calling(*names: str) -> Script:
    """Every turn makes these calls, one a step, and says what they came to."""
    steps = [Call(name, {"id": "7"}) for name in names]
    return Script(rules=[Rule([*steps, Say("Done.")])], disobeys=True)


@asynccontextmanager
async def process(
    folder: Path, script: Script, *tools: dict[str, Any], own: Any = (), **profile: Any
) -> AsyncIterator[Embedded]:
    environment = Environment(
        database_url=f"sqlite:///{folder / 'insika.db'}", egress_allow_http=True, egress_allow_private=True
    )
    parts = Parts(ModelCatalog({"offline": ScriptedModel(script)}), ToolRegistry(own), variables={"SHOP_TOKEN": TOKEN})
    insika = await Embedded.open(environment, parts)
    await put_in_force(insika, *tools)
    agent = load_profile({"id": "agent", "model": "offline/script", **profile}, "test")
    await insika.configuration.apply_profiles([agent], from_file=False)
    await insika.configuration.refresh()
    with capture_logs():
        async with asyncio.timeout(PATIENCE_S), insika:
            yield insika


async def put_in_force(insika: Embedded, *tools: dict[str, Any]) -> None:
    loaded = load_settings({"http_tools": list(tools)}, "test")
    await insika.store.apply_settings(loaded.revision(), loaded.document(), "operator")
    await insika.configuration.refresh()


async def take(insika: Embedded, text: str = "hello") -> None:
    await insika.ingress.take(json.dumps({"session": "ann", "agent": "agent", "text": text}).encode())


async def said(insika: Embedded, text: str = "hello") -> list[str]:
    """What the conversation holds after one message: results of tools, and answers."""
    await take(insika, text)
    await insika.runtime.idle()
    session = await insika.store.session("ann")
    assert session is not None
    entries = await insika.store.messages(session.id)
    return [entry.message.content for entry in entries if entry.message.role != "user" and not entry.message.tool_calls]


async def test_a_turn_calls_an_http_tool_and_its_secret_is_in_no_table(tmp_path: Path, shop: Shop) -> None:
    secret = {"secret_headers": {"Authorization": "Bearer %{env.SHOP_TOKEN}"}}
    async with process(tmp_path, calling("lookup"), described(shop.url, **secret)) as insika:
        assert await said(insika) == ['{"asked":"/lookup/7","by":"Bearer ***"}', "Done."]
        assert shop.authorized == [f"Bearer {TOKEN}"]
        dump = await insika.store.database.read(lambda connection: "\n".join(connection.iterdump()))
    assert "SHOP_TOKEN" in dump
    assert TOKEN not in dump


async def test_settings_hold_from_the_next_turn_on(tmp_path: Path, shop: Shop) -> None:
    async with process(tmp_path, calling("lookup")) as insika:
        assert await said(insika) == [sentences.tool_not_available("lookup"), "Done."]
        await put_in_force(insika, described(shop.url))
        assert (await said(insika))[2:] == ['{"asked":"/lookup/7","by":null}', "Done."]
        moved = {**described(shop.url), "request": {"url": f"{shop.url}/elsewhere/%{{arguments.id}}"}}
        await put_in_force(insika, moved)
        assert (await said(insika))[4:] == ['{"asked":"/elsewhere/7","by":null}', "Done."]
        await put_in_force(insika)
        assert (await said(insika))[6:] == [sentences.tool_not_available("lookup"), "Done."]
    assert shop.asked == ["GET /lookup/7", "GET /elsewhere/7"]


async def test_a_tool_that_leaves_the_settings_is_denied_to_the_running_turn(tmp_path: Path, shop: Shop) -> None:
    shop.held = True
    tools = [described(shop.url, "one"), described(shop.url, "two")]
    async with process(tmp_path, calling("one", "two"), *tools) as insika:
        await take(insika)
        await shop.reached.wait()
        await put_in_force(insika, tools[0])
        shop.go_on.set()
        await insika.runtime.idle()
        session = await insika.store.session("ann")
        assert session is not None
        results = [e.message.content for e in await insika.store.messages(session.id) if e.message.role == "tool"]
    assert results == ['{"asked":"/one/7","by":null}', sentences.tool_not_available("two")]
    assert shop.asked == ["GET /one/7"]


async def test_the_words_of_the_settings_end_a_turn(tmp_path: Path, shop: Shop) -> None:
    halting = described(shop.url, halt_when={"path": "$.asked", "say": "Asked at %{result.asked}."})
    async with process(tmp_path, calling("lookup", "lookup"), halting) as insika:
        await said(insika)
        (turn,) = await insika.store.turns((await insika.store.session("ann")).id)  # type: ignore[union-attr]
        entries = await insika.store.messages((await insika.store.session("ann")).id)  # type: ignore[union-attr]
    assert turn.outcome == "halted"
    assert entries[-1].message.content == "Asked at /lookup/7."
    assert shop.asked == ["GET /lookup/7"]


# --- names, letter for letter


NAMES = ["pay", "Pay", "PAY", "pay_", "p_ay", "p-ay"]


@pytest.mark.parametrize("allowed", NAMES)
async def test_names_that_differ_by_a_letter_are_different_tools_and_permissions(
    tmp_path: Path, shop: Shop, allowed: str
) -> None:
    tools = [described(shop.url, name) for name in NAMES]
    async with process(tmp_path, calling(*NAMES), *tools, tools_allow=[allowed]) as insika:
        results = await said(insika)
    assert shop.asked == [f"GET /{allowed}/7"]
    assert [name for name, result in zip(NAMES, results, strict=False) if "asked" in result] == [allowed]


async def test_approval_and_denial_are_for_the_name_as_it_is_written(tmp_path: Path, shop: Shop) -> None:
    tools = [described(shop.url, name, "POST") for name in ("pay", "Pay", "PAY")]
    script = Script(rules=[Rule([Calls([Call(name, {"id": "7"}) for name in ("pay", "Pay", "PAY")]), Say("Done.")])])
    profile = {"tools_deny": ["PAY"], "approvals_required": ["Pay"]}
    async with process(tmp_path, script, *tools, **profile) as insika:
        await take(insika)
        await insika.runtime.idle()
        assert shop.asked == ["POST /pay/7"]
        (asked,) = await insika.store.approvals()
        assert asked.approval.tool == "Pay"
        control = Control(insika.store, insika.bus, insika.bus, insika.events, SystemClock())
        await control.decide(asked.approval.id, ApprovalDecision.APPROVED, by="ann")
        await insika.runtime.idle()
        session = await insika.store.session("ann")
        assert session is not None
        results = [e.message.content for e in await insika.store.messages(session.id) if e.message.role == "tool"]
    assert shop.asked == ["POST /pay/7", "POST /Pay/7"]
    assert results[2] == sentences.tool_not_available("PAY")


async def test_a_name_that_is_taken_keeps_a_process_from_starting_and_a_running_one_from_changing(
    tmp_path: Path, shop: Shop
) -> None:
    @tool
    def lookup(id: str) -> str:
        """Look an order up."""
        return f"order {id}"

    script = calling("lookup")
    async with process(tmp_path, script, described(shop.url, "other"), own=[lookup]) as insika:
        with capture_logs() as logs:
            await put_in_force(insika, described(shop.url, "lookup"))
        assert [log["event"] for log in logs if log["log_level"] == "error"] == [
            "settings not taken, the old ones hold"
        ]
        assert "http_tools.0.name: is the name of a tool already" in logs[0]["reason"]
        assert await said(insika) == ["order 7", "Done."]
        assert [each.name for each in insika.configuration.settings().http_tools] == ["other"]
    with pytest.raises(InvalidConfiguration, match=r"test_http_tools_in_turns.*lookup"):
        async with process(tmp_path, script, own=[lookup]):
            pass
    assert shop.asked == []


# --- what is unknown


async def test_a_connection_that_is_lost_leaves_a_side_effect_unknown_and_it_is_not_made_again(tmp_path: Path) -> None:
    async with LyingReceiver([closes_after_reading]) as receiver:
        url = f"http://127.0.0.1:{receiver.port}"
        async with process(tmp_path, calling("pay"), described(url, "pay", "PUT")) as insika:
            assert await said(insika) == [sentences.UNKNOWN_OUTCOME, "Done."]
            (turn,) = await insika.store.turns((await insika.store.session("ann")).id)  # type: ignore[union-attr]
            (call,) = await insika.store.calls(turn.id)
    assert call.state is CallState.UNKNOWN
    assert len(receiver.seen) == 1
