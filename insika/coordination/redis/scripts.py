"""Scripts that Redis runs as one step each, and whose time they go by.

All of them begin with `#!lua`: such a script is refused as a whole where it could not write (redis.io: "Eval scripts
flags"), instead of stopping half-way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from redis.asyncio import Redis

from insika.clock import Clock
from insika.coordination.moments import in_ms

Time = Callable[[], str]
"""What a script is given as the time, in milliseconds."""


def own_time() -> str:
    """The script asks the clock of Redis, which is one for all processes."""
    return ""


def time_of(clock: Clock) -> Time:
    return lambda: str(in_ms(clock.now()))


class Script:
    """One of the files. A Redis that does not know it is sent it, which costs two round trips more, once."""

    def __init__(self, client: Redis, name: str, time: Time) -> None:
        text = resources.files("insika.coordination.redis").joinpath(name).read_text(encoding="utf-8")
        self._script = client.register_script(text)
        self._time = time

    async def __call__(self, keys: Sequence[str], args: Sequence[str | int]) -> list[Any]:
        answer: Any = await self._script(keys=list(keys), args=[self._time(), *args])
        return list(answer)


class Scripts:
    """`namespace` begins the name of every key."""

    def __init__(self, client: Redis, namespace: str, time: Time = own_time) -> None:
        self._client = client
        self._time = time
        self.namespace = namespace

    def load(self, name: str) -> Script:
        return Script(self._client, name, self._time)
