"""How a command tells the processes of a cluster what it has just written, so that they need not find it by themselves.

They would: the store carries the truth, and all that is told here is a hint. So it is tried for a moment and given up
without a word, and a command never fails over it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from actors.bounded import bounded
from actors.environment import Environment
from actors.wakes import NoSignals, NoWakes, Signals, Wakes
from insika.clock import SystemClock
from insika.events import EventSink, NoEvents

TELL_S = 1.5
"""How long a command waits in the end for RabbitMQ to take its hints. Redis has about as long."""


@dataclass(frozen=True, slots=True)
class Telling:
    """`wakes`: some session has work. `signals`: the one who runs it should look now. `events`: for those who watch."""

    wakes: Wakes = field(default_factory=NoWakes)
    signals: Signals = field(default_factory=NoSignals)
    events: EventSink = field(default_factory=NoEvents)


@asynccontextmanager
async def telling(environment: Environment) -> AsyncIterator[Telling]:
    """Reaches whoever the environment names; where it names nobody, nobody is told. Entering waits for nothing, and
    nothing here raises, but InvalidConfiguration for a URL that is none."""
    amqp_url, redis_url = environment.amqp_url, environment.redis_url
    async with AsyncExitStack() as closing:
        told = Telling()
        if redis_url is not None:
            from insika.coordination.redis.coordination import RedisCoordination

            redis = RedisCoordination(redis_url.get_secret_value(), SystemClock())
            coordination = await closing.enter_async_context(redis)
            told = Telling(signals=coordination.signals, events=coordination.events)
        if amqp_url is not None:
            from actors.broker.hints import Hints

            hints = ExitStack()
            closing.push_async_callback(_close, hints)
            told = replace(told, wakes=hints.enter_context(Hints(amqp_url.get_secret_value())))
        yield told


async def _close(hints: ExitStack) -> None:
    with suppress(TimeoutError):
        await bounded(hints.close, TELL_S)
