"""What a whole process says when it is opened, and how it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from actors.embedded import Embedded, Parts
from actors.environment import Environment, read_environment
from actors.samples.demo_agent import demo_profile, offline_models
from insika.clock import SystemClock
from insika.ports import ModelRequest
from insika.storage.sqlite.store import SqliteStore
from outbox.sqlite_store import SqliteOutboxStore

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PATIENCE_S = 30.0
"""Only a process that hangs takes as long as that."""


async def opened(path: Path) -> list[tuple[str, str, str]]:
    """The agent, path and level of what was warned of."""
    (path / "agents").mkdir(exist_ok=True)
    with capture_logs() as logs:
        embedded = await Embedded.open(read_environment(), Parts(offline_models()))
        await embedded.configuration.apply_profiles([demo_profile()], from_file=True)
        await embedded.store.close()
    return [
        (log["agent"], log["field"], log["log_level"])
        for log in logs
        if log["event"] == "profile names what is not here"
    ]


async def test_an_agent_that_names_what_is_not_here_is_warned_of_and_the_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await opened(tmp_path) == []
    assert await opened(tmp_path) == [], "the sample agent, whose tools are not here, was warned of"
    monkeypatch.setenv("INSIKA_AGENTS_DIR", "agents")
    (tmp_path / "agents" / "shop.yaml").write_text("id: shop\nmodel: openai/gpt-5\ntools_deny: [refnd]\n")
    assert await opened(tmp_path) == [("shop", "model", "warning"), ("shop", "tools_deny.0", "warning")]


async def test_a_receiver_that_hangs_holds_no_process_up_beyond_its_drain(tmp_path: Path) -> None:
    reached, gone = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reached.set()
        await gone.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"channels: [{{id: web, url: '{url}', secret: {SECRET}, timeout_s: 600}}]\n")
    environment = Environment(
        database_url=f"sqlite:///{tmp_path / 'insika.db'}",
        settings=settings,
        egress_allow_http=True,
        egress_allow_private=True,
        drain_s=0,
    )
    with capture_logs():
        embedded = await Embedded.open(environment, Parts(offline_models()))
        await embedded.configuration.apply_profiles([demo_profile()], from_file=False)
        async with asyncio.timeout(PATIENCE_S):
            async with embedded:
                job = {"session": "ana", "agent": "demo", "text": "hello", "id": "m1", "channel": "web"}
                await embedded.ingress.take(json.dumps(job).encode())
                await reached.wait()
    gone.set()
    server.close()

    store = SqliteStore.open(environment.database_file, SystemClock().now)
    (row,) = await SqliteOutboxStore(store.database).list()
    await store.close()
    assert (row.state, row.attempts) == ("uncertain", 1)


async def test_a_process_that_is_cancelled_hands_over_nothing_and_its_turn_counts_a_death(tmp_path: Path) -> None:
    """So ends a loop that a tool has broken."""
    asked, never = asyncio.Event(), asyncio.Event()

    async def hold(request: ModelRequest, chunk: int) -> None:
        asked.set()
        await never.wait()

    async def life(embedded: Embedded) -> None:
        async with embedded:
            await embedded.ingress.take(json.dumps({"session": "ana", "agent": "demo", "text": "hello"}).encode())
            await asyncio.Event().wait()

    environment = Environment(database_url=f"sqlite:///{tmp_path / 'insika.db'}")
    with capture_logs():
        embedded = await Embedded.open(environment, Parts(offline_models(hold)))
        await embedded.configuration.apply_profiles([demo_profile()], from_file=False)
        async with asyncio.timeout(PATIENCE_S):
            living = asyncio.create_task(life(embedded))
            await asked.wait()
            living.cancel()
            await asyncio.wait({living})

    store = SqliteStore.open(environment.database_file, SystemClock().now)
    row = await store.session("ana")
    await store.close()
    assert row is not None
    assert row.lease_id is not None
    assert row.turn_id is not None


@pytest.mark.parametrize("timing", [True, False])
async def test_the_environment_says_whether_turns_are_measured_step_by_step(tmp_path: Path, timing: bool) -> None:
    environment = Environment(database_url=f"sqlite:///{tmp_path / 'insika.db'}", turn_timing=timing)
    embedded = await Embedded.open(environment, Parts(offline_models()))
    await embedded.configuration.apply_profiles([demo_profile()], from_file=False)
    async with embedded, asyncio.timeout(PATIENCE_S):
        with embedded.events.subscribe() as events:
            await embedded.ingress.take(json.dumps({"session": "ana", "agent": "demo", "text": "hello"}).encode())
            told = []
            async for event in events:
                told.append(event)
                if event.type == "turn_completed":
                    break
    assert [event.type for event in told if event.type == "ttft"] == ["ttft"] * timing
    assert ("commit_ms" in told[-1].data["timing"]) == timing
