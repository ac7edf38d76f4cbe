"""Who does not answer, or answers what nobody foresaw, is a finding among the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from actors.doctor import examination
from actors.doctor.finding import Finding, Level
from actors.environment import Environment
from actors.parts import Parts
from actors.samples.demo_agent import offline_models
from insika.clock import SystemClock
from insika.storage.sqlite.schema import migrate


def parts() -> Parts:
    return Parts(offline_models())


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    file = tmp_path / "insika.db"
    migrate(file, SystemClock().now)
    return Environment.model_validate({"database_url": f"sqlite:///{file}"})


async def failures(environment: Environment, here: Callable[[], Parts] = parts) -> list[Finding]:
    findings = await examination.examine(environment, [], here, SystemClock())
    return [finding for finding in findings if finding.level is Level.FAIL]


async def test_a_fault_of_ours_is_told_beside_the_rest(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await failures(environment) == []
    monkeypatch.setattr(examination, "inspect_database", lambda *_, **__: 1 // 0)
    with capture_logs() as logs:
        (told,) = await failures(environment)
    assert told.about == "database"
    assert told.what.endswith("could not be looked at (ZeroDivisionError).")
    assert [line["event"] for line in logs] == ["not examined"]


async def test_a_database_that_never_answers_is_told(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(examination, "SERVICE_S", 0)
    monkeypatch.setattr(examination, "inspect_database", lambda *_, **__: release.wait(60))
    (told,) = await failures(environment)
    release.set()
    assert "did not answer within 0 s" in told.what


async def test_a_module_that_never_comes_to_its_end_is_told(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(examination, "FILES_S", 0.05)

    def here() -> Parts:
        release.wait(60)
        return parts()

    (told,) = await failures(environment, here)
    release.set()
    assert (told.about, "was not imported within 0.05 s" in told.what) == ("tools", True)


async def test_a_redis_whose_host_nobody_knows_is_told_and_not_asked(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr(examination.socket, "getaddrinfo", unknown)
    somewhere = environment.model_copy(update={"redis_url": SecretStr("redis://:hidden@nowhere:6379/0")})
    findings = await examination.examine(somewhere, [], parts, SystemClock())
    (told,) = [finding for finding in findings if finding.about == "redis"]
    assert (told.level, told.what) == (Level.WARN, "The host of Redis cannot be found: Name or service not known.")
