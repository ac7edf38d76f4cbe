"""A message is taken back, or a session held, while its owner acts. Whoever has the row first is first."""

from __future__ import annotations

import pytest

from insika.clock import DUE_NOW, NEVER
from insika.storage.operations import Release, SettleMail
from insika.storage.rows import ApprovalDecision, Begun, Ended, TurnState
from tests.race_world import Altered, Race, naive, variants
from tests.store_world import LEASE_S, Owner, done

AS_IT_WAS = naive("intake/withdraw", (" FOR NO KEY UPDATE OF m", ""))
"""Whether the message has ended, asked of the mailbox as it was before the lock."""

UNSEEN_MAIL = (
    "mail_seq = %(mail)s",
    "NOT EXISTS (SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(mail)s)",
)
"""Asks the mailbox, which this statement sees as it was when it began, and in which a hold has no row."""


async def steered(race: Race) -> Owner:
    """At a boundary, with a message that waits to join the turn."""
    owner = await race.call_done()
    await race.world.say("also", mode="steer", job_id="late")
    return await owner.look()


# --- a message taken back, against what takes it


@variants(AS_IT_WAS)
async def test_a_withdrawal_that_waits_for_a_start_comes_too_late(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting(job_id="j")
    opening = owner.opening()
    started, withdrawal = await race.overlap(
        lambda held: held.store.start(owner.fence, owner.seen, opening),
        race.store(statement).withdraw("s", "j", request_id="r"),
    )
    assert started == Begun(1)
    assert withdrawal is not None
    assert (withdrawal.control is not None) is lost
    assert (withdrawal.ended, withdrawal.consumed_by) == ((None, None) if lost else (Ended.TURN, opening.turn_id))
    assert (await race.world.session()).mail_seq == (2 if lost else 1)


@pytest.mark.parametrize("mode", ["followup", "collect"])
async def test_a_start_behind_a_withdrawal_takes_the_message_or_looks_again(race: Race, mode: str) -> None:
    """It was not seen, and cuts nothing; where others may merge, a start looks at everything first."""
    owner = await race.waiting(job_id="j", mode=mode)
    withdrawal, started = await race.overlap(
        lambda held: held.store.withdraw("s", "j", request_id="r"),
        race.store().start(owner.fence, owner.seen, owner.opening()),
    )
    assert withdrawal is not None
    assert withdrawal.control == 2
    assert started == (Begun(1) if mode == "followup" else None)
    await owner.look()
    in_time = started is None
    settled = await race.world.store.settle_mail(
        owner.fence,
        owner.seen,
        SettleMail(
            (1,) if in_time else (),
            "withdrawn",
            owner.loaded.mail[0].turn_id if in_time else None,
            TurnState.CANCELLED,
            control=(2,),
            merging=in_time,
        ),
    )
    assert settled
    mail = await race.world.store.mail(owner.fence.session_id)
    assert [row.ended for row in mail] == [Ended.WITHDRAWN if in_time else Ended.TURN, Ended.CONTROL]
    assert await race.waiting_is_counted()


@variants(AS_IT_WAS)
async def test_a_withdrawal_that_waits_for_a_boundary_comes_too_late(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await steered(race)
    crossed, withdrawal = await race.overlap(
        lambda held: held.store.cross_boundary(
            owner.fence, owner.seen, owner.boundary(done(0, "a"), absorbed=owner.absorbing(2))
        ),
        race.store(statement).withdraw("s", "late", request_id="r"),
    )
    assert crossed == 4
    assert withdrawal is not None
    assert (withdrawal.control is not None) is lost
    assert withdrawal.ended is (None if lost else Ended.TURN)


@variants(naive("turns/cross_boundary", UNSEEN_MAIL))
async def test_a_boundary_does_not_take_what_is_being_taken_back(race: Race, statement: Altered, lost: bool) -> None:
    owner = await steered(race)
    withdrawal, crossed = await race.overlap(
        lambda held: held.store.withdraw("s", "late", request_id="r"),
        race.store(statement).cross_boundary(
            owner.fence,
            owner.seen,
            owner.boundary(done(0, "a"), absorbed=owner.absorbing(2), nothing_unseen=True),
        ),
    )
    assert withdrawal is not None
    assert withdrawal.control == 3
    assert (crossed is not None) is lost


@variants(
    naive("intake/withdraw", ("controls = s.controls + 1,", "controls = s.controls + 1, urgent_seq = p.position,"))
)
async def test_taking_a_message_back_cuts_nothing(race: Race, statement: Altered, lost: bool) -> None:
    """The naive one treats it like a cancel."""
    owner = await race.call_started()
    await race.world.say("two", job_id="late")
    await owner.look()
    finished, withdrawal = await race.overlap(
        lambda held: held.store.finish_call(owner.fence, owner.turn_id, 1, done(0, "a")),
        race.store(statement).withdraw("s", "late", request_id="r"),
    )
    assert finished.moved
    assert withdrawal is not None
    assert (await owner.cross(done(0, "a")) is None) is lost


@variants(AS_IT_WAS)
async def test_what_is_being_settled_is_not_taken_back_again(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting(job_id="j")
    refused = SettleMail((1,), "refused", owner.opening().turn_id, TurnState.REFUSED)
    settled, withdrawal = await race.overlap(
        lambda held: held.store.settle_mail(owner.fence, owner.seen, refused),
        race.store(statement).withdraw("s", "j", request_id="r"),
    )
    assert settled
    assert withdrawal is not None
    assert withdrawal.ended is (None if lost else Ended.REFUSED)


async def test_one_withdrawal_twice_at_once_is_one_withdrawal(race: Race) -> None:
    await race.waiting(job_id="j")
    first, again = await race.overlap(
        lambda held: held.store.withdraw("s", "j", request_id="r"), race.store().withdraw("s", "j", request_id="r")
    )
    assert first is not None
    assert first.control == 2
    assert again == first
    assert (await race.world.session()).mail_seq == 2


# --- a message taken back, against an owner who lets go


@variants(
    naive(
        "ownership/release",
        UNSEEN_MAIL,
        ("AND (%(due_at)s < 'infinity'::timestamptz OR (turn_id IS NULL AND waiting = 0 AND controls = 0))", ""),
    )
)
async def test_a_release_does_not_strand_a_withdrawal(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting(job_id="j")
    withdrawal, released = await race.overlap(
        lambda held: held.store.withdraw("s", "j", request_id="r"),
        race.store(statement).release(owner.fence, owner.seen, Release(NEVER)),
    )
    assert withdrawal is not None
    assert released is lost
    assert await race.stranded() is lost


@variants(
    naive(
        "intake/withdraw",
        (
            "due_at = '-infinity'",
            "due_at = CASE WHEN (SELECT lease_id IS NULL FROM sessions WHERE id = p.session_id) "
            "THEN '-infinity' ELSE s.due_at END",
        ),
    )
)
async def test_a_withdrawal_that_waits_for_a_release_makes_the_session_due(
    race: Race, statement: Altered, lost: bool
) -> None:
    """The naive one leaves it to the owner it saw."""
    owner = await race.waiting(job_id="j")
    later = race.world.clock.now().replace(year=2100)
    released, withdrawal = await race.overlap(
        lambda held: held.store.release(owner.fence, owner.seen, Release(later)),
        race.store(statement).withdraw("s", "j", request_id="r"),
    )
    assert released
    assert withdrawal is not None
    assert withdrawal.control == 2
    assert ((await race.world.session()).due_at == later) is lost


# --- a hold


@variants(naive("turns/start", ("AND NOT paused", "AND NOT (SELECT paused FROM sessions WHERE id = %(session_id)s)")))
async def test_no_turn_starts_behind_a_hold(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting()
    held_, started = await race.overlap(
        lambda held: held.store.set_paused("s", True),
        race.store(statement).start(owner.fence, owner.seen, owner.opening()),
    )
    assert held_
    assert (started is not None) is lost


@variants(
    naive(
        "endings/finish_at_once",
        ("AND NOT paused", "AND NOT (SELECT paused FROM sessions WHERE id = %(session_id)s)"),
    )
)
async def test_no_turn_finishes_at_once_behind_a_hold(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting()
    held_, finished = await race.overlap(
        lambda held: held.store.set_paused("s", True),
        race.store(statement).finish_at_once(owner.fence, owner.seen, owner.finishing()),
    )
    assert held_
    assert (finished is not None) is lost


@variants(
    naive(
        "intake/set_paused",
        (
            "mail_seq = mail_seq + (paused <> %(paused)s)::int",
            "mail_seq = mail_seq + (paused <> %(paused)s AND turn_id IS NULL)::int",
        ),
    )
)
async def test_a_hold_that_waits_for_a_start_is_seen_at_the_first_boundary(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting()
    started, held_ = await race.overlap(
        lambda held: held.store.start(owner.fence, owner.seen, owner.opening()),
        race.store(statement).set_paused("s", True),
    )
    assert (started, held_) == (Begun(1), True)
    seen = owner.seen
    await owner.look()
    await owner.append("a")
    await owner.start_call()
    await owner.finish_call(done(0, "a"))
    crossed = await race.world.store.cross_boundary(
        owner.fence, seen, owner.boundary(done(0, "a"), nothing_unseen=True)
    )
    assert (crossed is not None) is lost


@variants(naive("turns/cross_boundary", UNSEEN_MAIL))
async def test_no_boundary_is_crossed_behind_a_hold(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.call_done()
    held_, crossed = await race.overlap(
        lambda held: held.store.set_paused("s", True),
        race.store(statement).cross_boundary(
            owner.fence, owner.seen, owner.boundary(done(0, "a"), nothing_unseen=True)
        ),
    )
    assert held_
    assert (crossed is not None) is lost


@variants(naive("ownership/release", UNSEEN_MAIL))
async def test_a_release_does_not_pass_the_end_of_a_hold(race: Race, statement: Altered, lost: bool) -> None:
    """The owner came for a request, and lets the session go to where the hold would have left it."""
    said = await race.world.say("one", job_id="j")
    await race.world.store.set_paused("s", True)
    await race.world.store.withdraw("s", "j", request_id="r")
    owner = await race.world.own(said.session_id)
    later = race.world.clock.now().replace(year=2100)
    resumed, released = await race.overlap(
        lambda held: held.store.set_paused("s", False),
        race.store(statement).release(owner.fence, owner.seen, Release(later)),
    )
    assert resumed
    assert released is lost
    assert ((await race.world.session()).due_at == later) is lost


@variants(
    naive(
        "intake/set_paused",
        (
            "CASE WHEN paused AND NOT %(paused)s",
            "CASE WHEN (SELECT lease_id IS NULL FROM sessions WHERE tenant = %(tenant)s AND name = %(name)s) "
            "AND paused AND NOT %(paused)s",
        ),
    )
)
async def test_the_end_of_a_hold_that_waits_for_a_release_makes_the_session_due(
    race: Race, statement: Altered, lost: bool
) -> None:
    """The naive one leaves it to the owner it saw."""
    said = await race.world.say("one", job_id="j")
    await race.world.store.set_paused("s", True)
    await race.world.store.withdraw("s", "j", request_id="r")
    owner = await race.world.own(said.session_id)
    later = race.world.clock.now().replace(year=2100)
    released, resumed = await race.overlap(
        lambda held: held.store.release(owner.fence, owner.seen, Release(later)),
        race.store(statement).set_paused("s", False),
    )
    assert (released, resumed) == (True, True)
    assert ((await race.world.session()).due_at == (later if lost else DUE_NOW)) is True


async def asking(race: Race) -> Owner:
    owner = await race.running()
    await owner.append("a")
    await owner.ask("a")
    return owner


@variants(naive("turns/suspend", UNSEEN_MAIL))
async def test_a_turn_is_not_suspended_behind_a_hold(race: Race, statement: Altered, lost: bool) -> None:
    owner = await asking(race)
    held_, suspended = await race.overlap(
        lambda held: held.store.set_paused("s", True),
        race.store(statement).suspend(owner.fence, owner.seen, owner.turn_id),
    )
    assert held_
    assert suspended is lost


async def test_a_hold_that_waits_for_a_suspension_keeps_the_turn_where_it_is(race: Race) -> None:
    owner = await asking(race)
    suspended, held_ = await race.overlap(
        lambda held: held.store.suspend(owner.fence, owner.seen, owner.turn_id), race.store().set_paused("s", True)
    )
    assert (suspended, held_) == (True, True)
    await race.world.store.decide(owner.approval("a").id, ApprovalDecision.APPROVED, by="ops")
    assert await race.world.store.claim(owner.fence.session_id, LEASE_S) is None
    await race.world.store.set_paused("s", False)
    assert await race.world.store.claim(owner.fence.session_id, LEASE_S) is not None


@variants(
    naive(
        "ownership/claim",
        ("AND (NOT paused OR", "AND (NOT (SELECT paused FROM sessions WHERE id = %(session_id)s) OR"),
    )
)
async def test_nobody_claims_behind_a_hold(race: Race, statement: Altered, lost: bool) -> None:
    said = await race.world.say("one")
    held_, claim = await race.overlap(
        lambda held: held.store.set_paused("s", True), race.store(statement).claim(said.session_id, LEASE_S)
    )
    assert held_
    assert (claim is not None) is lost


async def test_a_session_that_is_held_is_due_for_what_is_asked_of_it(race: Race) -> None:
    """Who claims before the request is there waits for nothing, and finds nothing to do; who comes after it does."""
    said = await race.world.say("one", job_id="j")
    await race.world.store.set_paused("s", True)
    withdrawal, claim = await race.overlap(
        lambda held: held.store.withdraw("s", "j", request_id="r"), race.store().claim(said.session_id, LEASE_S)
    )
    assert withdrawal is not None
    assert claim is None
    assert list(await race.world.store.due_sessions()) == [said.session_id]
    assert await race.world.store.claim(said.session_id, LEASE_S) is not None


@variants(
    naive(
        "intake/set_paused",
        (
            "(paused <> %(paused)s)::int",
            "((SELECT paused FROM sessions WHERE tenant = %(tenant)s AND name = %(name)s) <> %(paused)s)::int",
        ),
    )
)
async def test_two_that_hold_a_session_at_once_hold_it_once(race: Race, statement: Altered, lost: bool) -> None:
    await race.world.say("one")
    first, second = await race.overlap(
        lambda held: held.store.set_paused("s", True), race.store(statement).set_paused("s", True)
    )
    assert (first, second) == (True, True)
    assert (await race.world.session()).mail_seq == (3 if lost else 2)
