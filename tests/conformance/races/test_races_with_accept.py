"""A message arrives while its session's owner acts. Whoever has the row first is first, and nothing falls between.

Every test says what must hold, and that it does not hold once a rule is taken out of the statement (`lost`).
"""

from __future__ import annotations

import pytest

from insika.clock import NEVER
from insika.storage.operations import FailQueued, Release, SettleMail
from insika.storage.rows import Begun, CallStart, Committed, TurnState, Verdict
from tests.race_world import Altered, Race, naive, variants
from tests.store_world import LEASE_S, done, job

UNLOCKED = naive("intake/accept", (" FOR NO KEY UPDATE", ""))
"""A verdict taken from the row as it was when the statement began."""


# --- against a release


@variants(
    naive(
        "ownership/release",
        (
            "AND mail_seq = %(mail)s",
            "AND NOT EXISTS (SELECT FROM mailbox WHERE session_id = %(session_id)s AND ended IS NULL)",
        ),
        ("AND (%(due_at)s < 'infinity'::timestamptz OR (turn_id IS NULL AND waiting = 0 AND controls = 0))", ""),
    )
)
async def test_a_release_does_not_strand_what_is_being_accepted(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.idle()
    said, released = await race.overlap(
        lambda held: held.store.accept(job("two")),
        race.store(statement).release(owner.fence, owner.seen, Release(NEVER)),
    )
    assert said.verdict is Verdict.ACCEPTED
    assert released is lost
    assert await race.stranded() is lost


@variants(
    naive(
        "intake/accept",
        (
            "due_at     = least(s.due_at, p.due)",
            "due_at     = CASE WHEN (SELECT lease_id IS NULL FROM sessions WHERE id = p.session_id) "
            "THEN least(s.due_at, p.due) ELSE s.due_at END",
        ),
    )
)
async def test_what_waits_for_a_release_makes_the_session_due(race: Race, statement: Altered, lost: bool) -> None:
    """The naive one leaves it to the owner it saw."""
    owner = await race.idle()
    released, said = await race.overlap(
        lambda held: held.store.release(owner.fence, owner.seen, Release(NEVER)),
        race.store(statement).accept(job("two")),
    )
    assert released
    assert said.verdict is Verdict.ACCEPTED
    assert await race.stranded() is lost


# --- against a start


@variants(
    naive(
        "turns/start",
        (
            "waiting    = waiting - ",
            "waiting    = (SELECT count(*) FROM mailbox WHERE session_id = %(session_id)s AND ended IS NULL) - ",
        ),
    )
)
async def test_a_start_counts_what_is_being_accepted(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting()
    said, started = await race.overlap(
        lambda held: held.store.accept(job("two")),
        race.store(statement).start(owner.fence, owner.seen, owner.opening()),
    )
    assert said.verdict is Verdict.ACCEPTED
    assert started == Begun(1)
    assert await race.waiting_is_counted() is not lost


STALE_MERGE = (
    "AND (NOT %(merging)s OR mail_seq = %(mail)s)",
    "AND (NOT %(merging)s OR NOT EXISTS "
    "(SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(mail)s))",
)


async def left_behind(race: Race, position: int | None) -> bool:
    """It was merged into a turn that has begun, or ended, without it: nobody will ever take it."""
    session = await race.world.session()
    (row,) = [row for row in await race.world.store.mail(session.id) if row.position == position]
    turn = await race.world.store.turn(row.turn_id or "")
    assert turn is not None
    return row.ended is None and turn.state is not TurnState.QUEUED


@variants(naive("turns/start", STALE_MERGE))
async def test_a_turn_does_not_start_without_what_is_being_merged_into_it(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting(mode="collect")
    said, started = await race.overlap(
        lambda held: held.store.accept(job("two", mode="collect")),
        race.store(statement).start(owner.fence, owner.seen, owner.opening()),
    )
    assert said.verdict is Verdict.MERGED
    assert (started is not None) is lost
    assert await left_behind(race, said.position) is lost


@variants(naive("endings/fail_queued", STALE_MERGE))
async def test_a_turn_is_not_given_up_without_what_is_being_merged_into_it(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting(mode="collect")
    opening = owner.opening()
    error = {"type": "worker_lost", "message": "its workers died"}
    address = (opening.agent, opening.channel, opening.recipient, opening.origin)
    lost_turn = FailQueued(opening.turn_id, opening.positions, *address, error, merging=True)
    said, failed = await race.overlap(
        lambda held: held.store.accept(job("two", mode="collect")),
        race.store(statement).fail_queued(owner.fence, owner.seen, lost_turn),
    )
    assert said.verdict is Verdict.MERGED
    assert (failed is not None) is lost
    assert await left_behind(race, said.position) is lost


@variants(naive("endings/settle_mail", STALE_MERGE))
async def test_a_turn_is_not_withdrawn_without_what_is_being_merged_into_it(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting(mode="collect")
    withdrawn = SettleMail((1,), "withdrawn", owner.opening().turn_id, TurnState.CANCELLED, merging=True)
    said, settled = await race.overlap(
        lambda held: held.store.accept(job("two", mode="collect")),
        race.store(statement).settle_mail(owner.fence, owner.seen, withdrawn),
    )
    assert said.verdict is Verdict.MERGED
    assert settled is lost
    assert await left_behind(race, said.position) is lost


@variants(UNLOCKED)
async def test_nothing_merges_into_a_turn_that_is_starting(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting(mode="collect")
    started, said = await race.overlap(
        lambda held: held.store.start(owner.fence, owner.seen, owner.opening()),
        race.store(statement).accept(job("two", mode="collect")),
    )
    assert started == Begun(1)
    assert (said.verdict is Verdict.MERGED) is lost
    assert await left_behind(race, said.position) is lost


@variants(UNLOCKED)
async def test_an_interrupt_that_waits_for_a_start_cuts_that_turn(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting()
    started, said = await race.overlap(
        lambda held: held.store.start(owner.fence, owner.seen, owner.opening()),
        race.store(statement).accept(job("stop", mode="interrupt")),
    )
    assert started == Begun(1)
    assert (said.verdict is not Verdict.INTERRUPTING) is lost


# --- against a commit


@variants(
    naive("endings/commit", ("before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0", "before.lets_go")),
)
async def test_a_commit_keeps_its_lease_for_what_is_being_accepted(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.running()
    said, committed = await race.overlap(
        lambda held: held.store.accept(job("two")),
        race.store(statement).commit(owner.fence, owner.seen, owner.ending(release_due=NEVER)),
    )
    assert said.verdict is Verdict.ACCEPTED
    assert committed == Committed(released=lost)
    assert await race.stranded() is lost


@variants(
    naive(
        "endings/commit_with_batch",
        ("before.lets_go AND s.mail_seq = %(mail)s AND s.waiting = 0", "before.lets_go"),
    )
)
async def test_a_commit_of_a_halted_batch_keeps_its_lease_for_what_is_being_accepted(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.call_started()
    ending = owner.ending(release_due=NEVER, results=(done(0, "a", halts=True),), model_call=None)
    said, committed = await race.overlap(
        lambda held: held.store.accept(job("two")),
        race.store(statement).commit(owner.fence, owner.seen, ending),
    )
    assert said.verdict is Verdict.ACCEPTED
    assert committed == Committed(released=lost)
    assert await race.stranded() is lost


@variants(UNLOCKED)
async def test_a_steer_that_waits_for_a_commit_is_no_part_of_that_turn(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.running()
    committed, said = await race.overlap(
        lambda held: held.store.commit(owner.fence, owner.seen, owner.ending(release_due=NEVER)),
        race.store(statement).accept(job("also", mode="steer")),
    )
    assert committed == Committed(released=True)
    assert (said.verdict is Verdict.STEERED) is lost
    assert (said.turn_id == owner.turn_id) is lost
    assert await race.stranded() is False


CUT_AS_SEEN = (
    "NOT EXISTS (SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(urgent)s AND cuts IS NOT NULL)"
)
"""Asks the mailbox, which this statement sees as it was when it began."""


@variants(naive("endings/commit", ("s.urgent_seq <= %(urgent)s", CUT_AS_SEEN)))
async def test_an_answer_is_not_given_behind_an_interrupt(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.running()
    said, committed = await race.overlap(
        lambda held: held.store.accept(job("stop", mode="interrupt")),
        race.store(statement).commit(owner.fence, owner.seen, owner.ending()),
    )
    assert said.verdict is Verdict.INTERRUPTING
    assert (committed is not None) is lost
    assert len(await race.world.deliveries()) == int(lost)


@variants(naive("endings/commit", ("s.urgent_seq <= %(urgent)s", CUT_AS_SEEN)))
async def test_an_answer_is_not_given_behind_a_cancel(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.running()
    cancelled, committed = await race.overlap(
        lambda held: held.store.cancel(owner.turn_id, request_id="r"),
        race.store(statement).commit(owner.fence, owner.seen, owner.ending()),
    )
    assert cancelled is not None
    assert cancelled.verdict is Verdict.CONTROL
    assert (committed is not None) is lost


# --- against a call, a request, a boundary


@variants(naive("turns/start_call", ("urgent_seq <= %(urgent)s", CUT_AS_SEEN)))
async def test_a_call_does_not_start_behind_an_interrupt(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.running()
    await owner.append("a")
    said, started = await race.overlap(
        lambda held: held.store.accept(job("stop", mode="interrupt")),
        race.store(statement).start_call(owner.fence, owner.seen, owner.turn_id, 1, 0),
    )
    assert said.verdict is Verdict.INTERRUPTING
    assert started == CallStart(held=lost, moved=lost)


async def test_a_call_that_is_starting_is_not_undone_by_an_interrupt_behind_it(race: Race) -> None:
    owner = await race.running()
    await owner.append("a", "b")
    started, said = await race.overlap(
        lambda held: held.store.start_call(owner.fence, owner.seen, owner.turn_id, 1, 0),
        race.store().accept(job("stop", mode="interrupt")),
    )
    assert started == CallStart(held=True, moved=True)
    assert said.verdict is Verdict.INTERRUPTING
    assert await owner.start_call(1) == CallStart(held=False, moved=False)


@variants(
    naive(
        "turns/cross_boundary",
        (
            "(NOT %(nothing_unseen)s OR mail_seq = %(mail)s)",
            "(NOT %(nothing_unseen)s OR NOT EXISTS "
            "(SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(mail)s))",
        ),
    )
)
async def test_no_steer_slips_past_the_boundary_it_could_have_joined(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.call_done()
    said, crossed = await race.overlap(
        lambda held: held.store.accept(job("also", mode="steer")),
        race.store(statement).cross_boundary(
            owner.fence, owner.seen, owner.boundary(done(0, "a"), nothing_unseen=True)
        ),
    )
    assert said.verdict is Verdict.STEERED
    assert (crossed is not None) is lost


@variants(
    naive(
        "turns/cross_boundary",
        (
            "waiting    = waiting - cardinality(%(absorbed)s::bigint[]) - cardinality(%(refused)s::bigint[])",
            "waiting    = 0",
        ),
    )
)
async def test_a_boundary_takes_what_it_names_and_no_more(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.call_done()
    await race.world.say("also", mode="steer")
    await owner.look()
    said, crossed = await race.overlap(
        lambda held: held.store.accept(job("and this", mode="steer")),
        race.store(statement).cross_boundary(
            owner.fence, owner.seen, owner.boundary(done(0, "a"), absorbed=owner.absorbing(2))
        ),
    )
    assert said.verdict is Verdict.STEERED
    assert crossed == 4
    assert await race.waiting_is_counted() is not lost


@variants(naive("turns/cross_boundary", ("urgent_seq <= %(urgent)s", CUT_AS_SEEN)))
async def test_the_model_is_not_asked_behind_an_interrupt(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.call_done()
    said, crossed = await race.overlap(
        lambda held: held.store.accept(job("stop", mode="interrupt")),
        race.store(statement).cross_boundary(owner.fence, owner.seen, owner.boundary(done(0, "a"))),
    )
    assert said.verdict is Verdict.INTERRUPTING
    assert (crossed is not None) is lost


@variants(UNLOCKED)
async def test_a_steer_that_waits_for_a_boundary_that_closes_the_turn_is_no_part_of_it(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.call_done()
    crossed, said = await race.overlap(
        lambda held: held.store.cross_boundary(
            owner.fence, owner.seen, owner.boundary(done(0, "a"), takes_steers=False)
        ),
        race.store(statement).accept(job("also", mode="steer")),
    )
    assert crossed == 3
    assert (said.verdict is Verdict.STEERED) is lost


# --- against a claim, and another accept


@pytest.mark.parametrize("lost", [False, True], ids=["two statements", "one statement"])
async def test_a_new_owner_loads_what_its_claim_waited_for(race: Race, lost: bool) -> None:
    """Claimed and loaded in one statement, the counters are those of now and the mailbox is that of before."""
    said = await race.world.say("one")
    claim_and_load = naive(
        "ownership/claim",
        ("RETURNING epoch, deaths, turn_id", "RETURNING id, mail_seq, turn_id"),
        (
            "SELECT epoch, deaths FROM taken",
            "SELECT mail_seq, (SELECT max(position) FROM mailbox AS m WHERE m.session_id = taken.id) FROM taken",
        ),
    )

    async def own() -> tuple[int, int]:
        if lost:
            claimed = await race.store(claim_and_load).claim(said.session_id, LEASE_S)
            assert claimed is not None
            return claimed.epoch, claimed.deaths  # which are what the altered statement selects
        owner = await race.world.own(said.session_id)
        return owner.seen.mail, owner.loaded.mail[-1].position

    second, (seen, loaded) = await race.overlap(lambda held: held.store.accept(job("two")), own())
    assert second.verdict is Verdict.ACCEPTED
    assert seen == 2
    assert (loaded < seen) is lost


@variants(UNLOCKED)
async def test_two_at_once_get_two_places(race: Race, statement: Altered, lost: bool) -> None:
    await race.world.say("one")
    asked = race.store(statement).accept(job("three"))
    if lost:
        with pytest.raises(Exception, match="guard"):  # the place is taken: it is the key that stops it
            await race.overlap(lambda held: held.store.accept(job("two")), asked)
    else:
        second, third = await race.overlap(lambda held: held.store.accept(job("two")), asked)
        assert (second.position, third.position) == (2, 3)
        assert await race.waiting_is_counted()


async def test_two_first_contacts_at_once_make_one_session(race: Race) -> None:
    first, second = await race.overlap(lambda held: held.store.accept(job("one")), race.store().accept(job("two")))
    assert (first.position, second.position) == (1, 2)
    assert first.session_id == second.session_id
    assert await race.waiting_is_counted()


async def test_the_same_job_twice_at_once_is_accepted_once(race: Race) -> None:
    await race.world.say("one")
    asked = job("two")
    first, second = await race.overlap(
        lambda held: held.store.accept(asked), race.store().accept(asked.tried_anew("another turn"))
    )
    assert (first.verdict, second.verdict) == (Verdict.ACCEPTED, Verdict.DUPLICATE)
    assert second.turn_id == first.turn_id
    assert (await race.world.session()).mail_seq == 2
