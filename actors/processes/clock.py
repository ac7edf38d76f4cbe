"""The clock: sleeps until something is due, and tells the processes that can do it; and sums up what was spent.

Due times are rows, so that a clock that dies has forgotten nothing, and two are as good as one. It is a convenience:
workers and the outbox look for themselves, only less often.
"""

from __future__ import annotations

import asyncio

from actors.environment import Environment
from actors.lease import Outage
from actors.parts import Parts
from actors.processes.ground import Ground, prepared
from actors.processes.running import until_stopped
from actors.roll_up import RollUp
from actors.sweeper import Sweeper
from outbox.alerts import DeliveryAlerts
from outbox.recovery import sweep


async def run_clock(environment: Environment, parts: Parts, stop: asyncio.Event) -> None:
    """Until `stop` is set. Raises as `prepared` does."""
    async with prepared(environment, parts, "clock", stop) as ground:
        deliveries = _DueDeliveries(ground)
        sweeper = Sweeper(
            ground.stores.store,
            _SessionHints(ground),
            parts.clock,
            deliveries.expire,
            ground.configuration.refresh,
            outage=Outage(environment.lease_s, parts.clock),
            roll_up=RollUp(ground.stores.store, parts.clock).run_once,
        )
        sweeping = asyncio.create_task(sweeper.run(stop))
        await until_stopped("clock", stop, sweeping)
        await sweeping


class _DueDeliveries:
    """What has become due by the passing of time; what is written as due is told of by its writer."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._alerts = DeliveryAlerts(ground.configuration.alert_webhook, ground.parts.clock)

    async def expire(self) -> int:
        outbox, clock = self._ground.stores.outbox, self._ground.parts.clock
        expired = await sweep(outbox, self._ground.coordination.events, clock, self._alerts)
        if await outbox.next_due_at() <= clock.now():
            self._ground.hints.delivery()
        return len(expired)


class _SessionHints:
    """Sessions that are due are told of as they are found; deliveries have their own way."""

    def __init__(self, ground: Ground) -> None:
        self._hints = ground.hints

    def session(self, session_id: int) -> None:
        self._hints.session(session_id)

    def delivery(self) -> None:
        return None
