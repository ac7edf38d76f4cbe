"""Keeps a process's view of the configuration fresh where nothing else looks at the store."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from actors.configuration import Configuration
from insika.storage.port import StoreUnavailable

REFRESH_S = 1.0

_log = structlog.get_logger("insika.configuration")


async def keep_fresh(configuration: Configuration, stop: asyncio.Event) -> None:
    """Until `stop` is set. What was known stays known while the store is away."""
    while not stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_S):
                await stop.wait()
                return
        try:
            await configuration.refresh()
        except StoreUnavailable as error:
            _log.warning("configuration not refreshed", reason=error.message)
        except Exception:
            # Unforeseen; but a process that stopped looking would go on with old settings, unseen.
            _log.exception("configuration not refreshed")
