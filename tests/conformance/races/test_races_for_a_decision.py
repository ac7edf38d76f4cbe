"""A person decides while something else happens to the call, its turn or its session. A decision counts once, in time,
for a turn that goes on; and no owner lets go over one.
"""

from __future__ import annotations

import asyncio

import pytest

from insika.storage.postgres.store import PostgresStore
from insika.storage.rows import ApprovalDecision, ApprovalRow, CallStart, CallState, Decided, TurnState, Verdict
from tests.race_world import Altered, Race, naive, variants
from tests.store_world import ARGUMENTS, LEASE_S, Owner, done, job

APPROVED, REJECTED, EXPIRED, VOID = ApprovalDecision
UNLOCKED = naive(
    "intake/decide",
    ("%(approval_id)s) FOR NO KEY UPDATE", "%(approval_id)s)"),
    (" FOR NO KEY UPDATE OF a", ""),
)
"""Decided by what the rows were when the statement began."""

BEGAN = "began AS MATERIALIZED (SELECT insika_now() AS at)"
"""The time before anything was waited for."""


async def asked(race: Race) -> Owner:
    """An owner who has asked about the first of two calls, and has nothing else to run."""
    owner = await race.running()
    await owner.append("a", "b")
    await owner.ask("a")
    await owner.start_call(1)
    await owner.finish_call(done(1, "b"))
    return await owner.look()


async def row(race: Race, approval_id: str) -> ApprovalRow:
    summary = await race.world.store.approval(approval_id)
    assert summary is not None
    return summary.approval


# --- against the owner who lets go


@variants(
    naive(
        "turns/suspend",
        (
            "AND mail_seq = %(mail)s",
            "AND NOT EXISTS (SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(mail)s)",
        ),
        (" FOR NO KEY UPDATE OF a", ""),
    )
)
async def test_nobody_goes_to_sleep_over_a_decision(race: Race, statement: Altered, lost: bool) -> None:
    """The naive one waits for the approval's time to run out, with the answer in its hands."""
    owner = await asked(race)
    decided, suspended = await race.overlap(
        lambda held: held.store.decide(owner.approval("a").id, APPROVED, by="ops"),
        race.store(statement).suspend(owner.fence, owner.seen, owner.turn_id),
    )
    assert decided is not None
    assert decided.won
    assert suspended is lost
    assert (await sleeps_on(race)) is lost


async def sleeps_on(race: Race) -> bool:
    """Nobody owns the session, it is not due, and something was decided."""
    return bool(
        await race.world.peek(
            "SELECT 1 AS one FROM sessions AS s WHERE lease_id IS NULL AND due_at > insika_now() AND EXISTS "
            "(SELECT FROM approvals AS a WHERE a.turn_id = s.turn_id AND a.decision IS NOT NULL)"
        )
    )


@variants(
    naive(
        "intake/decide",
        (
            "due_at = '-infinity'",
            "due_at = CASE WHEN (SELECT lease_id IS NULL FROM sessions WHERE id = d.session_id) "
            "THEN '-infinity' ELSE s.due_at END",
        ),
    )
)
async def test_a_decision_that_waits_for_a_suspension_wakes_the_session(
    race: Race, statement: Altered, lost: bool
) -> None:
    """The naive one leaves it to the owner it saw."""
    owner = await asked(race)
    suspended, decided = await race.overlap(
        lambda held: held.store.suspend(owner.fence, owner.seen, owner.turn_id),
        race.store(statement).decide(owner.approval("a").id, APPROVED, by="ops"),
    )
    assert suspended
    assert decided is not None
    assert decided.won
    assert (await sleeps_on(race)) is lost


@variants(naive("turns/suspend", (" FOR NO KEY UPDATE OF c", "")))
async def test_nobody_goes_to_sleep_over_a_call_that_is_being_started(
    race: Race, statement: Altered, lost: bool
) -> None:
    """The same owner, who has not heard whether his call was started."""
    owner = await race.running()
    await owner.append("a", "b")
    await owner.ask("a")
    started, suspended = await race.overlap(
        lambda held: held.store.start_call(owner.fence, owner.seen, owner.turn_id, 1, 1),
        race.store(statement).suspend(owner.fence, owner.seen, owner.turn_id),
    )
    assert started == CallStart(held=True, moved=True)
    assert suspended is lost


# --- against another operator, and time


