"""What the processes share between their start and their end: the loop as their threads reach it, and the two lines
that tell of both."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import structlog

T = TypeVar("T")

CONSUMER_STOP_S = 10.0
"""How long actors that run may take to end; they only wait for a statement."""
BOUND_S = 60.0

_log = structlog.get_logger("insika.process")


async def until_stopped(process: str, stop: asyncio.Event, *work: asyncio.Task[Any]) -> None:
    """Say that `process` works, and return when it is told to stop. Raises what any of `work` raises before that, and
    RuntimeError when one just ends: a process without it would only seem to work."""
    _log.info("ready", process=process)
    stopping = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait({stopping, *work}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    for task in done - {stopping}:
        task.result()
        if not stop.is_set():
            raise RuntimeError(f"a part of the {process} ended by itself")
    _log.info("stopping", process=process)


def on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, bool]) -> bool:
    """Run `work` on the process's loop and wait for its answer, on any other thread. True also when the process is
    ending or does not answer: then there is nothing to be done here."""
    try:
        answer = asyncio.run_coroutine_threadsafe(work, loop)
    except RuntimeError:
        work.close()
        return True
    try:
        return answer.result(BOUND_S)
    except (TimeoutError, CancelledError):
        return True
