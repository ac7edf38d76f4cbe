"""The delivering side of a process: what claims due rows of the outbox, POSTs them and settles them.

Composed the same way wherever deliveries leave: in the outbox process, and embedded. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from actors.configuration import Configuration
from actors.egress import egress_guard
from actors.environment import Environment
from actors.parts import Parts
from insika.events import EventSink
from insika.limits.alerts import ALERT
from outbox.alerts import DeliveryAlerts
from outbox.delivery import Deliverer
from outbox.loop import DeliveryLoop
from outbox.message import ClaimedDelivery
from outbox.recovery import RecoveredDeliveries, recover_deliveries, sweep
from outbox.store import OutboxStore
from outbox.wake import WakeSignal
from outbox.webhook import Webhook


class Deliveries:
    """Use as an async context: the connections it makes are closed with it. `ring` on the loop's thread."""

    def __init__(
        self,
        environment: Environment,
        parts: Parts,
        store: OutboxStore,
        configuration: Configuration,
        events: EventSink,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._events = events
        self._clock = parts.clock
        self._signal = WakeSignal()
        self._webhook = Webhook(egress_guard(environment), parts.clock)
        self._alert_secret = environment.webhook_secret
        self._alerts = DeliveryAlerts(configuration.alert_webhook, parts.clock)
        self._deliverer = Deliverer(
            store, self._webhook, self._secrets, parts.clock, events, alerts=self._alerts, crash=parts.crash
        )
        self._loop = DeliveryLoop(
            store, self._deliverer, self._signal, parts.clock, events, alerts=self._alerts, slots=environment.slots
        )

    async def __aenter__(self) -> Self:
        await self._webhook.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._webhook.__aexit__(kind, error, trace)

    def ring(self) -> None:
        """There may be something to deliver."""
        self._signal.ring()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set and what was claimed is settled. Cancelling cuts what is under way, and says so."""
        await self._loop.run(stop)

    async def expire_claims(self) -> int:
        """Settle what dead senders left. Answers how many rows."""
        return len(await sweep(self._store, self._events, self._clock, self._alerts))

    async def recover(self) -> RecoveredDeliveries:
        """Send what is due and settle what a dead process left, once."""
        return await recover_deliveries(self._store, self._deliverer, self._events, self._clock, self._alerts)

    def _secrets(self, delivery: ClaimedDelivery) -> Sequence[str]:
        if delivery.kind == ALERT:
            return (self._alert_secret.get_secret_value(),) if self._alert_secret is not None else ()
        # What was committed for a channel goes there, also when the channel leaves the settings meanwhile.
        channel = self._configuration.last_known_channel(delivery.channel)
        return channel.secrets if channel is not None else ()
