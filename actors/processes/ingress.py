"""The ingress: takes jobs off their queue, one after the other, and has each accepted or kept before the broker hears.

However many stand by, RabbitMQ lets one read. While the store is away nothing is read; if that lasts, the process ends
with a sentence, and its messages are as they were.
"""

from __future__ import annotations

import asyncio

from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.broker.intake import Intake
from actors.broker.outage import Outage
from actors.broker.turn_actors import TurnActors
from actors.environment import Environment
from actors.ingress import Ingress
from actors.parts import Parts
from actors.processes.ground import prepared
from actors.processes.refreshing import keep_fresh
from actors.processes.running import CONSUMER_STOP_S, until_stopped


async def run_ingress(environment: Environment, parts: Parts, stop: asyncio.Event) -> None:
    """Until `stop` is set. Raises as `prepared` does, and StoreGone."""
    async with prepared(environment, parts, "ingress", stop) as ground:
        store = ground.stores.store
        ingress = Ingress(
            store,
            ground.configuration,
            events=ground.coordination.events,
            clock=parts.clock,
            wakes=ground.hints,
            signals=ground.coordination.signals,
            crash=parts.crash,
        )
        gate = Gate()
        outage = Outage([gate], lambda: store.mark_requeued(0), parts.clock)  # a write, and there is no number 0
        actors = TurnActors(Intake(ingress, store, outage), asyncio.get_running_loop())
        consuming = Consuming.of_turns(ground.amqp_url, environment.queue_type, actors, gate)
        watching = asyncio.create_task(outage.watch())
        refreshing = asyncio.create_task(keep_fresh(ground.configuration, stop))
        consuming.start()
        try:
            await until_stopped("ingress", stop, watching, refreshing)
        finally:
            stop.set()
            await asyncio.to_thread(consuming.stop, CONSUMER_STOP_S)
            watching.cancel()
            await asyncio.gather(watching, refreshing, return_exceptions=True)
