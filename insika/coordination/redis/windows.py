"""The windows of the edge limits, over Redis: all checks of a turn's beginning are one script, and one round trip.

While Redis is away each process counts by itself, in its twin: it goes on from what Redis has last said to it and what
it has spent itself in the window under way. When Redis is back its counts hold again, as it has kept them. Tokens that
were spent meanwhile are told to it then; attempts that were made meanwhile are not, they stay with the process that
counted them until their window ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from insika.coordination.local_windows import LocalWindows
from insika.coordination.moments import from_ms
from insika.coordination.redis.keys import window_key
from insika.coordination.redis.questions import Questions
from insika.coordination.redis.scripts import Scripts
from insika.coordination.redis.spending import Spending
from insika.limits.windows import SettledTokens, TurnAttempt, WindowCheck, WindowReading


class RedisWindows:
    def __init__(self, scripts: Scripts, questions: Questions, spending: Spending, twin: LocalWindows) -> None:
        self._script = scripts.load("admit.lua")
        self._namespace = scripts.namespace
        self._questions = questions
        self._spending = spending
        self._twin = twin

    async def admit(self, checks: Sequence[WindowCheck]) -> Sequence[WindowReading]:
        if not checks:
            return ()
        readings = await self._questions.ask(lambda: self._readings(checks))
        if readings is None:
            return await self._twin.admit(checks)
        self._twin.learn(readings)
        return readings

    def spend(self, settled: SettledTokens) -> None:
        self._twin.spend(settled)
        self._spending.put(settled)

    async def _readings(self, checks: Sequence[WindowCheck]) -> Sequence[WindowReading]:
        args: list[str | int] = []
        for check in checks:
            kind, turn = ("attempt", check.turn_id) if isinstance(check, TurnAttempt) else ("ceiling", "")
            args += [kind, check.window_s * 1000, check.limit, turn]
        keys = [window_key(self._namespace, check) for check in checks]
        now, *found = (int(number) for number in await self._script(keys, args))
        return [
            WindowReading(check, counted, from_ms(end), (end - now) / 1000)
            for check, counted, end in zip(checks, found[::2], found[1::2], strict=True)
        ]
