"""The outbox: claims due deliveries, POSTs each once and settles it.

Hints only hasten it: it looks by itself whenever something is due, so that none is ever needed.
"""

from __future__ import annotations

import asyncio
import time

from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.deliveries import Deliveries
from actors.environment import Environment
from actors.parts import Parts
from actors.processes.ground import prepared
from actors.processes.refreshing import keep_fresh
from actors.processes.running import CONSUMER_STOP_S, until_stopped

HINTS_REST_S = 0.005


async def run_outbox(environment: Environment, parts: Parts, stop: asyncio.Event) -> None:
    """Until `stop` is set and what was claimed is settled. Raises as `prepared` does.

    What is still being sent at the end of the drain time is cut short, and its row says that nobody knows."""
    async with prepared(environment, parts, "outbox", stop) as ground:
        loop = asyncio.get_running_loop()
        deliveries = Deliveries(
            environment, parts, ground.stores.outbox, ground.configuration, ground.coordination.events
        )

        def deliver() -> None:
            """On the consumer's thread, which then rests: hints that come meanwhile are one."""
            loop.call_soon_threadsafe(deliveries.ring)
            time.sleep(HINTS_REST_S)

        consuming = Consuming.of_deliveries(ground.amqp_url, environment.queue_type, deliver, Gate())
        async with deliveries:
            consuming.start()
            delivering = asyncio.create_task(deliveries.run(stop))
            refreshing = asyncio.create_task(keep_fresh(ground.configuration, stop))
            try:
                await until_stopped("outbox", stop, delivering, refreshing)
            finally:
                stop.set()
                await asyncio.to_thread(consuming.stop, CONSUMER_STOP_S)
                await asyncio.wait({delivering}, timeout=environment.drain_s)
                delivering.cancel()
                await asyncio.gather(delivering, refreshing, return_exceptions=True)
