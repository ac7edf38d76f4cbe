"""Looks at Redis for a diagnosis. It writes nothing, and what a server keeps to itself is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, ResponseError

from insika.coordination.redis.connection import ANSWER_S, CLOSE_S, connect, described, place_of, signals_channel
from insika.errors import InsikaError

_ROUNDS = 3
"""The clock is asked so often, and the quickest answer counts."""


class RedisAway(InsikaError):
    """Nothing answers there, or not in time, or what it says cannot be read."""

    type = "redis_unreachable"


class RedisRefuses(InsikaError):
    """It answers and will not do: a wrong password, a missing permission."""

    type = "redis_refuses"


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """`name`: host, port and number. `eviction`: its maxmemory-policy, and `memory_max` its maxmemory in bytes, 0 for
    none; None where it does not tell. `listeners`: processes that hear signals there, if it tells. `ahead_s`: by how
    much its clock is ahead of this machine's, give or take `doubt_s`."""

    name: str
    version: str
    eviction: str | None
    memory_max: int | None
    listeners: int | None
    ahead_s: float
    doubt_s: float


async def inspect(url: str, now: Callable[[], datetime], *, namespace: str = "insika") -> RedisFacts:
    """`now` is this machine's clock. Raises RedisAway, RedisRefuses, or InvalidConfiguration for a URL that cannot be
    read."""
    client = connect(url)
    try:
        return await _facts(client, now, namespace)
    except Exception as error:
        refused = isinstance(error, ResponseError | AuthenticationError)
        raise (RedisRefuses if refused else RedisAway)(f"{place_of(client)}: {described(error)}") from None
    finally:
        try:
            async with asyncio.timeout(CLOSE_S):
                await client.aclose()
        except Exception:  # noqa: S110 - what is left of the connection goes with the process
            pass


async def _facts(client: Redis, now: Callable[[], datetime], namespace: str) -> RedisFacts:
    server: Mapping[str, Any] = await _answer(client.info("server"))
    doubt_s, ahead_s = min([await _compared(client, now) for _ in range(_ROUNDS)])
    memory = await _told(client.info("memory")) or {}
    channel = signals_channel(client, namespace)
    subscribed = await _told(client.pubsub_numsub(channel))
    return RedisFacts(
        name=place_of(client),
        version=str(server.get("redis_version", "")),
        eviction=memory.get("maxmemory_policy"),
        memory_max=memory.get("maxmemory"),
        listeners=int(subscribed[0][1]) if subscribed else None,
        ahead_s=ahead_s,
        doubt_s=doubt_s,
    )


async def _compared(client: Redis, now: Callable[[], datetime]) -> tuple[float, float]:
    """How far off the comparison may be, and by how much its clock is ahead."""
    sent = now()
    seconds, micros = await _answer(client.time())
    half = (now() - sent) / 2
    theirs = datetime.fromtimestamp(int(seconds), UTC) + timedelta(microseconds=int(micros))
    return half.total_seconds(), (theirs - sent - half).total_seconds()


async def _told(question: Awaitable[Any]) -> Any:
    """None: this server does not let everybody ask that."""
    try:
        return await _answer(question)
    except ResponseError:
        return None


async def _answer(question: Awaitable[Any]) -> Any:
    async with asyncio.timeout(ANSWER_S):
        return await question
