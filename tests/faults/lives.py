"""Lives of a process within this one: the whole of Insika over a file, and a death that leaves nothing of it but the
file.

A death comes as an exception that nothing catches, raised at a named point; in that instant the store closes, so that
nothing which still runs can write any more, and then everything is thrown away: no drain, no release, no goodbye.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from actors.embedded import Embedded, Parts
from actors.environment import Environment
from insika.clock import Clock, ManualClock, SystemClock
from insika.crash_points import Crash, CrashPoint
from insika.events import Event
from tests.faults.shop import Gates, shop_parts
from tests.faults.verdict import PATIENCE_S

OUTLIVES_EVERYTHING_S = 60.0
"""Longer than any lease and any claim here, and well within what a receiver grants a signature."""

Work = Callable[[Embedded, Gates], Awaitable[None]]


class Died(BaseException):
    """What nobody catches."""


class Death:
    """Comes when `point` is reached for the `nth` time; without a point, never. After it every point is one."""

    def __init__(self, point: CrashPoint | None = None, nth: int = 1) -> None:
        self.point = point
        self.nth = nth
        self.met: Counter[CrashPoint] = Counter()
        self.came = asyncio.Event()
        self.cut_off: Callable[[], None] = lambda: None

    def __call__(self, point: CrashPoint, /) -> None:
        self.met[point] += 1
        if not self.came.is_set() and point is self.point and self.met[point] == self.nth:
            self.cut_off()
            self.came.set()
        if self.came.is_set():
            raise Died(point)


async def live(
    folder: Path,
    environment: Environment,
    work: Work,
    *,
    clock: ManualClock,
    death: Death | None = None,
    gates_held: bool = False,
    shop: Callable[[Path, Clock, Gates, Crash], Parts] = shop_parts,
) -> list[Event]:
    """One life, until `work` is done or death comes. Answers the events that were published in it."""
    death = death or Death()
    gates = Gates(held=gates_held)
    outside = asyncio.all_tasks()
    insika = await Embedded.open(environment, shop(folder, clock, gates, death))
    death.cut_off = insika.store.database.close
    asyncio.get_running_loop().set_exception_handler(_without_the_dead)

    async def working() -> None:
        await insika.__aenter__()
        await work(insika, gates)

    doing, dying = asyncio.create_task(working()), asyncio.create_task(death.came.wait())
    await asyncio.wait({doing, dying}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    if death.came.is_set():
        await _thrown_away(insika, outside)
    else:
        dying.cancel()
        assert doing.done(), "the work was never done, and nobody died"
        await doing
        await insika.__aexit__(None, None, None)
    return await insika.events.since(0, limit=10_000)


async def _thrown_away(insika: Embedded, outside: set[asyncio.Task[Any]]) -> None:
    # The thread that renews would be gone with its process. Nobody but a test needs to stop it without a drain.
    await asyncio.to_thread(insika.runtime._keeper.stop)
    tasks = (asyncio.all_tasks() - outside - {asyncio.current_task()}) | set(insika._tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await insika._resources.aclose()


def _without_the_dead(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), Died):
        loop.default_exception_handler(context)


def clock_of_now() -> ManualClock:
    """Stands still, at the present: a receiver looks at its own clock when it checks a signature."""
    return ManualClock(datetime.now(UTC))


class AheadClock(SystemClock):
    """A machine whose clock, of both kinds, is so many seconds ahead."""

    def __init__(self, ahead_s: float) -> None:
        self._ahead = timedelta(seconds=ahead_s)

    def now(self) -> datetime:
        return super().now() + self._ahead

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead.total_seconds()
