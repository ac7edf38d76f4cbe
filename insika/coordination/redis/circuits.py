"""Circuits over Redis: one for all processes, and one script a step.

While Redis is away each process keeps circuits of its own, in its twin. There one is open for as long as Redis has last
said it would be; failures are counted from nothing. When Redis is back its circuits hold again, as it has kept them.
Whoever gave out a trial hears how it ended: if that is Redis, and it is away just then, the place is free when the
trial's time is over.
"""

from __future__ import annotations

import uuid
from typing import Any

from insika.agents.reliability import CircuitBreaker
from insika.coordination.local_circuits import LocalCircuits
from insika.coordination.moments import duration_ms, from_ms
from insika.coordination.redis.keys import circuit_keys
from insika.coordination.redis.questions import Questions
from insika.coordination.redis.scripts import Scripts
from insika.reliability.circuit import TRIAL_GRACE_S, Circuit, Closed, Open, Passage, Trial, Tripped


class RedisCircuits:
    def __init__(self, scripts: Scripts, questions: Questions, twin: LocalCircuits) -> None:
        self._script = scripts.load("circuit.lua")
        self._namespace = scripts.namespace
        self._questions = questions
        self._twin = twin

    async def before(self, circuit: Circuit, attempt_timeout_s: float) -> Passage:
        passage = await self._questions.ask(lambda: self._passage(circuit, attempt_timeout_s))
        if passage is None:
            return await self._twin.before(circuit, attempt_timeout_s)
        if not isinstance(passage, Trial):
            self._twin.learn(circuit, passage)
        return passage

    async def succeeded(self, circuit: Circuit, token: str = "") -> None:
        await self._end("succeeded", circuit, token)
        await self._twin.succeeded(circuit, token)

    async def failed(self, circuit: Circuit, breaker: CircuitBreaker, token: str = "") -> Tripped | None:
        if self._twin.on_trial(circuit, token):
            return await self._twin.failed(circuit, breaker, token)
        tripped = await self._questions.ask(lambda: self._tripped(circuit, breaker, token))
        if tripped is None:
            return await self._twin.failed(circuit, breaker, token)
        for once in tripped:
            self._twin.learn(circuit, Open(once.retry_after_s))
            return once
        return None

    async def abandoned(self, circuit: Circuit, token: str) -> None:
        await self._end("abandoned", circuit, token)
        await self._twin.abandoned(circuit, token)

    async def _end(self, how: str, circuit: Circuit, token: str) -> None:
        if token and not self._twin.on_trial(circuit, token):
            await self._questions.ask(lambda: self._do(circuit, how, token))

    async def _passage(self, circuit: Circuit, attempt_timeout_s: float) -> Passage:
        token = uuid.uuid4().hex
        what, *rest = await self._do(circuit, "before", token, duration_ms(attempt_timeout_s + TRIAL_GRACE_S))
        passages: dict[bytes, Passage] = {b"closed": Closed(), b"trial": Trial(token)}
        return Open(int(rest[0]) / 1000) if what == b"open" else passages[what]

    async def _tripped(self, circuit: Circuit, breaker: CircuitBreaker, token: str) -> list[Tripped]:
        """Once, or not at all."""
        cooldown_ms, within_ms = duration_ms(breaker.cooldown), duration_ms(breaker.within)
        what, *rest = await self._do(circuit, "failed", token, cooldown_ms, breaker.after, within_ms)
        if what != b"tripped":
            return []
        opened_ms, reopened = (int(number) for number in rest)
        return [Tripped(from_ms(opened_ms), breaker.cooldown, bool(reopened))]

    async def _do(self, circuit: Circuit, *args: str | int) -> list[Any]:
        return await self._script(circuit_keys(self._namespace, circuit), args)
