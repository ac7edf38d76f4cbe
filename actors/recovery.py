"""Picks up what a process that died left in the store. Safe at any time, and twice at once.

It runs no turns: sessions that are due are offered anew to whichever process runs some.
"""

from __future__ import annotations

from dataclasses import dataclass

from actors.configuration import Configuration
from actors.embedded import egress_guard
from actors.environment import Environment
from insika.clock import SystemClock
from insika.events import NoEvents
from insika.storage.port import Store
from outbox.delivery import Deliverer
from outbox.message import ClaimedDelivery
from outbox.recovery import recover_deliveries
from outbox.store import OutboxStore
from outbox.webhook import Webhook


@dataclass(frozen=True, slots=True)
class Recovered:
    """`sent`: deliveries that went out now; `uncertain`: those of which nobody knows any more whether they did;
    `pending`: those left for a later try; `sending`: those whose sender's claim has not run out; `woken`: sessions that
    are due and that nobody owned."""

    sent: int
    uncertain: int
    pending: int
    sending: int
    woken: int


async def recover(store: Store, outbox: OutboxStore, environment: Environment) -> Recovered:
    """Raises StoreUnavailable, or InvalidConfiguration when the settings in the store cannot be read."""
    clock, events = SystemClock(), NoEvents()
    configuration = Configuration(store)
    await configuration.refresh()

    def secrets(delivery: ClaimedDelivery) -> tuple[str, ...]:
        channel = configuration.settings().channel(delivery.channel)
        return channel.secrets if channel is not None else ()

    woken = await store.wake_due()
    async with Webhook(egress_guard(environment), clock) as webhook:
        deliverer = Deliverer(outbox, webhook, secrets, clock, events)
        deliveries = await recover_deliveries(outbox, deliverer, events, clock)
    return Recovered(deliveries.sent, deliveries.uncertain, deliveries.pending, deliveries.sending, woken)
