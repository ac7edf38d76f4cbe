"""How a process that works until it is told to stop is told."""

from __future__ import annotations

import asyncio
import signal

STOPS = (signal.SIGINT, signal.SIGTERM)


def stop_on_signals() -> asyncio.Event:
    """Set at the first SIGINT or SIGTERM. A second one does what it does by default: it ends the process as it is,
    which loses nothing either."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def told() -> None:
        stop.set()
        for number in STOPS:
            loop.remove_signal_handler(number)

    for number in STOPS:
        loop.add_signal_handler(number, told)
    return stop
