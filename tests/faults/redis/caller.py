"""A process with many callers that all do one thing at one instant: `python -m tests.faults.redis.caller URL BARRIER`.

Commands come in as JSON lines, answers go out as JSON lines. It makes ready for each, says that it waits, and begins
when it gets its share of the lock on the file BARRIER, which whoever commands it holds until all wait.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from insika.agents.reliability import CircuitBreaker
from insika.clock import ManualClock
from insika.coordination.redis.coordination import RedisCoordination
from insika.coordination.redis.questions import AT_ONCE
from insika.coordination.redis.scripts import time_of
from insika.limits.windows import SettledTokens, TokenCeiling, TurnAttempt
from insika.reliability.circuit import Open, Trial
from tests.limits_world import MODEL, PATIENT_S, RATE_WINDOW_S, TIMEOUT_S, TOKEN_WINDOW_S


class Caller:
    """What one caller may be told to do; `number` tells it from all others."""

    def __init__(self, redis: RedisCoordination) -> None:
        self._redis = redis

    async def begin(self, number: int, session: str, limit: int, turns: int = 1_000) -> Any:
        """One of `turns` turns, so that several callers begin the same."""
        check = TurnAttempt("", session, f"turn-{number % turns}", limit, RATE_WINDOW_S)
        (reading,) = await self._redis.windows.admit([check])
        return [reading.counted, reading.breached]

    async def look(self, number: int, agent: str, ceiling: int) -> Any:
        (reading,) = await self._redis.windows.admit([TokenCeiling("", agent, ceiling, TOKEN_WINDOW_S)])
        return [reading.counted, reading.breached]

    async def spend(self, number: int, agent: str, tokens: int, calls: int) -> Any:
        """Of `calls` calls one is told, so that several callers tell of the same."""
        turn = f"turn-{number % calls}"
        self._redis.windows.spend(SettledTokens("", agent, TOKEN_WINDOW_S, turn, 1, 1, "answer", tokens))
        while await self._redis.spending.send():
            pass

    async def ask(self, number: int) -> Any:
        passage = await self._redis.circuits.before(MODEL, TIMEOUT_S)
        if isinstance(passage, Trial):
            return {"trial": passage.token}
        return {"open": passage.retry_after_s} if isinstance(passage, Open) else {"closed": True}

    async def fail(self, number: int, token: str = "") -> Any:
        tripped = await self._redis.circuits.failed(MODEL, CircuitBreaker(), token)
        return None if tripped is None else [tripped.opened_at.isoformat(), tripped.retry_after_s, tripped.reopened]

    async def succeed(self, number: int, token: str) -> Any:
        await self._redis.circuits.succeeded(MODEL, token)

    async def abandon(self, number: int, token: str) -> Any:
        await self._redis.circuits.abandoned(MODEL, token)


def say(what: Any) -> None:
    os.write(sys.stdout.fileno(), json.dumps(what).encode() + b"\n")


def pass_barrier(barrier: Path) -> None:
    with barrier.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


async def serve(url: str, barrier: Path) -> None:
    clock, elapsed_s = ManualClock(), 0.0
    redis = RedisCoordination(url, clock, time=time_of(clock), patience_s=PATIENT_S)
    caller = Caller(redis)
    # Neither connecting nor loading a script may be what keeps callers apart.
    await asyncio.gather(*(caller.look(number, "nobody", 1) for number in range(AT_ONCE)), caller.ask(0))
    say("ready")
    for line in iter(sys.stdin.readline, ""):  # nothing else is to happen while it waits for a command
        command = json.loads(line)
        clock.advance(command["elapsed_s"] - elapsed_s)
        elapsed_s = command["elapsed_s"]
        doing: list[Coroutine[Any, Any, Any]] = [
            getattr(caller, command["do"])(number, **command["options"]) for number in command["numbers"]
        ]
        say("waiting")
        pass_barrier(barrier)
        answers = await asyncio.gather(*doing)
        if redis.health.degraded:
            raise RuntimeError(redis.health.reason)
        say(answers)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
