"""dramatiq by itself: its own broker, its default worker, an actor that does nothing. Prints messages a second.

python -m benchmarks.no_op AMQP_URL COUNT
"""

from __future__ import annotations

import sys
import threading
import time

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker


def main(amqp_url: str, count: int) -> None:
    broker = RabbitmqBroker(url=amqp_url, middleware=[])
    seen = [0]
    times: list[float] = []
    all_seen = threading.Event()
    lock = threading.Lock()

    def no_op() -> None:
        with lock:
            seen[0] += 1
            if seen[0] == 1:
                times.append(time.perf_counter())
            if seen[0] == count:
                times.append(time.perf_counter())
                all_seen.set()

    actor = dramatiq.actor(no_op, broker=broker, queue_name="bench-no-op")
    for _ in range(count):
        actor.send()
    worker = dramatiq.Worker(broker)
    worker.start()
    all_seen.wait()
    worker.stop()
    broker.close()
    print((count - 1) / (times[1] - times[0]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
