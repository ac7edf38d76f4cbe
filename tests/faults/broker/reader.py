"""A process that reads the turns of a virtual host and writes down what it handles:
`python -m tests.faults.broker.reader URL QUEUE_TYPE JOURNAL DEADLY`. The message DEADLY ends it as a crash would.

For each message it takes a byte from the pipe JOURNAL.permits, and waits in the middle of it for one to come. It says
"reading" when it is subscribed, and ends on SIGTERM, giving back what it has.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from actors.broker.consumer import QueueConsumer
from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.broker.messages import Delivery
from actors.environment import QueueType


class WritingActors:
    """Stands in the place of `TurnActors`."""

    def __init__(self, journal: str, deadly: bytes = b"") -> None:
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND)
        self._permits = os.open(f"{journal}.permits", os.O_RDONLY)
        self._deadly = deadly

    def accept_turn(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._write(delivery.body, delivery.deliveries)
            if delivery.body == self._deadly:
                os._exit(137)

    def keep_dead(self, delivery: Delivery) -> None:
        self._write(b"dead-" + delivery.body, delivery.deliveries)

    def _write(self, body: bytes, deliveries: int) -> None:
        os.read(self._permits, 1)
        os.write(self._journal, b"%d %s %d\n" % (os.getpid(), body, deliveries))


def is_subscribed(consuming: Consuming) -> bool:
    """Whether each of its queues is being read."""
    threads = consuming._worker.consumers.values()
    readers = [thread.consumer for thread in threads if isinstance(thread.consumer, QueueConsumer)]
    return len(readers) == len(threads) and all(reader._subscription is not None for reader in readers)


def main(url: str, queue_type: str, journal: str, deadly: str) -> None:
    told = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    actors = WritingActors(journal, deadly.encode())
    consuming = Consuming.of_turns(url, QueueType(queue_type), actors, Gate())  # type: ignore[arg-type]
    consuming.start()
    while not is_subscribed(consuming):
        if signal.sigtimedwait({signal.SIGTERM}, 0.01):
            break
    os.write(1, b"reading\n")
    signal.sigwait({signal.SIGTERM})
    consuming.stop(10)
    signal.pthread_sigmask(signal.SIG_SETMASK, told)


if __name__ == "__main__":
    main(*sys.argv[1:])
