"""What the publisher's own thread does: keep a connection, send what waits, and end every message that it was given.

Only that thread calls anything here. Pauses between tries to connect grow up to `LONGEST_PAUSE_S`; a broker that does
not know us is tried again as well, since somebody may mend that, but nobody is kept waiting for it at the beginning.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable

from insika.producer.address import BrokerAddress
from insika.producer.errors import Closed, NotPublished, NotRouted, Refused, TooLarge, Unreachable
from insika.producer.link import Link, LinkOwner, Loss, Unopened, open_link
from insika.producer.window import Outgoing, Window

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
"""Each pause is up to twice the one before, and random in its upper half: many producers must not come at once."""
_TOO_LARGE = "message size"
"""How RabbitMQ begins to say, in the text of PRECONDITION_FAILED, that it takes no message of this size."""

_log = logging.getLogger("insika.producer")


class Sending:
    """`connect` raises Unopened; `pause` waits some seconds between two tries."""

    def __init__(
        self,
        address: BrokerAddress,
        *,
        connect: Callable[[BrokerAddress, LinkOwner], Awaitable[Link]] = open_link,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._broker = f"RabbitMQ at {address.name}"
        self._address = address
        self._connect = connect
        self._pause = pause
        self._window = Window()
        self._link: Link | None = None
        self._why = "no connection was tried yet"
        self._was_connected = False
        self._told_away = False
        self._pause_s = FIRST_PAUSE_S

    def add(self, messages: Iterable[Outgoing]) -> None:
        """Send these after all that were added before. Their time begins now."""
        loop = asyncio.get_running_loop()
        for message in messages:
            message.timer = loop.call_later(message.timeout_s, self._expire, message)
            self._window.add(message)
        self._send()

    async def run(self) -> None:
        """Connect, and connect again, until it is cancelled; then what is still open ends with Closed."""
        try:
            while True:
                try:
                    await self._connect_and_serve()
                except Unopened as unopened:
                    self._away(unopened.why)
                    if unopened.final and not self._was_connected:
                        self._end_all(Unreachable, f"{self._broker} does not let us in: {unopened.why}")
                except Exception as defect:
                    _log.exception("the connection to the broker failed in a way that was not foreseen")
                    await self._leave(Loss(type(defect).__name__, blaming=False))
                await self._pause(self._pause_s * random.uniform(0.5, 1))  # noqa: S311  (not for secrets)
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        finally:
            self._end_all(Closed, f"the publisher was closed before {self._broker} had confirmed the message")
            if self._link is not None:
                await self._link.close()

    async def _connect_and_serve(self) -> None:
        """Until the connection is lost. Raises Unopened."""
        link = await self._connect(self._address, self)
        loop = asyncio.get_running_loop()
        opened_at = loop.time()
        self._link, self._was_connected = link, True
        if self._told_away:
            self._told_away = False
            _log.warning("connected to %s again", self._broker)
        self._send()
        loss = await asyncio.shield(link.lost)
        if loop.time() - opened_at >= LONGEST_PAUSE_S:
            self._pause_s = FIRST_PAUSE_S
        await self._leave(loss)

    async def _leave(self, loss: Loss) -> None:
        link = self._link
        self._lose(loss)
        if link is not None:
            await link.close()

    # What the broker says.

    def confirmed(self, tag: int, *, multiple: bool, taken: bool) -> None:
        self._pause_s = FIRST_PAUSE_S
        for message in self._window.confirmed(tag, multiple=multiple):
            if message.returned is not None:
                self._fail(message, NotRouted, self._no_queue(message))
            elif taken:
                self._succeed(message)
            else:
                self._fail(message, Refused, f"{self._broker} refused the message (basic.nack)")
        self._send()

    def returned(self, address: tuple[str, str, str | None], why: str) -> None:
        self._window.returned(address, why)

    def unblocked(self) -> None:
        self._send()

    # What becomes of messages.

    def _send(self) -> None:
        link = self._link
        while link is not None and link.usable and link.blocked is None:
            message = self._window.next()
            if message is None:
                return
            if not message.sent and not message.future.set_running_or_notify_cancel():
                continue
            try:
                tag = link.publish(message)
            except Exception as error:
                # Anything may stand in the properties, and pika checks them while it writes.
                self._fail(message, Refused, f"AMQP cannot carry the message: {type(error).__name__}: {error}")
            else:
                self._window.sent(tag, message)

    def _no_queue(self, message: Outgoing) -> str:
        queue = repr(message.routing_key)
        if message.exchange:
            queue = f"for exchange {message.exchange!r} with routing key {queue}"
        declared = "whoever reads it declares it, and has not run there yet"
        return f"{self._broker} has no queue {queue} ({message.returned}); {declared}"

    def _expire(self, message: Outgoing) -> None:
        within = f"within {message.timeout_s:g} s"
        if self._link is None:
            why = f"could not be reached {within}: {self._why}"
        elif self._link.blocked is not None:
            why = f"takes no messages at the moment ({self._link.blocked}), and did not take this one {within}"
        elif message.sent:
            why = f"did not confirm the message {within}"
        else:
            why = f"did not confirm those before the message {within}"
        self._fail(message, Unreachable, f"{self._broker} {why}")
        self._window.forget_ended()

    def _lose(self, loss: Loss) -> None:
        self._link = None
        lost = self._window.lose(blaming=loss.blaming)
        if lost.guilty is not None:
            refused = TooLarge if _TOO_LARGE in loss.why else Refused
            self._fail(lost.guilty, refused, f"{self._broker} refused the message: {loss.why}")
        else:
            self._away(loss.why)
        for message in lost.unknown:
            self._fail(message, Unreachable, f"the connection to {self._broker} was lost: {loss.why}")

    def _away(self, why: str) -> None:
        self._why = why
        if not self._told_away:
            self._told_away = True
            _log.warning("no connection to %s: %s", self._broker, why)

    def _end_all(self, kind: type[NotPublished], why: str) -> None:
        for message in self._window.clear():
            self._fail(message, kind, why)

    def _succeed(self, message: Outgoing) -> None:
        _stop_timer(message)
        if not message.done:
            message.future.set_result(None)

    def _fail(self, message: Outgoing, kind: type[NotPublished], why: str) -> None:
        _stop_timer(message)
        if message.done or not (message.future.running() or message.future.set_running_or_notify_cancel()):
            return
        unknown = message.sent and kind in (Unreachable, Closed)
        text = f"{why}; nobody knows whether it was taken" if unknown else why
        message.future.set_exception(kind(text, message_id=message.message_id, may_have_arrived=unknown))


def _stop_timer(message: Outgoing) -> None:
    if message.timer is not None:
        message.timer.cancel()
        message.timer = None
