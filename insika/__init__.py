"""Insika, the engine: it decides what becomes of a conversation. It starts no process and, but for `insika.producer`,
knows no broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from insika.producer.producer import AsyncProducer, Producer

__all__ = ["AsyncProducer", "Producer"]


def __getattr__(name: str) -> object:
    """Producers bring in pika and pydantic, a few tenths of a second that nobody who imports another part of the engine
    should wait for (PEP 562)."""
    if name in __all__:
        from insika.producer import producer  # noqa: PLC0415

        return getattr(producer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
