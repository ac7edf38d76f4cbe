"""Publishes the lines of a storm: the messages of one session one after the other, many sessions at once.

A message is tried until the broker has confirmed it, always as the same bytes under the same id; only then comes the
next one of its session. Each confirmation is written down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pika

from insika.producer.connection import AmqpPublisher
from insika.producer.errors import NotPublished
from insika.producer.producer import AsyncProducer
from scripts.storm.books import Book
from scripts.storm.jobs import Door, Job, Line, Publish, Rubbish

TRY_S = 10.0
_PAUSE_S = 0.2
_EXCHANGE = "insika"
_KEY = "turns"
_QUEUE = "insika.turns"


class StormProducer:
    def __init__(self, url: str, book: Book) -> None:
        self._producer = AsyncProducer(url, timeout_s=TRY_S)
        self._publisher = AmqpPublisher(url, name="storm", timeout_s=TRY_S)
        self._book = book
        self.published = 0

    async def publish(self, lines: Sequence[Line]) -> None:
        """Returns when the broker has everything."""
        begun = asyncio.get_running_loop().time()
        async with self._producer:
            try:
                await asyncio.gather(*(self._publish_line(line, begun) for line in lines))
            finally:
                await asyncio.to_thread(self._publisher.close)

    async def _publish_line(self, line: Line, begun: float) -> None:
        for publish in line.publishes:
            await asyncio.sleep(begun + publish.at_s - asyncio.get_running_loop().time())
            await self._until_confirmed(publish)
            self.published += 1

    async def _until_confirmed(self, publish: Publish) -> None:
        what = publish.what
        id_ = what.id if isinstance(what, Job) else what.message_id
        while True:
            try:
                await self._once(what, id_)
            except NotPublished as error:
                self._book("not published", id=id_, type=error.type, why=error.message)
                await asyncio.sleep(_PAUSE_S)
            else:
                self._book("published", id=id_)
                return

    async def _once(self, what: Job | Rubbish, id_: str) -> None:
        """Raises NotPublished."""
        if isinstance(what, Job) and what.door is Door.PRODUCER:
            fields = what.fields
            await self._producer.send(id=id_, **fields)
            return
        topic = isinstance(what, Job) and what.door is Door.TOPIC
        where = (_EXCHANGE, _KEY) if topic else ("", _QUEUE)
        body = what.body() if isinstance(what, Job) else what.body
        properties = pika.BasicProperties(message_id=id_, delivery_mode=pika.DeliveryMode.Persistent.value)
        published = self._publisher.publish(*where, body, properties, mandatory=True, repeatable=True)
        await asyncio.wrap_future(published)
