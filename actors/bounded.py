"""Blocking work that may take for ever, for somebody who waits only so long.

It runs on a thread that nothing waits for: neither a loop that ends nor the interpreter. Of work that was given up
nobody hears any more, so it must be of the kind that may be cut anywhere: asking, telling, closing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def bounded(work: Callable[[], T], within_s: float) -> T:
    """What `work` answers or raises. Raises TimeoutError after `within_s` seconds; the work may then still go on."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(how: Callable[[], object]) -> None:
        try:
            loop.call_soon_threadsafe(lambda: answer.done() or how())
        except RuntimeError:
            pass  # the loop has ended: nobody waits there any more

    def run() -> None:
        try:
            done = work()
        except Exception as error:
            raised = error  # what `except` names is gone when the loop comes to it
            tell(lambda: answer.set_exception(raised))
        else:
            tell(lambda: answer.set_result(done))

    threading.Thread(target=run, name="insika-bounded", daemon=True).start()
    async with asyncio.timeout(within_s):
        return await answer
