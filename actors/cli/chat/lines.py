"""Where the lines of a chat come from: a keyboard, or a pipe.

A line is read in a thread of its own that nobody waits for, because nothing can interrupt such a read: a process that
is told to stop must not hang on a person who types nothing more. No buffer of Python's is read through, whose lock
that thread would hold while the interpreter ends.
"""

from __future__ import annotations

import asyncio
import io
import os
import stat
import threading
from collections.abc import Callable

ReadLine = Callable[[], str | None]
"""Blocks. None: there will be no more."""

STDIN = 0


async def next_line(read: ReadLine) -> str | None:
    """The next line, without its end. Cancelling this leaves the thread behind; what it reads then is lost."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()

    def tell(text: str | None) -> None:
        if not line.done():
            line.set_result(text)

    def work() -> None:
        text = read()
        try:
            loop.call_soon_threadsafe(tell, text)
        except RuntimeError:
            pass  # the loop is closed: nobody asks any more

    threading.Thread(target=work, name="insika-lines", daemon=True).start()
    return await line


def lines_of(descriptor: int = STDIN) -> ReadLine:
    """Lines of UTF-8 from a pipe, a file, or a terminal as it stands; what is no UTF-8 becomes U+FFFD."""
    file = io.FileIO(descriptor, "r", closefd=False)

    def read() -> str | None:
        try:
            raw = file.readline()
        except OSError:
            return None  # whoever was at the other end is gone, as when a terminal is closed
        return raw.decode("utf-8", "replace").rstrip("\r\n") if raw else None

    return read


def is_input(descriptor: int = STDIN) -> bool:
    """Whether anything can come from there: not when it is closed or the null device, as for a service."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return os.isatty(descriptor) or not stat.S_ISCHR(mode)
