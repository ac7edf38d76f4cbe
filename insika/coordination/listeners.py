"""Those who want to be told, and what becomes of the errors they make: one listener's is not another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import structlog

Told = TypeVar("Told")


class Listeners(Generic[Told]):
    """Called one after the other, in the order in which they came. `what`: what they are told of, for the log."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._listeners: list[Callable[[Told], None]] = []
        self._log = structlog.get_logger("insika.coordination")

    @contextmanager
    def listen(self, listener: Callable[[Told], None]) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def tell(self, told: Told) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(told)
            except Exception:
                self._log.exception("listener_failed", of=self._what)
