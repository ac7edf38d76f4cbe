"""A connection that is made again whenever it is lost, with growing pauses and one log line for each loss.

It belongs to the thread that reads by it; only `nudge` may be called from another. It never sleeps longer than it was
asked to, so its thread stays able to stop.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import structlog
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError, ConnectionWrongStateError

from actors.broker.link import ANSWER_S, connect, no_longer_than
from actors.broker.topology import declare
from actors.environment import QueueType
from insika.errors import InsikaError
from insika.producer.address import BrokerAddress
from insika.producer.link import told

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0

_log = structlog.get_logger("insika.broker")


class KeptConnection:
    """`purpose` is what stands in log lines: the name of the queue."""

    def __init__(
        self,
        address: BrokerAddress,
        queue_type: QueueType,
        purpose: str,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._queue_type = queue_type
        self._purpose = purpose
        self._now = now
        self._connection: BlockingConnection | None = None
        self._failures = 0
        self._next_try_at = 0.0
        self._said = ""
        self._nudged = threading.Event()

    def get(self) -> BlockingConnection | None:
        """The connection, made when its time has come, with every queue declared. None: not yet. Raises what keeps it
        from being made; the caller answers with `lost`."""
        if self._connection is None and self._now() >= self._next_try_at:
            connection = connect(self._address)
            self._connection = connection
            channel = connection.channel()
            declare(channel, self._queue_type)
            channel.close()
            if self._failures:
                _log.info("connected to RabbitMQ again", queue=self._purpose, after_tries=self._failures)
        return self._connection

    def works(self) -> None:
        """It does what it was made for: the next loss is a new one."""
        self._failures = 0
        self._said = ""

    def wait(self, seconds: float) -> None:
        """Until something arrives or happened, or `nudge`, or the time is up. Raises what pika raises when the
        connection is lost."""
        if self._connection is not None:
            self._connection.process_data_events(seconds)
            return
        self._nudged.wait(max(0.0, min(seconds, self._next_try_at - self._now())))
        self._nudged.clear()

    def nudge(self) -> None:
        """Have `wait` return. From any thread."""
        self._nudged.set()
        connection = self._connection
        if connection is not None:
            try:
                connection.add_callback_threadsafe(_nothing)
            except ConnectionWrongStateError:
                pass  # lost just now, which its own thread is about to see

    def lost(self, error: BaseException) -> None:
        """It is of no use any more, for this reason; another is made after a pause."""
        self._failures += 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._failures - 1, 10))
        self._next_try_at = self._now() + pause_s * random.uniform(0.5, 1.0)  # noqa: S311 (spreads the tries, no secret)
        reason = error.message if isinstance(error, InsikaError) else told(error)
        if reason != self._said:
            self._said = reason
            expected = isinstance(error, AMQPError | OSError | InsikaError)
            _log.warning(
                "connection to RabbitMQ lost", queue=self._purpose, reason=reason, exc_info=None if expected else error
            )
        self.close()

    def close(self) -> None:
        """Take leave, if there is still somebody to take leave of."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.is_open:
            try:
                with no_longer_than(ANSWER_S, connection):
                    connection.close()
            except Exception as error:
                _log.debug("connection did not close", queue=self._purpose, reason=told(error))


def _nothing() -> None:
    return None
