"""Whether Redis does what it is there for. It is a convenience: without it signals arrive late and events are not seen
by others, and nothing is lost or repeated."""

from __future__ import annotations

from collections.abc import Iterator

from actors.doctor.clocks import compared
from actors.doctor.finding import Finding, fail, ok, warn
from actors.doctor.versions import REDIS, new_enough
from insika.coordination.redis.inspection import RedisAway, RedisFacts, RedisRefuses

ABOUT = "redis"


def judged(redis: RedisFacts) -> Iterator[Finding]:
    yield ok(ABOUT, f"Redis answers at {redis.name}{_heard_by(redis.listeners)}.")
    yield new_enough(ABOUT, "Redis", redis.version, REDIS)
    if redis.eviction is not None and redis.eviction.startswith("allkeys-"):
        what = f"Its maxmemory-policy is {redis.eviction}, so it may throw the event stream away."
        yield warn(ABOUT, what, "Give Insika a Redis of its own with noeviction, or a volatile- policy.")
    yield compared("Redis", redis.ahead_s, redis.doubt_s)


def refused(refusal: RedisRefuses) -> Finding:
    return fail(ABOUT, f"{refusal.message}.", "See that the user and the password in INSIKA_REDIS_URL are right.")


def away(reason: RedisAway | str) -> Finding:
    what = reason if isinstance(reason, str) else reason.message
    do = "Start it, or check INSIKA_REDIS_URL; until then processes go on, and signals between them come late."
    return warn(ABOUT, f"{what}.", do)


def _heard_by(listeners: int | None) -> str:
    if listeners is None:
        return ""
    return f"; {listeners} process{'es hear' if listeners != 1 else ' hears'} signals there"
