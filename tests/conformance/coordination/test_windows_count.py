"""What the edge limits' windows count, by whichever process: each attempt once, blocked ones too; each call once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from insika.limits.windows import MOST_TOKENS, SettledTokens, TokenCeiling, TurnAttempt, WindowReading
from tests.limits_world import RATE_WINDOW_S, TOKEN_WINDOW_S, attempt, settled


def numbers(*readings: WindowReading) -> list[tuple[int, bool]]:
    return [(reading.counted, reading.breached) for reading in readings]


async def test_attempts_beyond_the_limit_are_breaches_and_count_too(counting):
    ours, others = counting.processes
    readings = [await process.begin(f"t{n}", limit=2) for n, process in enumerate((ours, others, ours, others))]
    assert numbers(*readings) == [(1, False), (2, False), (3, True), (4, True)]


async def test_a_turn_that_begins_again_is_not_counted_again_and_reads_as_before(counting):
    ours, others = counting.processes
    first = [await ours.begin(f"t{n}", limit=2) for n in range(4)]
    again = [await others.begin(f"t{n}", limit=2) for n in range(4)]
    assert again == first
    assert numbers(await ours.begin("t4", limit=2)) == [(5, True)]


async def test_a_window_begins_anew_at_a_multiple_of_its_length(counting):
    ours, others = counting.processes
    counting.clock.advance(RATE_WINDOW_S - 0.001)
    assert numbers(await ours.begin("t1", 1), await others.begin("t2", 1)) == [(1, False), (2, True)]
    counting.clock.advance(0.001)
    assert numbers(await others.begin("t3", 1), await ours.begin("t2", 1)) == [(1, False), (2, True)]


async def test_a_reading_says_when_its_window_ends(counting):
    counting.clock.advance(3_725.5)
    reading = await counting.processes[0].begin("t1")
    spent = await counting.processes[0].spent()
    hour = datetime(2030, 1, 1, 1, tzinfo=UTC)
    assert (reading.ends_at, reading.retry_after_s) == (hour + timedelta(minutes=3), 54.5)
    assert (spent.ends_at, spent.retry_after_s) == (hour + timedelta(hours=23), 82_674.5)


async def test_sessions_tenants_agents_and_lengths_have_windows_of_their_own(counting):
    (process, _) = counting.processes
    checks = [
        attempt("t1"),
        attempt("t2", session="ben"),
        TurnAttempt("", "ana", "t3", 3, 60),
        TurnAttempt("acme", "ana", "t4", 3, 3_600),
        TurnAttempt("ac", "meana", "t5", 3, 60),
        TurnAttempt("acme:ana", "", "t6", 3, 60),
    ]
    assert numbers(*await process.windows.admit(checks)) == [(1, False)] * len(checks)
    process.windows.spend(settled(7))
    process.windows.spend(settled(8, agent="other"))
    process.windows.spend(SettledTokens("", "shop", TOKEN_WINDOW_S, "t1", 1, 1, "answer", 9))
    process.windows.spend(SettledTokens("acme", "shop", 3_600, "t1", 1, 1, "answer", 10))
    await process.told()
    whose = [("acme", "shop", 86_400), ("acme", "other", 86_400), ("", "shop", 86_400), ("acme", "shop", 3_600)]
    ceilings = [TokenCeiling(tenant, agent, 100, window_s) for tenant, agent, window_s in whose]
    assert [each.counted for each in await process.windows.admit(ceilings)] == [7, 8, 9, 10]


async def test_all_checks_of_a_beginning_are_answered_in_order_and_all_attempts_count(counting):
    """As where an agent hands the turn to another one: the same session, with the limit of each."""
    ours, others = counting.processes
    ours.windows.spend(settled(100))
    await ours.told()
    for turn, expected in (
        ("t1", [(1, False), (100, True), (1, False), (0, False)]),
        ("t2", [(2, True), (100, True), (2, False), (0, False)]),
        ("t3", [(3, True), (100, True), (3, True), (0, False)]),
    ):
        ceilings = [TokenCeiling("acme", agent, 100, TOKEN_WINDOW_S) for agent in ("shop", "orders")]
        checks = [attempt(turn, 1), ceilings[0], attempt(turn, 2), ceilings[1]]
        readings = await others.windows.admit(checks)
        assert [reading.check for reading in readings] == checks
        assert numbers(*readings) == expected


async def test_nothing_to_check_is_nothing_to_read(counting):
    assert list(await counting.processes[0].windows.admit([])) == []


async def test_a_ceiling_is_breached_when_it_is_reached(counting):
    ours, others = counting.processes
    for step, (tokens, expected) in enumerate([(99, (99, False)), (1, (100, True)), (50, (150, True))]):
        ours.windows.spend(settled(tokens, step=step))
        await ours.told()
        assert numbers(await others.spent(ceiling=100)) == [expected]
    assert numbers(await others.spent(ceiling=151)) == [(150, False)]


async def test_a_call_counts_once_however_often_it_is_told_and_by_whom(counting):
    ours, others = counting.processes
    for process in (ours, others, ours):
        process.windows.spend(settled(10))
        await process.told()
    others.windows.spend(settled(11))
    await others.told()
    assert (await ours.spent()).counted == 10
    others.windows.spend(settled(1, step=2))
    others.windows.spend(settled(2, number=2))
    others.windows.spend(settled(4, purpose="moderate"))
    others.windows.spend(settled(8, turn="t2"))
    await others.told()
    assert (await ours.spent()).counted == 25


async def test_tokens_count_in_the_window_in_which_they_are_told(counting):
    ours, others = counting.processes
    ours.windows.spend(settled(10))
    await ours.told()
    counting.clock.advance(TOKEN_WINDOW_S)
    assert (await others.spent()).counted == 0
    ours.windows.spend(settled(10))
    await ours.told()
    assert (await others.spent()).counted == 10


@pytest.mark.parametrize(("tokens", "counted"), [(0, 0), (-5, 0), (10**30, MOST_TOKENS)])
async def test_what_no_call_can_cost_is_not_believed(counting, tokens, counted):
    (process, _) = counting.processes
    process.windows.spend(settled(tokens))
    await process.told()
    assert (await process.spent(ceiling=10**30)).counted == counted


async def test_a_clock_that_is_set_back_begins_a_window_anew(counting):
    (process, _) = counting.processes
    await process.begin("t1", 1)
    counting.clock.jump(-RATE_WINDOW_S)
    assert numbers(await process.begin("t2", 1), await process.begin("t3", 1)) == [(1, False), (2, True)]


@pytest.mark.parametrize("name", ["", "ana ❤", "+49 151 : / %", "x" * 5_000, "a\0b"])
async def test_names_may_be_anything(counting, name):
    ours, others = counting.processes
    check = TurnAttempt(name, name, name, 1, 60)
    ceiling = TokenCeiling(name, name, 5, 60)
    ours.windows.spend(SettledTokens(name, name, 60, name, 1, 1, name, 5))
    await ours.told()
    for process in (ours, others):
        assert numbers(*await process.windows.admit([check, ceiling])) == [(1, False), (5, True)]


async def test_turns_are_known_again_far_beyond_the_limit(counting):
    ours, others = counting.processes
    for number in range(1, 1_003):
        await ours.begin(f"t{number}", limit=2)
    assert numbers(await others.begin("t1", 2), await others.begin("t1002", 2)) == [(1, False), (1_002, True)]


@pytest.mark.parametrize(("limit", "window_s"), [(0, 60), (-1, 60), (1, 0), (1, 10**12)])
def test_what_is_off_or_never_ends_cannot_be_asked_about(limit, window_s):
    with pytest.raises(ValueError, match=r"limit|window"):
        TurnAttempt("", "ana", "t1", limit, window_s)
    with pytest.raises(ValueError, match=r"limit|window"):
        TokenCeiling("", "shop", limit, window_s)
