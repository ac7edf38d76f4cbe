"""A process whose agents name hosted models: whom it asks, what it says when it cannot, and what it closes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from actors.embedded import Embedded, Parts
from actors.environment import Environment
from actors.samples.demo_agent import demo_profile, offline_models
from insika.agents.profile import load_profile
from insika.ports import ModelEvent, ModelRequest
from insika.providers.endpoint import Endpoint
from insika.providers.hosted import HostedProviders
from insika.settings import load_settings
from insika.storage.rows import TERMINAL, TurnRow, TurnState
from insika.testing import Say, Script, ScriptedModel

KEY = "sk-ant-api03-s3cret"
GATEWAY = {"name": "gateway", "kind": "openai", "base_url": "https://models.example/v1", "key_variable": "GATEWAY_KEY"}


class Vendor:
    """Makes adapters that name the address they speak to."""

    def __init__(self) -> None:
        self.made: list[Endpoint] = []
        self.closed: list[Endpoint] = []

    def __call__(self, endpoint: Endpoint) -> Adapter:
        self.made.append(endpoint)
        return Adapter(endpoint, self.closed)


class Adapter:
    def __init__(self, endpoint: Endpoint, closed: list[Endpoint]) -> None:
        self._endpoint = endpoint
        self._closed = closed
        self._model = ScriptedModel(Script(afterwards=lambda scene: Say(f"from {endpoint.base_url}")))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        return self._model.stream(request)

    async def aclose(self) -> None:
        self._closed.append(self._endpoint)


@asynccontextmanager
async def process(tmp_path: Path, vendor: Vendor, **variables: str) -> AsyncGenerator[Embedded, None]:
    environment = Environment(database_url=f"sqlite:///{tmp_path / 'insika.db'}")
    models = offline_models(hosted=HostedProviders(variables, vendor))
    with capture_logs():
        async with await Embedded.open(environment, Parts(models)) as insika:
            yield insika


async def apply(insika: Embedded, **profile: Any) -> None:
    await insika.configuration.apply_profiles([load_profile({"id": "shop", **profile}, "test")], from_file=False)
    await insika.configuration.refresh()


async def put_in_force(insika: Embedded, settings: dict[str, Any]) -> None:
    loaded = load_settings(settings, "test")
    await insika.store.apply_settings(loaded.revision(), loaded.document(), "operator")


async def said(insika: Embedded, text: str = "hello") -> str | None:
    """The answer to one message; None when its turn failed."""
    turn = await ended(insika, text)
    session = await insika.store.session("ana")
    assert session is not None
    messages = await insika.store.messages(session.id)
    return messages[-1].message.content if turn.state is TurnState.COMPLETED else None


async def ended(insika: Embedded, text: str = "hello") -> TurnRow:
    with insika.events.subscribe() as events:
        accepted = await insika.ingress.take(json.dumps({"session": "ana", "agent": "shop", "text": text}).encode())
        async for event in events:
            if event.turn_id == accepted.turn_id and event.type in ("turn_completed", "turn_failed"):
                break
    turn = await insika.store.turn(event.turn_id or "")
    assert turn is not None
    assert turn.state in TERMINAL
    return turn


async def test_a_turn_asks_the_provider_that_its_agent_names(tmp_path: Path) -> None:
    vendor = Vendor()
    async with process(tmp_path, vendor, ANTHROPIC_API_KEY=KEY) as insika:
        await apply(insika, model="anthropic/claude-sonnet-4-5")
        assert await said(insika) == "from https://api.anthropic.com"
        assert await said(insika) == "from https://api.anthropic.com"
        assert len(vendor.made) == 1
        assert vendor.closed == []
    assert vendor.closed == vendor.made


async def test_a_turn_without_its_key_fails_and_names_the_agent_and_the_variable(tmp_path: Path) -> None:
    vendor = Vendor()
    async with process(tmp_path, vendor) as insika:
        await apply(insika, model="anthropic/claude-sonnet-4-5")
        turn = await ended(insika)
    assert turn.state is TurnState.FAILED
    assert turn.error == {
        "type": "provider_fatal",
        "message": "agent 'shop' cannot be run here on anthropic/claude-sonnet-4-5: provider anthropic cannot be "
        "asked from this process: ANTHROPIC_API_KEY is not set",
        "field": "model",
    }
    assert vendor.made == []


async def test_settings_hold_from_the_next_turn_on(tmp_path: Path) -> None:
    vendor = Vendor()
    async with process(tmp_path, vendor, GATEWAY_KEY="g", ANTHROPIC_API_KEY=KEY) as insika:
        await put_in_force(insika, {"providers": [GATEWAY]})
        await apply(insika, model="gateway/large")
        assert await said(insika) == "from https://models.example/v1"
        await put_in_force(insika, {"providers": [{**GATEWAY, "base_url": "https://other.example/v1"}]})
        await insika.configuration.refresh()
        assert await said(insika) == "from https://other.example/v1"
        await put_in_force(insika, {})
        await insika.configuration.refresh()
        assert "there is no provider 'gateway' here" in str((await ended(insika)).error)
    assert sorted(endpoint.base_url for endpoint in vendor.closed) == [
        "https://models.example/v1",
        "https://other.example/v1",
    ]


async def test_a_provider_that_was_applied_a_moment_ago_is_known_to_the_turn_that_wants_it(tmp_path: Path) -> None:
    """Its process had looked at the settings before they came, and at the agents after."""
    async with process(tmp_path, Vendor(), GATEWAY_KEY="g") as insika:
        await apply(insika, model="gateway/large")
        await put_in_force(insika, {"providers": [GATEWAY]})
        assert await said(insika) == "from https://models.example/v1"


async def test_a_process_tells_at_its_start_which_agent_has_no_key_and_which_no_provider(tmp_path: Path) -> None:
    vendor = Vendor()
    profiles = [
        load_profile({"id": "shop", "model": "anthropic/claude-sonnet-4-5"}, "test"),
        load_profile({"id": "other", "model": "nowhere/large"}, "test"),
        demo_profile("openai/gpt-4o-mini"),
    ]
    async with process(tmp_path, vendor) as insika:
        await insika.configuration.apply_profiles(profiles, from_file=True)
    environment = Environment(database_url=f"sqlite:///{tmp_path / 'insika.db'}")
    with capture_logs() as logs:
        opened = await Embedded.open(environment, Parts(offline_models(hosted=HostedProviders({}, vendor))))
        await opened.store.close()
    told = {log["agent"]: log["reason"] for log in logs if log["event"] == "profile names what is not here"}
    assert set(told) == {"shop", "other"}, "the sample agent is nobody's to mend"
    assert "ANTHROPIC_API_KEY is not set" in told["shop"]
    assert "no provider 'nowhere'" in told["other"]
