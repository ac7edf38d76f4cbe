"""Whatever a process needs of its services at its start, it waits for, however far it has come."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from actors.configuration import Configuration
from actors.environment import Environment
from actors.parts import Parts
from actors.processes import ground
from actors.stores import open_stores
from insika.agents.profile import load_profile
from insika.clock import SystemClock
from insika.providers.catalog import ModelCatalog
from insika.providers.hosted import HostedProviders
from insika.storage.port import StoreUnavailable
from insika.storage.sqlite.schema import migrate


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Of a process whose RabbitMQ is there."""

    async def there(*_: object) -> None:
        return None

    monkeypatch.setattr(ground, "require_broker", there)
    monkeypatch.setattr(ground, "Hints", lambda url: nullcontext())
    database = tmp_path / "insika.db"
    migrate(database, SystemClock().now)
    return Environment(database_url=SecretStr(f"sqlite:///{database}"), amqp_url=SecretStr("amqp://somewhere"))


@pytest.mark.parametrize("step", ["apply_files", "refresh"])
async def test_a_database_that_goes_away_during_the_start_is_waited_for(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    real, tries = getattr(Configuration, step), []

    async def away_at_first(self: Configuration, *arguments: object) -> object:
        tries.append(step)
        if len(tries) == 1:
            raise StoreUnavailable("connection refused")
        return await real(self, *arguments)

    monkeypatch.setattr(Configuration, step, away_at_first)
    with capture_logs() as logs:
        async with ground.prepared(environment, Parts(ModelCatalog({})), "worker", asyncio.Event()):
            pass
    assert len(tries) == 2
    waited = [line for line in logs if line["event"] == "waiting"]
    assert [line["reason"] for line in waited] == ["connection refused"]
    assert "insika.db" in waited[0]["what"]


@pytest.mark.parametrize(("process", "told"), [("worker", ["model"]), ("ingress", []), ("outbox", []), ("clock", [])])
async def test_only_a_process_that_asks_models_misses_their_keys(
    environment: Environment, process: str, told: list[str]
) -> None:
    stores = await open_stores(environment, SystemClock())
    profile = load_profile({"id": "shop", "model": "anthropic/claude-sonnet-4-5"}, "test")
    await stores.store.apply_profile(profile.id, profile.revision(), profile.document(), "operator")
    await stores.close()
    parts = Parts(ModelCatalog({}, HostedProviders({})))
    with capture_logs() as logs:
        async with ground.prepared(environment, parts, process, asyncio.Event()):
            pass
    assert [log["field"] for log in logs if log["event"] == "profile names what is not here"] == told
