"""What becomes of each message on the queues of jobs. It runs on the process's loop, and answers when the store has.

A message is settled by what this returns: when it returns, the store has the job, in a mailbox or in rejected_jobs.
When it raises HandBack, the message goes back to its place. There is no third way, so nothing is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import takewhile
from typing import TypeVar

import structlog

from actors.broker.handing_back import HandBack
from actors.broker.messages import Delivery, job_body
from actors.broker.outage import Outage
from actors.broker.topology import TURNS
from actors.ingress import Asked, Ingress
from insika.errors import InvalidJob
from insika.jobs import session_named
from insika.storage.port import IntakeStore, StoreUnavailable

T = TypeVar("T")

AMQP = "amqp"
DEAD_LETTER = "dead-letter"
"""The sources that rejected_jobs names."""

_log = structlog.get_logger("insika.ingress")


class Intake:
    def __init__(self, ingress: Ingress, store: IntakeStore, outage: Outage) -> None:
        self._ingress = ingress
        self._store = store
        self.outage = outage

    async def take_all(self, deliveries: Sequence[Delivery]) -> frozenset[int]:
        """Take jobs that came in this order: as many as can be in one go, and the others so that those of one session
        are taken one after the other, and none after one that has to go back; those of different sessions at once,
        since nothing orders them. Answers the places of those that are dealt with; the others go back."""
        asked = [self._read(delivery) for delivery in deliveries]
        by_session: dict[object, list[int]] = {}
        for place, delivery in enumerate(deliveries):
            by_session.setdefault(_session(delivery, asked[place]) or place, []).append(place)
        dealt = await self._take_together(asked, by_session.values())

        async def in_order(places: Sequence[int]) -> None:
            for place in places:
                if place in dealt:
                    continue
                try:
                    await self.take(deliveries[place], asked[place])
                except HandBack:
                    return
                except Exception:
                    _log.exception("job neither accepted nor kept; it goes back")
                    return
                dealt.add(place)

        await asyncio.gather(*(in_order(places) for places in by_session.values()))
        return frozenset(dealt)

    def _read(self, delivery: Delivery) -> Asked | None:
        """None: something has to be found out about it first, or it cannot be read."""
        try:
            return self._ingress.read(job_body(delivery.body), message_id=delivery.message_id)
        except Exception:
            return None  # `take` meets it again, and says what it is

    async def _take_together(self, asked: Sequence[Asked | None], sessions: Iterable[Sequence[int]]) -> set[int]:
        """The places of those that were accepted: all that can be, in each session up to the first that cannot, or
        none. What kept them from it may be about one alone, or about a session that is locked for long: each then finds
        out for itself."""
        places = sorted(place for session in sessions for place in takewhile(lambda place: asked[place], session))
        if len(places) < 2:
            return set()
        try:
            await self._ingress.accept_all([one for place in places if (one := asked[place]) is not None])
        except Exception as error:
            _log.info("jobs not accepted together; one by one", count=len(places), reason=type(error).__name__)
            return set()
        self.outage.answered()
        return set(places)

    async def take(self, delivery: Delivery, asked: Asked | None = None) -> None:
        """Have the job accepted, or kept aside with the reason. `asked`: what was made of it before, where it was read
        already. Raises HandBack."""
        try:
            await self._accept(delivery, asked)
        except StoreUnavailable as error:
            raise self._hand_back() from error
        except Exception as error:
            # A defect, ours or of the store. Handing the job back would hold up the line with it for ever.
            _log.exception("job not accepted")
            why = f"body: could not be accepted, by an error of type {type(error).__name__}; see the log of this time"
            body = job_body(delivery.body)  # of an envelope what can be handed in again
            await self._or_hand_back(lambda: self._keep(body, delivery.message_id, why, AMQP))
        self.outage.answered()

    async def keep_suspect(self, delivery: Delivery) -> int:
        """Keep a job that may be what ended its readers, before anything in it is read. Answers its number. Raises
        HandBack."""
        why = (
            f"body: was delivered {delivery.deliveries} times and never dealt with, so it may be what ends the process "
            "that reads it; it was kept first, and then tried once more"
        )
        return await self._or_hand_back(lambda: self._keep(delivery.body, delivery.message_id, why, AMQP))

    async def try_suspect(self, delivery: Delivery, number: int) -> None:
        """Try a job that is kept as `number`, and that no broker will send again. If it does no harm, it only looked
        bad: connections were lost, or it was near one that harms. Waits for the store as long as that takes; a process
        that ends meanwhile leaves the job in rejected_jobs."""
        while True:
            try:
                await self._accept(delivery)
                await self._store.mark_requeued(number)  # it lives on, in a mailbox or under another number
                break
            except StoreUnavailable:
                self.outage.began()
                await self.outage.over()
        self.outage.answered()

    async def keep_dead(self, delivery: Delivery) -> None:
        """Keep a job that RabbitMQ itself took off the queue, unread: it may be there for what it does to readers.
        Raises HandBack."""
        why = f"body: RabbitMQ took it off {TURNS}: {delivery.died_of or 'it does not say why'}"
        await self._or_hand_back(lambda: self._keep(delivery.body, delivery.message_id, why, DEAD_LETTER))
        self.outage.answered()

    async def _accept(self, delivery: Delivery, asked: Asked | None = None) -> None:
        if asked is not None:
            await self._ingress.accept(asked)
            return
        await self._ingress.take(job_body(delivery.body), message_id=delivery.message_id, source=AMQP)

    async def _keep(self, body: bytes, message_id: str | None, why: str, source: str) -> int:
        kept = await self._ingress.keep(body, InvalidJob(why, field="body"), message_id=message_id, source=source)
        return kept.number

    async def _or_hand_back(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await ask()
        except StoreUnavailable as error:
            raise self._hand_back() from error

    def _hand_back(self) -> HandBack:
        self.outage.began()
        return HandBack("the store does not answer")


def _session(delivery: Delivery, asked: Asked | None) -> tuple[str, str] | None:
    if asked is not None:
        return asked.job.tenant, asked.job.session
    return session_named(job_body(delivery.body))