@variants(UNLOCKED)
async def test_of_two_operators_at_once_the_second_gets_the_first_s_decision(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await asked(race)
    approval_id = owner.approval("a").id
    second = race.store(statement).decide(approval_id, REJECTED, by="eve", reason="too much")
    if lost:
        with pytest.raises(Exception, match="an approval is decided once"):  # it is the table that stops it
            await race.overlap(lambda held: held.store.decide(approval_id, APPROVED, by="ann"), second)
        return
    first, other = await race.overlap(lambda held: held.store.decide(approval_id, APPROVED, by="ann"), second)
    assert first is not None
    assert other is not None
    assert (first.won, other.won) == (True, False)
    assert other.approval == first.approval == await row(race, approval_id)
    assert (other.approval.decision, other.approval.decided_by, other.approval.reason) == (APPROVED, "ann", "")
    assert (await race.world.session()).mail_seq == owner.seen.mail + 1


@variants(
    naive(
        "intake/decide",
        ("SELECT *, insika_now() AS now FROM aimed", "SELECT *, (SELECT at FROM began) AS now FROM aimed"),
        (
            "WITH held AS MATERIALIZED (\n",
            f"WITH {BEGAN}, held AS MATERIALIZED (\n",
        ),
        ("FROM sessions\nWHERE id =", "FROM sessions\nWHERE (SELECT at FROM began) IS NOT NULL AND id ="),
    )
)
async def test_a_decision_that_waited_until_its_time_was_over_is_late(
    race: Race, statement: Altered, lost: bool
) -> None:
    """Compared with the time at which the lock was there, not with that at which it was asked for."""
    owner = await asked(race)
    approval = owner.approval("a")
    left = (approval.expires_at - race.world.clock.now()).total_seconds()
    async with race.holding() as held:
        assert await held.store.confirm(owner.fence)
        deciding = asyncio.ensure_future(race.store(statement).decide(approval.id, APPROVED, by="ops"))
        assert await race.waits(deciding)
        race.world.clock.advance(left)
        await held.let_go()
        decided = await deciding
    assert decided is not None
    assert decided.won is lost
    assert decided.approval.decision is (APPROVED if lost else EXPIRED)
    assert decided.approval == await row(race, approval.id)


async def test_two_that_come_late_at_once_let_it_expire_once(race: Race) -> None:
    owner = await asked(race)
    approval = owner.approval("a")
    race.world.clock.advance((approval.expires_at - race.world.clock.now()).total_seconds())
    first, second = await race.overlap(
        lambda held: held.store.decide(approval.id, APPROVED, by="ann"),
        race.store().decide(approval.id, REJECTED, by="eve"),
    )
    assert first is not None
    assert second is not None
    assert (first.won, second.won) == (False, False)
    assert first.approval == second.approval
    assert (first.approval.decision, first.approval.decided_by) == (EXPIRED, None)
    assert (await race.world.session()).mail_seq == owner.seen.mail + 1


@variants(UNLOCKED)
async def test_a_decision_that_waits_for_the_owner_to_let_it_expire_is_late(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await asked(race)
    approval = owner.approval("a")
    expired = done(0, "a", "nobody answered", state=CallState.NOT_RUN, is_error=True, approval=EXPIRED)
    deciding = race.store(statement).decide(approval.id, APPROVED, by="ops")
    if lost:
        with pytest.raises(Exception, match="an approval is decided once"):
            await race.overlap(lambda held: held.store.finish_call(owner.fence, owner.turn_id, 1, expired), deciding)
        return
    finished, decided = await race.overlap(
        lambda held: held.store.finish_call(owner.fence, owner.turn_id, 1, expired), deciding
    )
    assert finished == CallStart(held=True, moved=True)
    assert decided is not None
    assert (decided.won, decided.approval.decision) == (False, EXPIRED)


# --- against the end of the turn


@variants(UNLOCKED)
@pytest.mark.parametrize("cut_by", ["interrupt", "cancel"])
async def test_a_decision_that_waits_for_the_end_of_its_turn_is_void(
    race: Race, cut_by: str, statement: Altered, lost: bool
) -> None:
    owner = await asked(race)
    approval_id, turn_id = owner.approval("a").id, owner.turn_id
    control: tuple[int, ...] = ()
    if cut_by == "cancel":
        await race.world.store.cancel(turn_id, request_id="r")
        control = (2,)
    else:
        assert (await race.world.say("stop", mode="interrupt")).verdict is Verdict.INTERRUPTING
    await owner.look()
    ending = owner.failing(done(0, "a", state=CallState.NOT_RUN), state=TurnState.CANCELLED, control=control)
    deciding = race.store(statement).decide(approval_id, APPROVED, by="ops")
    if lost:
        with pytest.raises(Exception, match="an approval is decided once"):
            await race.overlap(lambda held: held.store.end(owner.fence, ending), deciding)
        return
    ended, decided = await race.overlap(lambda held: held.store.end(owner.fence, ending), deciding)
    assert ended
    assert decided is not None
    assert (decided.won, decided.approval.decision) == (False, VOID)
    assert (await race.world.session()).mail_seq == 2


@variants(
    naive(
        "endings/end",
        (
            "(a.decision IS NULL OR (a.decision = 'approved' AND unused.becomes ? a.call_id))",
            "a.decision IS NULL",
        ),
    )
)
async def test_the_end_of_a_turn_voids_an_approval_that_it_waited_for(
    race: Race, statement: Altered, lost: bool
) -> None:
    """With the naive one, an approval that was never used would go on looking as if it let something run."""
    owner = await asked(race)
    approval_id = owner.approval("a").id
    ending = owner.failing(done(0, "a", state=CallState.NOT_RUN), state=TurnState.CANCELLED)
    decided, ended = await race.overlap(
        lambda held: held.store.decide(approval_id, APPROVED, by="ops"), race.store(statement).end(owner.fence, ending)
    )
    assert ended
    assert decided is not None
    assert decided.won
    assert (await row(race, approval_id)).decision is (APPROVED if lost else VOID)


@pytest.mark.parametrize("decision", [APPROVED, REJECTED])
async def test_a_boundary_gives_up_an_approval_that_was_decided_meanwhile_but_no_rejection(
    race: Race, decision: ApprovalDecision
) -> None:
    owner = await asked(race)
    approval_id = owner.approval("a").id
    denied = done(0, "a", "not any more", state=CallState.NOT_RUN, approval=VOID)
    decided, crossed = await race.overlap(
        lambda held: held.store.decide(approval_id, decision, by="ops"),
        race.store().cross_boundary(owner.fence, owner.seen, owner.boundary(denied, done(1, "b"))),
    )
    assert decided is not None
    assert crossed is not None
    assert (await row(race, approval_id)).decision is (VOID if decision is APPROVED else REJECTED)


# --- against the start of the call


async def start(store: PostgresStore, owner: Owner, arguments_hash: str | None = ARGUMENTS) -> CallStart:
    return await store.start_call(owner.fence, owner.seen, owner.turn_id, 1, 0, arguments_hash=arguments_hash)


async def test_a_call_does_not_start_on_a_decision_that_its_owner_has_not_seen(race: Race) -> None:
    owner = await asked(race)
    decided, started = await race.overlap(
        lambda held: held.store.decide(owner.approval("a").id, APPROVED, by="ops"), start(race.store(), owner)
    )
    assert decided is not None
    assert decided.won
    assert started == CallStart(held=True, moved=False)
    assert await start(race.store(), await owner.look()) == CallStart(held=True, moved=True)


async def test_a_decision_about_a_call_that_is_starting_comes_too_late(race: Race) -> None:
    owner = await asked(race)
    approval_id = owner.approval("a").id
    await race.world.store.decide(approval_id, APPROVED, by="ann")
    await owner.look()
    started, decided = await race.overlap(
        lambda held: held.store.start_call(owner.fence, owner.seen, owner.turn_id, 1, 0, arguments_hash=ARGUMENTS),
        race.store().decide(approval_id, REJECTED, by="eve"),
    )
    assert started == CallStart(held=True, moved=True)
    assert isinstance(decided, Decided)
    assert (decided.won, decided.approval.decision, decided.approval.decided_by) == (False, APPROVED, "ann")


@variants(
    naive(
        "turns/start_call",
        ("WITH fence AS (", f"WITH {BEGAN}, fence AS ("),
        ("WHERE id = %(session_id)s", "WHERE (SELECT at FROM began) IS NOT NULL AND id = %(session_id)s"),
        ("a.expires_at > insika_now()", "a.expires_at > (SELECT at FROM began)"),
    )
)
async def test_a_call_that_waited_until_its_approval_ran_out_does_not_start(
    race: Race, statement: Altered, lost: bool
) -> None:
    """Compared with the time at which the fence held."""
    owner = await asked(race)
    approval = owner.approval("a")
    await race.world.store.decide(approval.id, APPROVED, by="ops")
    await owner.look()
    async with race.holding() as held:
        assert await held.store.confirm(owner.fence)
        starting = asyncio.ensure_future(start(race.store(statement), owner))
        assert await race.waits(starting)
        race.world.clock.advance((approval.expires_at - race.world.clock.now()).total_seconds())
        await held.let_go()
        started = await starting
    assert started.held
    assert started.moved is lost


@variants(
    naive(
        "turns/start_call",
        (
            "AND c.asked = (%(arguments_hash)s::text IS NOT NULL)",
            "AND (%(arguments_hash)s::text IS NOT NULL) = EXISTS "
            "(SELECT FROM approvals AS a WHERE a.turn_id = c.turn_id AND a.call_id = c.call_id)",
        ),
        ("AND (NOT c.asked OR EXISTS (", "AND (%(arguments_hash)s::text IS NULL OR EXISTS ("),
    )
)
async def test_a_call_about_which_a_person_is_being_asked_does_not_start_unasked(
    race: Race, statement: Altered, lost: bool
) -> None:
    """The owner has not heard whether his question was written, and by now his agent need not ask."""
    owner = await race.running()
    await owner.append("a")
    await owner.look()
    question = owner.question("a")
    asking, started = await race.overlap(
        lambda held: held.store.ask_approvals(owner.fence, owner.seen, owner.turn_id, [question]),
        start(race.store(statement), owner, None),
    )
    assert asking
    assert started == CallStart(held=True, moved=lost)


# --- the turn that waits


async def test_a_turn_that_is_being_resumed_is_one_attempt_further_and_no_more(race: Race) -> None:
    owner = await asked(race)
    assert await race.world.store.suspend(owner.fence, owner.seen, owner.turn_id)
    await race.world.store.decide(owner.approval("a").id, APPROVED, by="ops")
    heir = await race.world.own(owner.fence.session_id)
    first, second = await race.overlap(
        lambda held: held.store.resume_turn(heir.fence, heir.seen, heir.turn_id),
        race.store().resume_turn(heir.fence, heir.seen, heir.turn_id),
    )
    assert (first, second) == (True, True)
    turn = (await heir.look()).loaded.turn
    assert turn is not None
    assert (turn.state, turn.attempt) == (TurnState.RUNNING, 2)


@variants(naive("ownership/claim", ("attempt + (turns.state <> 'waiting')::int", "attempt + 1")))
async def test_whoever_claims_behind_a_suspension_begins_no_attempt(race: Race, statement: Altered, lost: bool) -> None:
    """What it sees of the turn is what was there before it waited."""
    owner = await asked(race)
    race.world.clock.advance(LEASE_S + 1)
    await race.world.say("hello?")
    await owner.look()

    async def suspended_and_due(held: object) -> None:
        store = held.store  # type: ignore[attr-defined]
        assert await store.suspend(owner.fence, owner.seen, owner.turn_id)
        assert await store.accept(job("and?"))

    _, claim = await race.overlap(suspended_and_due, race.store(statement).claim(owner.fence.session_id, LEASE_S))
    assert claim is not None
    turn = await race.world.store.turn(owner.turn_id)
    assert turn is not None
    assert (turn.state, turn.attempt) == (TurnState.WAITING, 2 if lost else 1)


@variants(
    naive(
        "turns/suspend",
        (
            "AND mail_seq = %(mail)s",
            "AND NOT EXISTS (SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(mail)s)",
        ),
    )
)
@pytest.mark.parametrize("mode", ["followup", "steer"])
async def test_nobody_goes_to_sleep_over_what_is_being_accepted(
    race: Race, mode: str, statement: Altered, lost: bool
) -> None:
    owner = await asked(race)
    said, suspended = await race.overlap(
        lambda held: held.store.accept(job("two", mode=mode)),
        race.store(statement).suspend(owner.fence, owner.seen, owner.turn_id),
    )
    assert said.verdict is (Verdict.STEERED if mode == "steer" else Verdict.ACCEPTED)
    assert suspended is lost


@variants(naive("turns/suspend", ("AND urgent_seq <= %(urgent)s", ""), ("AND mail_seq = %(mail)s", "")))
async def test_nobody_goes_to_sleep_over_an_interrupt(race: Race, statement: Altered, lost: bool) -> None:
    owner = await asked(race)
    said, suspended = await race.overlap(
        lambda held: held.store.accept(job("stop", mode="interrupt")),
        race.store(statement).suspend(owner.fence, owner.seen, owner.turn_id),
    )
    assert said.verdict is Verdict.INTERRUPTING
    assert suspended is lost


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
async def test_what_waits_for_a_suspension_makes_the_session_due(race: Race, statement: Altered, lost: bool) -> None:
    owner = await asked(race)
    suspended, said = await race.overlap(
        lambda held: held.store.suspend(owner.fence, owner.seen, owner.turn_id),
        race.store(statement).accept(job("stop", mode="interrupt")),
    )
    assert suspended
    assert said.verdict is Verdict.INTERRUPTING
    claim = await race.world.store.claim(owner.fence.session_id, LEASE_S)
    assert (claim is None) is lost
