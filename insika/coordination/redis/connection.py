"""The connections to Redis: without tries of their own, because ours are made in `line`, and without time limits of
their own but for connecting, because ours stand around every question.

Nothing but this package speaks to Redis. What an error of Redis says is never passed on: it may quote what was sent.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis import exceptions
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from insika.errors import InvalidConfiguration

ANSWER_S = 1.0
"""How long Redis may take to answer, connecting included, before it counts as away."""
CLOSE_S = 1.0
"""How long closing may take."""

_CODE = re.compile(r"([A-Z][A-Z0-9]+)\b")


def connect(url: str) -> Redis:
    """A client for `redis://` or `rediss://`; nothing is connected yet. What the URL says of time limits, tries and the
    protocol is left aside. Raises InvalidConfiguration, without the URL, which may hold a password."""
    ours: dict[str, Any] = {
        "socket_connect_timeout": ANSWER_S,
        # It brings in asyncio.wait_for, which before Python 3.12 may swallow a cancellation (python/cpython#86296).
        "socket_timeout": None,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,  # the replies of one command have one shape, whichever version of the client is installed
        "decode_responses": False,
    }
    try:
        pool = ConnectionPool.from_url(_without(url, ours), **ours)
    except ValueError:
        example = "redis://user:password@host:6379/0"
        raise InvalidConfiguration("the Redis URL", [("", f"cannot be read; it should look like {example}")]) from None
    return Redis.from_pool(pool)


def place_of(client: Redis) -> str:
    """Host, port and number, for people."""
    known = client.connection_pool.connection_kwargs
    return f"{known.get('host', 'localhost')}:{known.get('port', 6379)}/{database_number(client)}"


def database_number(client: Redis) -> int:
    return int(client.connection_pool.connection_kwargs.get("db") or 0)


def signals_channel(client: Redis, namespace: str) -> str:
    """Redis has one set of channels for all its database numbers."""
    return f"{namespace}:{database_number(client)}:signals"


def described(error: Exception, patience_s: float = ANSWER_S) -> str:
    """What went wrong with Redis, for people, in our own words. `patience_s`: how long was waited for its answer."""
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        return f"Redis does not answer within {patience_s:g} s"
    if isinstance(error, exceptions.ResponseError | exceptions.AuthenticationError | exceptions.BusyLoadingError):
        code = _CODE.match(str(error))
        return f"Redis refuses ({type(error).__name__}{f', {code[1]}' if code else ''})"
    if isinstance(error, exceptions.ConnectionError | OSError):
        return f"Redis cannot be reached ({type(error).__name__})"
    return f"Redis answers what cannot be read ({type(error).__name__})"


def _without(url: str, ours: dict[str, Any]) -> str:
    parts = urlsplit(url)
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in ours]
    return parts._replace(query=urlencode(options)).geturl()
