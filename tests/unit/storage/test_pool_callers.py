"""A caller that is cancelled does not wait for its statement; what becomes of that is nobody's error."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from insika.storage.postgres.connection import Bounds
from insika.storage.postgres.pool import Pool


async def test_a_statement_that_failed_after_its_caller_was_cancelled_is_not_told_as_an_error() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        port = nobody_listens.getsockname()[1]
        pool = Pool(f"postgresql://nobody@127.0.0.1:{port}/nothing", Bounds.within(0.5))
        caller = asyncio.create_task(pool.row("SELECT 1", {}))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await pool.close()
    del caller
    gc.collect()
    assert complaints == []
