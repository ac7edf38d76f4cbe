"""A store that is away: reading stops, and goes on when a write works; or the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from actors.broker.gate import Gate
from actors.broker.outage import Outage, StoreGone
from insika.clock import ManualClock
from insika.storage.port import StoreUnavailable

PATIENCE_S = 300.0


class Scene:
    """Time passes only while the probe sleeps. `away`: how many more probes fail."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.gates = [Gate(), Gate()]
        self.away = 0
        self.probes = 0
        self.outage = Outage(self.gates, self._probe, self.clock, patience_s=PATIENCE_S, sleep=self._sleep)

    @property
    def reading(self) -> bool:
        assert self.gates[0].is_open == self.gates[1].is_open
        return self.gates[0].is_open

    async def _probe(self) -> None:
        self.probes += 1
        if self.away:
            self.away -= 1
            assert not self.reading
            raise StoreUnavailable("no route to it")

    async def _sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
async def watching(scene: Scene) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(scene.outage.watch())
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_nothing_is_read_until_a_write_works(scene: Scene, watching: asyncio.Task[None]) -> None:
    scene.away = 3
    with capture_logs() as lines:
        scene.outage.began()
        scene.outage.began()
        assert not scene.reading
        await scene.outage.over()
        assert scene.reading
        scene.outage.answered()
    assert scene.probes == 4
    assert [line["event"] for line in lines] == [
        "the store does not answer; no job is taken until it does",
        "the store takes jobs again",
    ]


async def test_nobody_waits_when_there_is_no_outage(scene: Scene) -> None:
    await scene.outage.over()
    scene.outage.answered()


async def test_it_may_happen_again(scene: Scene, watching: asyncio.Task[None]) -> None:
    for _ in range(3):
        scene.away = 2
        scene.outage.began()
        await scene.outage.over()
        scene.outage.answered()
        scene.clock.advance(PATIENCE_S)
    assert scene.reading
    assert not watching.done()


async def test_a_process_that_waited_in_vain_ends_and_reads_nothing(scene: Scene, watching: asyncio.Task[None]) -> None:
    scene.away = 1_000_000
    began = scene.clock.monotonic()
    scene.outage.began()
    with pytest.raises(StoreGone, match=r"taken no job for 300 s, so this process lets go .* no route to it"):
        await watching
    assert PATIENCE_S <= scene.clock.monotonic() - began < PATIENCE_S + 10
    assert not scene.reading


async def test_a_store_that_answers_and_takes_no_job_uses_up_the_patience_too(
    scene: Scene, watching: asyncio.Task[None]
) -> None:
    while not watching.done():
        scene.outage.began()
        scene.clock.advance(10)
        await asyncio.wait({watching, asyncio.ensure_future(scene.outage.over())}, return_when=asyncio.FIRST_COMPLETED)
    with pytest.raises(StoreGone, match="it answers, and takes no job"):
        await watching


async def test_a_job_that_was_taken_begins_the_patience_anew(scene: Scene, watching: asyncio.Task[None]) -> None:
    for _ in range(10):
        scene.outage.began()
        scene.clock.advance(PATIENCE_S / 2)
        await scene.outage.over()
        scene.outage.answered()
    assert not watching.done()


async def test_what_is_wrong_with_the_probe_itself_ends_the_process(scene: Scene) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    outage = Outage(scene.gates, broken, scene.clock)
    outage.began()
    with pytest.raises(ZeroDivisionError):
        await outage.watch()
