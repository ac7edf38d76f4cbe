from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from actors.processes.preflight import NotReady, ToldToStop, sleeping_until, wait_for
from insika.storage.migrate import NotMigrated
from insika.storage.port import StoreUnavailable


class Service:
    """Answers once it has failed as often as it was told to."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.tries = 0

    async def __call__(self) -> str:
        self.tries += 1
        if self._failures:
            raise self._failures.pop(0)
        return "here"


async def test_a_service_that_is_starting_is_waited_for_saying_for_what() -> None:
    service = Service(StoreUnavailable("connection refused"), StoreUnavailable("starting up"))
    with capture_logs() as logs:
        assert await wait_for("PostgreSQL at db:5432", service, StoreUnavailable) == "here"
    assert [(line["what"], line["reason"]) for line in logs] == [
        ("PostgreSQL at db:5432", "connection refused"),
        ("PostgreSQL at db:5432", "starting up"),
    ]


async def test_a_service_that_stays_away_is_given_up_with_one_sentence() -> None:
    service = Service(*[StoreUnavailable("connection refused")] * 99)
    with pytest.raises(NotReady, match=r"PostgreSQL could not be reached within 0 s: connection refused"):
        await wait_for("PostgreSQL", service, StoreUnavailable, patience_s=0)
    assert service.tries == 1


async def test_what_waiting_cannot_help_is_not_waited_for() -> None:
    service = Service(NotMigrated("run insika migrate"))
    with pytest.raises(NotMigrated):
        await wait_for("PostgreSQL", service, StoreUnavailable)
    assert service.tries == 1


async def test_a_process_that_is_told_to_end_waits_no_longer() -> None:
    stop, service = asyncio.Event(), Service(*[StoreUnavailable("connection refused")] * 99)
    waiting = asyncio.create_task(
        wait_for("PostgreSQL", service, StoreUnavailable, patience_s=3600, sleep=sleeping_until(stop))
    )
    await asyncio.sleep(0)
    stop.set()
    with pytest.raises(ToldToStop):
        await waiting
    assert service.tries == 1


async def test_until_then_it_waits_as_long_as_it_should() -> None:
    service = Service(StoreUnavailable("connection refused"))
    assert await wait_for("PostgreSQL", service, StoreUnavailable, sleep=sleeping_until(asyncio.Event())) == "here"
    assert service.tries == 2
