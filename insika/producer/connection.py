"""One thread that owns a connection to the broker, and publishes what any thread hands it.

Confirmations are awaited for many messages at once. A connection that is lost is made anew, with growing pauses, for as
long as the publisher is open; what goes out again then, and in which order, is `Window`'s to say. Nothing is written to
a disk: what is not confirmed when the process ends is lost, unless its maker still has it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

import pika

from insika.producer.address import broker_address
from insika.producer.errors import Closed, NotPublished, TooLarge, TooManyWaiting
from insika.producer.sending import Sending
from insika.producer.window import Outgoing
from insika.text import counted

_log = logging.getLogger("insika.producer")


class AmqpPublisher:
    """Publishes to one virtual host.

    `timeout_s`: how long one message may take, from `publish` to its confirmation, where `publish` says nothing else.
    `backlog_max`: messages that may wait at once. `body_max`: bytes of one message; RabbitMQ closes the channel, and
    all that is on its way on it, for one that it finds too large. `name`: how the broker lists the connection.

    Its thread starts with the first message, or with `start`, and does not keep a process from ending: `close` does.
    A process that forks makes its publishers after that. Raises InvalidConfiguration for a URL that is none.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "insika",
        timeout_s: float = 30.0,
        backlog_max: int = 10_000,
        body_max: int = 1024 * 1024,
    ) -> None:
        self._address = broker_address(url, connection_name=name)
        self._timeout_s = timeout_s
        self._backlog_max = backlog_max
        self._body_max = body_max
        self._lock = threading.Lock()
        # Under the lock, what the callers' threads and the publisher's own share:
        self._inbox: list[Outgoing] = []
        self._open_messages = 0
        self._closing: float | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def where(self) -> str:
        """Host, port and virtual host."""
        return self._address.name

    def start(self) -> None:
        """Connect now rather than with the first message. Does not wait for it."""
        with self._lock:
            self._start()

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        properties: pika.BasicProperties | None = None,
        *,
        mandatory: bool = False,
        repeatable: bool = False,
        timeout_s: float | None = None,
    ) -> Future[None]:
        """Hand over a message, from any thread, without waiting.

        The future ends when the broker has confirmed it, or with a NotPublished: NotRouted (only when `mandatory`),
        Refused, TooLarge, Unreachable, TooManyWaiting, Closed. Messages go out in the order of these calls. Cancelling
        the future withdraws a message that is not on its way. Callbacks of the future run on the publisher's thread.

        `repeatable`: the message may arrive twice, because its consumer knows it by its message_id. It is published
        again when the connection was lost before the confirmation; otherwise that ends it, as Unreachable.
        """
        message = Outgoing(
            exchange=exchange,
            routing_key=routing_key,
            body=body,
            properties=properties or pika.BasicProperties(),
            mandatory=mandatory,
            repeatable=repeatable,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
        )
        with self._lock:
            unfit = self._unfit(message)
            if unfit is None:
                self._open_messages += 1
                self._inbox.append(message)
                self._start()
                if len(self._inbox) == 1:
                    self._tell_loop(self._take)
        if unfit is None:
            message.future.add_done_callback(self._forget)
        else:
            message.future.set_exception(unfit)
        return message.future

    def close(self, timeout_s: float = 10.0) -> None:
        """Take nothing more, wait up to `timeout_s` for what is on its way, and take leave of the broker. What is not
        confirmed by then ends with Closed. Closing twice is harmless."""
        with self._lock:
            thread = self._thread
            if self._closing is None:
                self._closing = timeout_s
                self._tell_loop(self._wind_up)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _unfit(self, message: Outgoing) -> NotPublished | None:
        id_, size = message.message_id, len(message.body)
        if size > self._body_max:
            return TooLarge(f"the message has {size} bytes; at most {self._body_max} are published", message_id=id_)
        if self._closing is not None:
            return Closed("the publisher is closed", message_id=id_)
        if self._thread is not None and not self._thread.is_alive():
            why = "the publisher's thread is gone; a process that forks must make its publishers after that"
            return Closed(why, message_id=id_)
        if self._open_messages >= self._backlog_max:
            why = f"{counted(self._open_messages, 'message')} wait for RabbitMQ at {self.where} already"
            return TooManyWaiting(why, message_id=id_)
        return None

    def _start(self) -> None:
        if self._thread is None and self._closing is None:
            self._thread = threading.Thread(target=self._run, name="insika-publisher", daemon=True)
            self._thread.start()

    def _tell_loop(self, what: Callable[[], None]) -> None:
        """Under the lock, which keeps the loop from being closed in between. Before there is a loop, it will look."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(what)

    def _forget(self, message: Future[None]) -> None:
        with self._lock:
            self._open_messages -= 1
            if self._open_messages == 0 and self._closing is not None:
                self._tell_loop(self._wind_up)

    # On the publisher's own thread.

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._serve())
        except Exception:
            _log.exception("the publisher's thread ends")
        finally:
            loop.run_until_complete(_end_tasks())
            with self._lock:
                self._loop = None
                left, self._inbox = self._inbox, []
            for message in left:
                if message.future.set_running_or_notify_cancel():
                    message.future.set_exception(Closed("the publisher was closed", message_id=message.message_id))
            loop.close()

    async def _serve(self) -> None:
        self._sending = Sending(self._address)
        self._work = asyncio.create_task(self._sending.run())
        with self._lock:
            self._loop = asyncio.get_running_loop()
        self._take()
        self._wind_up()
        await asyncio.wait([self._work])

    def _take(self) -> None:
        with self._lock:
            messages, self._inbox = self._inbox, []
        self._sending.add(messages)

    def _wind_up(self) -> None:
        """Called when the publisher is closing, and again when nothing is left to wait for."""
        with self._lock:
            closing, left = self._closing, self._open_messages
        if closing is None:
            return
        asyncio.get_running_loop().call_later(closing if left else 0, self._end)

    def _end(self) -> None:
        if not self._work.cancelling():  # a second time would cut its leave-taking short
            self._work.cancel()


async def _end_tasks() -> None:
    """What is left when a connection could not be given up: at most the look-up of a host's name."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
