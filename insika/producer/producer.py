"""`Producer` and `AsyncProducer`: hand a message to an agent through RabbitMQ, and know that it was taken.

What they know is that the broker has it, on disk. What becomes of it is decided later, by ingress; the events and the
delivered answer tell.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Self, Unpack

from insika.producer.connection import AmqpPublisher
from insika.producer.errors import TooManyWaiting
from insika.producer.job import EXCHANGE, QUEUE, JobFields, PublishableJob, publishable_job
from insika.text import counted

BACKLOG_MAX = 10_000
_NAME = "insika producer"


@dataclass(frozen=True, slots=True)
class Sent:
    """The broker has the message. `id` is its id, given or made up: sending it again under this one is harmless."""

    id: str


class Producer:
    """Publishes turn jobs to the broker at `url`, from any number of threads.

        with Producer("amqp://user:password@host:5672/") as producer:
            producer.send(session="ana", agent="shop", text="where is order 1234?")

    `timeout_s` bounds one `send`. Within it, lost connections are made anew and unconfirmed messages published again
    under the same id, in their order. Close it, or leave its `with`, to have what is on its way confirmed. A process
    that forks makes its producers after that. Raises InvalidConfiguration for a URL that is none.
    """

    def __init__(self, url: str, *, timeout_s: float = 30.0) -> None:
        self._publisher = AmqpPublisher(url, name=_NAME, timeout_s=timeout_s, backlog_max=BACKLOG_MAX)
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        self._publisher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, *, session: str, agent: str, text: str, **fields: Unpack[JobFields]) -> Sent:
        """Publish one message and wait until the broker has it.

        Raises InvalidJob, with the field, for what no ingress would read, and NotPublished, which has the message's id
        and says whether it may have arrived: then send it again with that `id`.
        """
        job = publishable_job(session=session, agent=agent, text=text, fields=fields)
        _publish(self._publisher, job).result()
        return Sent(job.id)

    def submit(self, *, session: str, agent: str, text: str, **fields: Unpack[JobFields]) -> Future[Sent]:
        """As `send`, but without waiting: for many messages at once, in the order of these calls.

        Raises InvalidJob; everything else ends the future. At most `BACKLOG_MAX` may be waiting.
        """
        job = publishable_job(session=session, agent=agent, text=text, fields=fields)
        sent: Future[Sent] = Future()
        sent.set_running_or_notify_cancel()
        _publish(self._publisher, job).add_done_callback(lambda published: _hand_on(published, sent, Sent(job.id)))
        return sent

    @property
    def where(self) -> str:
        """The broker's host, port and virtual host, for people."""
        return self._publisher.where

    def close(self, timeout_s: float = 10.0) -> None:
        """Wait up to `timeout_s` for what is on its way; what is not confirmed by then fails with Closed."""
        self._publisher.close(timeout_s)


class AsyncProducer:
    """`Producer` for asyncio: `async with`, and `await producer.send(...)`. Many may be sent at once."""

    def __init__(self, url: str, *, timeout_s: float = 30.0) -> None:
        self._publisher = AmqpPublisher(url, name=_NAME, timeout_s=timeout_s, backlog_max=BACKLOG_MAX)
        self._timeout_s = timeout_s
        self._room = asyncio.Semaphore(BACKLOG_MAX)

    async def __aenter__(self) -> Self:
        self._publisher.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, *, session: str, agent: str, text: str, **fields: Unpack[JobFields]) -> Sent:
        """As `Producer.send`. Messages sent at once go out in the order in which they were sent; a task that is
        cancelled withdraws its message only while that is not on its way."""
        job = publishable_job(session=session, agent=agent, text=text, fields=fields)
        loop = asyncio.get_running_loop()
        until = loop.time() + self._timeout_s
        await self._find_room(job)
        try:
            left = max(0.0, until - loop.time())
            await asyncio.wrap_future(_publish(self._publisher, job, timeout_s=left))
        finally:
            self._room.release()
        return Sent(job.id)

    @property
    def where(self) -> str:
        """As `Producer.where`."""
        return self._publisher.where

    async def close(self, timeout_s: float = 10.0) -> None:
        """As `Producer.close`."""
        await asyncio.to_thread(self._publisher.close, timeout_s)

    async def _find_room(self, job: PublishableJob) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._room.acquire()
        except TimeoutError:
            why = f"{counted(BACKLOG_MAX, 'message')} wait for RabbitMQ at {self._publisher.where} already"
            raise TooManyWaiting(why, message_id=job.id) from None


def _publish(publisher: AmqpPublisher, job: PublishableJob, timeout_s: float | None = None) -> Future[None]:
    return publisher.publish(
        EXCHANGE, QUEUE, job.body, job.properties, mandatory=True, repeatable=True, timeout_s=timeout_s
    )


def _hand_on(published: Future[None], sent: Future[Sent], success: Sent) -> None:
    error = published.exception()
    if error is None:
        sent.set_result(success)
    else:
        sent.set_exception(error)
