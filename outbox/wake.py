"""The hint that there may be something to deliver. Losing one costs a pause, repeating one costs a look."""

from __future__ import annotations

import asyncio


class WakeSignal:
    """Rung by whoever writes or settles a delivery in this process. `ring` must be called on the waiting loop."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, timeout_s: float) -> None:
        """Until it is rung, or was since the last wait, or `timeout_s` seconds have passed."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._rung.wait()
        except TimeoutError:
            pass
        self._rung.clear()
