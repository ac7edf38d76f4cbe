"""What a reader of jobs does while the store does not answer: it holds still, and does not do so for ever.

Nothing is read meanwhile, so nothing is lost or overtaken, and no message is delivered again and again. The store is
asked until it takes a write; then reading goes on. A process that waited in vain ends, for its supervisor to see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from actors.broker.gate import Gate
from insika.clock import Clock
from insika.errors import InsikaError
from insika.storage.port import StoreUnavailable

PATIENCE_S = 300.0

_log = structlog.get_logger("insika.ingress")


class StoreGone(InsikaError):
    """The store has not taken a job for as long as this process waits."""

    type = "store_unavailable"


class Outage:
    """`gates` are closed while it lasts. `probe` writes to the store, changing nothing that counts, and raises
    StoreUnavailable while that cannot be done. `patience_s` runs from the first failure to the next job that is taken,
    whatever the probe says in between.

    All methods are for the loop's thread. One task runs `watch`."""

    def __init__(
        self,
        gates: Sequence[Gate],
        probe: Callable[[], Awaitable[object]],
        clock: Clock,
        *,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._gates = gates
        self._probe = probe
        self._clock = clock
        self._patience_s = patience_s
        self._sleep = sleep
        self._since: float | None = None
        self._began = asyncio.Event()
        self._over = asyncio.Event()
        self._over.set()

    def began(self) -> None:
        """The store did not answer."""
        if not self._began.is_set():
            for gate in self._gates:
                gate.close()
            self._over.clear()
            self._began.set()
        if self._since is None:
            self._since = self._clock.monotonic()
            _log.warning("the store does not answer; no job is taken until it does")

    def answered(self) -> None:
        """The store took a job."""
        if self._since is not None and not self._began.is_set():
            seconds = self._clock.monotonic() - self._since
            self._since = None
            _log.info("the store takes jobs again", after_s=round(seconds, 1))

    async def over(self) -> None:
        """Returns when the store takes writes; at once when there is no outage."""
        await self._over.wait()

    async def watch(self) -> NoReturn:
        """Open the gates again whenever the store takes a write. Raises StoreGone when the patience is at its end."""
        while True:
            await self._began.wait()
            await self._until_it_writes()
            self._began.clear()
            self._over.set()
            for gate in self._gates:
                gate.open()

    async def _until_it_writes(self) -> None:
        if self._out_of_patience(None):
            raise self._gone("it answers, and takes no job")
        tries = AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_random_exponential(multiplier=0.2, max=5.0),
            stop=self._out_of_patience,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            async for attempt in tries:
                with attempt:
                    await self._probe()
        except StoreUnavailable as error:
            raise self._gone(error.message) from error

    def _gone(self, reason: str) -> StoreGone:
        return StoreGone(
            f"the store has taken no job for {self._patience_s:g} s, so this process lets go of the queue and ends: "
            f"{reason}"
        )

    def _out_of_patience(self, state: RetryCallState | None) -> bool:
        return self._since is not None and self._clock.monotonic() - self._since >= self._patience_s
