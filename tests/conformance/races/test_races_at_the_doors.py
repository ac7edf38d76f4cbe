"""One person's messages come in by two doors at once, and the first of them stands still at every place where it can.

Whatever waits for whatever: each is accepted once, they have the places in which they took the session's row, and
their turns take them in that order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from insika.storage.port import StoreRefused
from insika.storage.rows import Accepted, Verdict
from tests.postgres_here import GATE
from tests.race_world import AS_IT_IS, Altered, Held, Race, naive
from tests.store_world import Owner, done, job, texts

GATED = "-c%20insika.gate%3D1"
FIRST = job("one", job_id="j1", turn_id="11111111-1111-1111-1111-111111111111")
ONE_ROW = "(session_id, position, {}) SELECT id, mail_seq + 1, {} FROM sessions"

STANDS_AT = {
    "the session's row": "SELECT FROM sessions FOR UPDATE",
    "the time": f"SELECT pg_advisory_xact_lock({GATE})",
    "its id": f"INSERT INTO job_ids {ONE_ROW}".format("job_id, digest, seen_at, turn_id", "'j1', '', now(), ''"),
    "its turn": f"INSERT INTO turns {ONE_ROW}".format(
        "id, state, agent, origin, created_at", f"'{FIRST.turn_id}', 'queued', '', '', now()"
    ),
    "its place": f"INSERT INTO mailbox {ONE_ROW}".format(
        "job_id, mode, text, at, verdict, turn_id, agent, origin",
        "'j1', 'followup', '', now(), 'accepted', '', '', ''",
    ),
}
"""What another holds there, and takes back. But for the first, the message that stands still has the session's row."""


async def by_two_doors(race: Race, held: Held, door: Altered = AS_IT_IS, **values: Any) -> list[Accepted]:
    """Three messages of a session that is known, by doors in turn, each sent once those before it stand or are in."""
    sending: list[asyncio.Task[Accepted]] = []
    standing = 0
    for sent, options in ((FIRST, GATED), (job("two", job_id="j2"), ""), (job("three", job_id="j3"), GATED)):
        accepting = race.store(door, options).accept(replace(sent, **values))
        sending.append(asyncio.ensure_future(accepting))
        standing += await race.waits(sending[-1], others=standing)
    assert standing, "nothing comes to that lock"
    await held.take_back()
    return await asyncio.gather(*sending)


@pytest.mark.parametrize("at", STANDS_AT)
async def test_three_messages_by_two_doors_are_in_the_order_of_the_session_s_row(race: Race, at: str) -> None:
    session_id = (await race.world.say("zero")).session_id
    async with race.holding() as held:
        await held.run(STANDS_AT[at])
        said = await by_two_doors(race, held)
    assert [each.verdict for each in said] == [Verdict.ACCEPTED] * 3
    assert sorted(places(said)) == [2, 3, 4]
    if at != "the session's row":
        assert said[0].position == 2, "it had the row first"
    assert await race.waiting_is_counted()
    await run_in_order(race, session_id, ["zero", *in_order(said)])


@pytest.mark.parametrize("at", [at for at in STANDS_AT if at != "its turn"])
async def test_while_a_turn_runs_they_wait_to_join_it_in_that_order(race: Race, at: str) -> None:
    owner = await race.call_done()
    async with race.holding() as held:
        await held.run(STANDS_AT[at])
        said = await by_two_doors(race, held, mode="steer")
    assert [each.verdict for each in said] == [Verdict.STEERED] * 3
    assert sorted(places(said)) == [2, 3, 4]
    await owner.look()
    assert [row.text for row in owner.loaded.mail] == in_order(said)
    await owner.cross(done(0, "a"), absorbed=owner.absorbing(2, 3, 4))
    assert texts(owner.loaded.log) == ["one", *in_order(said)]


@pytest.mark.parametrize("at", [at for at in STANDS_AT if at != "the session's row"])
async def test_without_the_row_s_lock_two_would_get_one_place(race: Race, at: str) -> None:
    """It is the mailbox's key that stops it then, and a door has an error in its hands."""
    await race.world.say("zero")
    unlocked = naive("intake/accept", (" FOR NO KEY UPDATE", ""))
    async with race.holding() as held:
        await held.run(STANDS_AT[at])
        with pytest.raises(StoreRefused, match="mailbox_pkey"):
            await by_two_doors(race, held, unlocked)


async def test_at_first_contact_the_first_place_is_for_whoever_makes_the_session(race: Race) -> None:
    """Who asked first stands still before there is a row to hold."""
    async with race.holding() as held:
        await held.run(STANDS_AT["the time"])
        said = await by_two_doors(race, held)
    assert said[1].position == 1
    assert sorted(places(said)) == [1, 2, 3]
    await run_in_order(race, said[1].session_id, in_order(said))


def places(said: Sequence[Accepted]) -> list[int]:
    return [each.position or 0 for each in said]


def in_order(said: Sequence[Accepted]) -> list[str]:
    """The texts by their places."""
    return [text for _, text in sorted(zip(places(said), ("one", "two", "three"), strict=True))]


async def run_in_order(race: Race, session_id: int, said: Sequence[str]) -> None:
    """A turn for each."""
    owner: Owner = await race.world.own(session_id)
    for _ in said:
        assert await owner.start() is not None
        assert await owner.commit(deliveries=()) is not None
        await owner.look()
    assert owner.loaded.mail == ()
    assert texts(await race.world.store.messages(session_id)) == list(said)
