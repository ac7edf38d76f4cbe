"""Redis goes away while turns are admitted and models tried: no turn fails or waits for long, each process goes on by
itself from what it knows, that is said, and when Redis is back all count together again."""

from __future__ import annotations

import asyncio

import pytest

from insika.coordination.redis.coordination import RedisCoordination
from insika.limits.windows import SettledTokens, TokenCeiling, TurnAttempt
from insika.reliability.circuit import Circuit, Closed, Open, Trial
from tests.coordination_world import PATIENCE_S, Watched
from tests.limits_world import BREAKER, MODEL, TIMEOUT_S

LIMIT, WINDOW_S = 5, 366 * 86_400
"""So long a window ends once in a year: tests that go by real time do not meet its end."""
PATIENT = {"patience_s": 2.0}
"""A busy machine is no outage."""


async def begin(process: RedisCoordination, turn: str) -> int:
    async with asyncio.timeout(PATIENCE_S):
        (reading,) = await process.windows.admit([TurnAttempt("", "ana", turn, LIMIT, WINDOW_S)])
    assert reading.breached == (reading.counted > LIMIT)
    return reading.counted


async def spent(process: RedisCoordination) -> int:
    async with asyncio.timeout(PATIENCE_S):
        (reading,) = await process.windows.admit([TokenCeiling("", "shop", 100, WINDOW_S)])
    return reading.counted


