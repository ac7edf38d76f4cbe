"""Picks up what a process that died left in the store. Safe at any time, and twice at once.

It runs no turns: sessions that are due are offered anew to whichever process runs some.
"""

from __future__ import annotations

from dataclasses import dataclass

from actors.configuration import Configuration
from actors.deliveries import Deliveries
from actors.environment import Environment
from actors.parts import Parts
from insika.events import NoEvents
from insika.providers.catalog import ModelCatalog
from insika.storage.port import Store
from outbox.store import OutboxStore


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
    configuration = Configuration(store)
    await configuration.refresh()
    woken = await store.wake_due()
    async with Deliveries(environment, Parts(ModelCatalog({})), outbox, configuration, NoEvents()) as deliveries:
        recovered = await deliveries.recover()
    return Recovered(recovered.sent, recovered.uncertain, recovered.pending, recovered.sending, woken)