async def until_spent(process: RedisCoordination, tokens: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await spent(process) < tokens:  # noqa: ASYNC110 - nobody is told when it is counted
            await asyncio.sleep(0.01)


def settled(tokens: int, step: int) -> SettledTokens:
    return SettledTokens("", "shop", WINDOW_S, "t1", step, 1, "answer", tokens)


async def killed(server):
    await server.kill()


async def paused(server):
    server.pause()


async def started_again(server):
    await server.start()


async def continued(server):
    server.resume()


async def read_only(server):
    await server.do("REPLICAOF", "127.0.0.1", "1")


async def writable(server):
    await server.do("REPLICAOF", "NO", "ONE")


async def full(server):
    await server.do("CONFIG", "SET", "maxmemory", "1")


async def roomy(server):
    await server.do("CONFIG", "SET", "maxmemory", "0")


async def without_scripts(server):
    await server.do("ACL", "SETUSER", "default", "-@scripting")


async def with_scripts(server):
    await server.do("ACL", "SETUSER", "default", "+@all")


OUTAGES = pytest.mark.parametrize(
    ("away", "back"),
    [
        (killed, started_again),
        (paused, continued),
        (read_only, writable),
        (full, roomy),
        (without_scripts, with_scripts),
    ],
)


@OUTAGES
async def test_attempts_and_tokens_go_on_by_process_and_together_again(server, process, away, back):
    ours, others = process(**PATIENT), process(**PATIENT)
    health, there = Watched(ours.health), Watched(others.health)
    with ours.health.listen(health), others.health.listen(there):
        assert [await begin(ours, "t1"), await begin(others, "t2"), await begin(ours, "t3")] == [1, 2, 3]
        ours.windows.spend(settled(60, step=1))
        await until_spent(others, 60)
        await away(server)
        # Each from what it was last told: the one has heard of three attempts, the other of two.
        assert [await begin(ours, turn) for turn in ("t4", "t3", "t5", "t6", "t4")] == [4, 3, 5, 6, 4]
        assert [await begin(others, turn) for turn in ("t7", "t8")] == [3, 4]
        ours.windows.spend(settled(7, step=2))
        others.windows.spend(settled(30, step=3))
        assert await spent(others) == 90
        await health.becomes(degraded=True)
        await there.becomes(degraded=True)
        assert ours.health.reason.startswith("Redis ")
        await back(server)
        await health.becomes(degraded=False)
        await there.becomes(degraded=False)
        # As Redis had counted them, and what was spent meanwhile. One that only stood still finds what was asked of it
        # before it was given up: a turn of each process.
        assert await begin(others, "t9") == (6 if away is paused else 4)
        assert await begin(ours, "t3") == 3
        await until_spent(ours, 97)
        assert await spent(others) == 97
    assert health.told == there.told == [True, False]


@OUTAGES
async def test_circuits_go_on_by_process_and_together_again(server, process, away, back):
    ours, others = process(**PATIENT), process(**PATIENT)
    health, there = Watched(ours.health), Watched(others.health)
    with ours.health.listen(health), others.health.listen(there):
        for _ in range(9):
            assert await ours.circuits.failed(MODEL, BREAKER) is None
        assert await others.circuits.failed(MODEL, BREAKER) is not None
        await away(server)
        # The one that was told that it is open keeps it so; the other has heard nothing, and counts from nothing.
        assert isinstance(await others.circuits.before(MODEL, TIMEOUT_S), Open)
        assert await ours.circuits.before(MODEL, TIMEOUT_S) == Closed()
        told = [await ours.circuits.failed(MODEL, BREAKER) for _ in range(11)]
        assert [each is not None for each in told] == [False] * 9 + [True, False]
        assert isinstance(await ours.circuits.before(MODEL, TIMEOUT_S), Open)
        await ours.circuits.succeeded(MODEL, "a token of nobody")
        await ours.circuits.abandoned(MODEL, "a token of nobody")
        await health.becomes(degraded=True)
        await back(server)
        await health.becomes(degraded=False)
        assert isinstance(await ours.circuits.before(MODEL, TIMEOUT_S), Open)
        await server.do("FLUSHALL")
        assert await ours.circuits.before(MODEL, TIMEOUT_S) == Closed()


async def test_whoever_gave_out_a_trial_hears_how_it_ended(server, process):
    ours = process(**PATIENT)
    soon = BREAKER.model_copy(update={"after": 1, "cooldown": 0.001})
    health = Watched(ours.health)
    with ours.health.listen(health):
        await server.kill()
        assert await ours.circuits.failed(MODEL, soon) is not None
        trial = await trial_of(ours)
        await server.start()
        await health.becomes(degraded=False)
        again = await ours.circuits.failed(MODEL, soon, trial.token)
        assert again is not None
        assert again.reopened
        assert await ours.circuits.before(MODEL, TIMEOUT_S) == Closed()
        assert await ours.circuits.failed(MODEL, soon) is not None
        trial = await trial_of(ours)
        await server.kill()
        assert await ours.circuits.failed(MODEL, soon, trial.token) is None
        await server.start()
        assert (
            await server.do("HGET", "insika:circuit:acme:anthropic/claude-sonnet-4-5", "token") == trial.token.encode()
        )


async def trial_of(process: RedisCoordination) -> Trial:
    """Once it has cooled down."""
    async with asyncio.timeout(PATIENCE_S):
        while not isinstance(passage := await process.circuits.before(MODEL, TIMEOUT_S), Trial):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    return passage


async def test_a_redis_that_forgets_everything_costs_counts_and_nothing_else(server, process):
    ours = process(**PATIENT)
    for number in range(3):
        assert await begin(ours, f"t{number}") == number + 1
    await server.do("FLUSHALL")
    await server.do("SCRIPT", "FLUSH")
    ours.windows.spend(settled(10, step=1))
    await until_spent(ours, 10)
    assert [await begin(ours, turn) for turn in ("t2", "t4")] == [1, 2]
    assert not ours.health.degraded


async def test_nobody_waits_for_redis_to_begin(server, process):
    await server.kill()
    ours = process(**PATIENT)
    assert await begin(ours, "t1") == 1
    assert await ours.circuits.before(MODEL, TIMEOUT_S) == Closed()
    ours.windows.spend(settled(10, step=1))
    assert await spent(ours) == 10


async def test_what_was_spent_is_told_before_the_end(server, process):
    ours, others = process(**PATIENT), process(**PATIENT)
    for step in range(1_000):
        ours.windows.spend(settled(1, step))
    await ours.aclose()
    assert await spent(others) == 1_000


async def test_everything_goes_away_by_itself(server, process):
    ours = process(**PATIENT)
    await begin(ours, "t1")
    ours.windows.spend(settled(1, step=1))
    await until_spent(ours, 1)
    await ours.circuits.failed(MODEL, BREAKER.model_copy(update={"after": 1}))
    await ours.circuits.failed(Circuit("", "offline/other"), BREAKER)
    keys = await server.do("KEYS", "insika:*")
    counted = [key for key in keys if not key.startswith(b"insika:events")]
    assert len(counted) == 5
    for key in counted:
        assert 0 < await server.do("PTTL", key) <= (WINDOW_S + 30) * 1000
