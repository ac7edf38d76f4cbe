"""A person's word on a call: asked once, given once, in time, for exactly what was shown; and what it lets run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from insika.clock import DUE_NOW
from insika.storage.rows import ApprovalDecision, ApprovalSummary, CallStart, CallState, Committed, TurnState
from tests.store_world import ARGUMENTS, Owner, World, assert_valid_conversation, done

APPROVED, REJECTED, EXPIRED, VOID = ApprovalDecision
DENIED = replace(done(0, "a", "was denied"), state=CallState.NOT_RUN, is_error=True)
MOVED = CallStart(held=True, moved=True)
STAYED = CallStart(held=True, moved=False)
VALID_S = 600.0


async def calls_announced(world: World, *call_ids: str, session: str = "s") -> Owner:
    owner = await world.own((await world.say(session=session)).session_id)
    await owner.start()
    await owner.append(*call_ids)
    return await owner.look()


async def asked_about(world: World, *call_ids: str, session: str = "s", valid_s: float = VALID_S) -> Owner:
    owner = await calls_announced(world, *call_ids, session=session)
    assert await owner.ask(*call_ids, valid_s=valid_s)
    return owner


async def decide(owner: Owner, call_id: str, decision: ApprovalDecision, reason: str = "") -> bool:
    decided = await owner.store.decide(owner.approval(call_id).id, decision, by="ops", reason=reason)
    assert decided is not None
    await owner.look()
    return decided.won


# --- asking


async def test_a_question_stands_with_what_was_shown_and_until_when(world: World) -> None:
    owner = await calls_announced(world, "a", "b")
    world.clock.advance(3)
    assert await owner.ask("b", valid_s=90.5)
    (row,) = owner.loaded.approvals
    assert (row.turn_id, row.session_id, row.call_id) == (owner.turn_id, owner.fence.session_id, "b")
    assert (row.tool, row.arguments_hash) == ("look_up", ARGUMENTS)
    assert (row.asked_at, row.expires_at) == (world.clock.now(), world.clock.now() + timedelta(seconds=90.5))
    assert (row.decision, row.decided_by, row.reason, row.decided_at) == (None, None, None, None)


async def test_asking_is_no_mail_and_moves_no_due_time(world: World) -> None:
    owner = await calls_announced(world, "a")
    before = await world.session()
    assert await owner.ask("a")
    assert await world.session() == before


@pytest.mark.parametrize("decided", [False, True], ids=["undecided", "decided"])
async def test_a_question_is_asked_once(world: World, decided: bool) -> None:
    owner = await asked_about(world, "a")
    if decided:
        assert await decide(owner, "a", APPROVED)
    before = await world.everything()
    world.clock.advance(5)
    assert await owner.ask("a")
    assert await owner.ask("a", id="another", arguments_hash="something else", valid_s=9.0)
    assert await world.everything() == before


async def test_one_that_was_asked_does_not_keep_another_from_being_asked(world: World) -> None:
    owner = await calls_announced(world, "a", "b")
    assert await owner.ask("a")
    world.clock.advance(1)
    assert await owner.ask("a", "b")
    assert [(row.call_id, row.asked_at) for row in owner.loaded.approvals] == [
        ("a", world.clock.now() - timedelta(seconds=1)),
        ("b", world.clock.now()),
    ]


@pytest.mark.parametrize("what", ["unknown", "started", "done"])
async def test_only_an_announced_call_can_be_asked_about(world: World, what: str) -> None:
    owner = await calls_announced(world, "a", "b")
    await owner.start_call(1)
    if what == "done":
        await owner.finish_call(done(1, "b"))
    before = await world.everything()
    assert not await owner.ask("a", "c" if what == "unknown" else "b")
    assert await world.everything() == before


async def test_without_an_open_batch_there_is_nothing_to_ask(world: World) -> None:
    owner = await calls_announced(world, "a")
    await owner.cross(done(0, "a"))
    assert not await owner.ask("a")
    assert owner.loaded.approvals == ()


# --- deciding


@pytest.mark.parametrize("decision", [APPROVED, REJECTED])
async def test_a_decision_counts_and_makes_the_session_due(world: World, decision: ApprovalDecision) -> None:
    owner = await asked_about(world, "a", "b")
    assert await owner.suspend()
    before = await world.session()
    assert before.due_at > world.clock.now()
    world.clock.advance(7)
    approval = owner.approval("a")
    decided = await world.store.decide(approval.id, decision, by="ops", reason="it is fine")
    assert decided is not None
    assert decided.won
    assert decided.approval == replace(
        approval, decision=decision, decided_by="ops", reason="it is fine", decided_at=world.clock.now()
    )
    after = await world.session()
    assert after == replace(before, mail_seq=before.mail_seq + 1, due_at=DUE_NOW)
    heir = await world.own(approval.session_id)
    assert heir.loaded.approvals == (decided.approval, owner.approval("b"))


async def test_only_the_first_decision_counts_and_the_later_is_told_of_it(world: World) -> None:
    owner = await asked_about(world, "a")
    approval = owner.approval("a")
    first = await world.store.decide(approval.id, REJECTED, by="ann", reason="no")
    before = await world.everything()
    for decision in (APPROVED, REJECTED):
        again = await world.store.decide(approval.id, decision, by="bob", reason="yes")
        assert first is not None
        assert again == replace(first, won=False)
    assert await world.everything() == before


async def test_a_decision_that_comes_too_late_is_that_it_expired(world: World) -> None:
    owner = await asked_about(world, "a", valid_s=60)
    assert await owner.suspend()
    before = await world.session()
    world.clock.advance(60)
    late = await world.store.decide(owner.approval("a").id, APPROVED, by="ops", reason="yes")
    assert late is not None
    assert not late.won
    row = late.approval
    assert (row.decision, row.decided_by, row.reason, row.decided_at) == (EXPIRED, None, None, world.clock.now())
    assert await world.session() == replace(before, mail_seq=before.mail_seq + 1, due_at=DUE_NOW)
    before_all = await world.everything()
    assert await world.store.decide(row.id, APPROVED, by="ops") == late
    assert await world.everything() == before_all


async def test_a_decision_just_before_its_time_is_over_still_counts(world: World) -> None:
    owner = await asked_about(world, "a", valid_s=60)
    assert await owner.suspend()
    world.clock.advance(59.999)
    late = await world.store.decide(owner.approval("a").id, APPROVED, by="ops")
    assert late is not None
    assert late.won


@pytest.mark.parametrize("decision", [EXPIRED, VOID])
async def test_no_person_decides_that_an_approval_is_over(world: World, decision: ApprovalDecision) -> None:
    owner = await asked_about(world, "a")
    before = await world.everything()
    with pytest.raises(ValueError, match=decision.value):
        await world.store.decide(owner.approval("a").id, decision, by="ops")
    assert await world.everything() == before


@pytest.mark.parametrize("unknown", ["", "no such approval"])
async def test_there_is_nothing_to_decide_about_what_was_never_asked(world: World, unknown: str) -> None:
    await asked_about(world, "a")
    assert await world.store.decide(unknown, APPROVED, by="ops") is None


async def test_a_decision_about_a_turn_that_has_ended_changes_nothing(world: World) -> None:
    owner = await asked_about(world, "a")
    approval = owner.approval("a")
    await owner.fail(DENIED)
    before = await world.everything()
    decided = await world.store.decide(approval.id, APPROVED, by="ops")
    assert decided is not None
    assert (decided.won, decided.approval.decision) == (False, VOID)
    assert await world.everything() == before


async def test_what_a_turn_left_open_is_not_decided_after_its_end(world: World) -> None:
    owner = await asked_about(world, "a")
    approval = owner.approval("a")
    await owner.cross(DENIED)
    await owner.commit(2)
    before = await world.everything()
    decided = await world.store.decide(approval.id, APPROVED, by="ops")
    assert decided is not None
    assert not decided.won
    assert await world.everything() == before
    assert await listed(world, open_only=True) == []


async def test_a_decision_is_nothing_urgent_but_nobody_lets_go_or_suspends_past_it(world: World) -> None:
    owner = await asked_about(world, "a", "b")
    seen = owner.seen
    assert await decide(owner, "a", APPROVED)
    assert (await world.session()).urgent_seq == 0
    before = await world.everything()
    assert not await world.store.suspend(owner.fence, seen, owner.turn_id)
    assert await world.everything() == before
    assert await owner.suspend()


async def test_decisions_are_in_one_order_with_messages(world: World) -> None:
    owner = await asked_about(world, "a")
    await decide(owner, "a", APPROVED)
    assert (await world.say("two")).position == 3


# --- what an approval lets run


async def test_a_call_that_was_asked_about_never_starts_without_its_answer(world: World) -> None:
    owner = await asked_about(world, "a")
    assert await owner.start_call() == STAYED
    await decide(owner, "a", APPROVED)
    before = await world.everything()
    assert await owner.start_call() == STAYED, "who does not know the arguments proves nothing"
    assert await world.everything() == before
    assert await owner.start_call(arguments_hash=ARGUMENTS) == MOVED
    assert await owner.start_call(arguments_hash=ARGUMENTS) == STAYED


@pytest.mark.parametrize("decision", [None, REJECTED])
async def test_only_a_yes_lets_it_run(world: World, decision: ApprovalDecision | None) -> None:
    owner = await asked_about(world, "a")
    if decision is not None:
        await decide(owner, "a", decision)
    before = await world.everything()
    assert await owner.start_call(arguments_hash=ARGUMENTS) == STAYED
    assert await world.everything() == before


async def test_it_runs_with_no_other_arguments(world: World) -> None:
    owner = await asked_about(world, "a")
    await decide(owner, "a", APPROVED)
    assert await owner.start_call(arguments_hash="something else") == STAYED
    assert await owner.start_call(arguments_hash=ARGUMENTS) == MOVED


@pytest.mark.parametrize(("after_s", "outcome"), [(VALID_S - 0.001, MOVED), (VALID_S, STAYED), (VALID_S + 1, STAYED)])
async def test_a_yes_that_was_not_used_in_time_lets_nothing_run(
    world: World, after_s: float, outcome: CallStart
) -> None:
    owner = await asked_about(world, "a")
    await decide(owner, "a", APPROVED)
    world.clock.advance(after_s)
    assert await owner.start_call(arguments_hash=ARGUMENTS) == outcome


async def test_a_yes_is_for_one_call(world: World) -> None:
    owner = await asked_about(world, "a", "b")
    await decide(owner, "a", APPROVED)
    assert await owner.start_call(1, arguments_hash=ARGUMENTS) == STAYED
    assert await owner.start_call(0, arguments_hash=ARGUMENTS) == MOVED


async def test_what_nobody_was_asked_about_proves_nothing(world: World) -> None:
    owner = await calls_announced(world, "a", "b")
    await owner.ask("b")
    await decide(owner, "b", APPROVED)
    assert await owner.start_call(0, arguments_hash=ARGUMENTS) == STAYED
    assert await owner.start_call(0) == MOVED


async def test_an_interrupt_before_it_starts_comes_first(world: World) -> None:
    owner = await asked_about(world, "a")
    await decide(owner, "a", APPROVED)
    await world.say("stop", mode="interrupt")
    assert await owner.start_call(arguments_hash=ARGUMENTS) == CallStart(held=False, moved=False)


# --- giving it up


@pytest.mark.parametrize("becomes", [EXPIRED, VOID])
@pytest.mark.parametrize(
    ("decision", "stays"),
    [(None, False), (APPROVED, False), (REJECTED, True)],
    ids=["undecided", "approved", "rejected"],
)
@pytest.mark.parametrize("by", ["finish_call", "boundary"])
async def test_a_result_says_what_becomes_of_an_approval_that_was_not_used(
    world: World, decision: ApprovalDecision | None, stays: bool, becomes: ApprovalDecision, by: str
) -> None:
    owner = await asked_about(world, "a")
    if decision is not None:
        await decide(owner, "a", decision, "because")
    before = owner.approval("a")
    world.clock.advance(2)
    result = replace(DENIED, approval=becomes)
    if by == "finish_call":
        assert await owner.finish_call(result) == MOVED
    else:
        assert await owner.cross(result) is not None
    await owner.look()
    decided_at = world.clock.now() if decision is None else before.decided_at
    expected = before if stays else replace(before, decision=becomes, decided_at=decided_at)
    assert owner.approval("a") == expected


async def test_a_result_that_says_nothing_leaves_the_approval(world: World) -> None:
    owner = await asked_about(world, "a")
    await decide(owner, "a", APPROVED)
    before = owner.approval("a")
    assert await owner.finish_call(DENIED) == MOVED
    assert (await owner.look()).approval("a") == before


@pytest.mark.parametrize("by", ["finish_call", "boundary", "end"])
async def test_an_approval_that_was_used_stays_approved(world: World, by: str) -> None:
    owner = await asked_about(world, "a")
    await decide(owner, "a", APPROVED)
    approval = owner.approval("a")
    await owner.start_call(arguments_hash=ARGUMENTS)
    result = replace(done(0, "a"), state=CallState.UNKNOWN, approval=VOID)
    if by == "finish_call":
        await owner.finish_call(result)
    elif by == "boundary":
        await owner.cross(result)
    else:
        await owner.fail(result)
    summary = await world.store.approval(approval.id)
    assert summary is not None
    assert summary.approval == approval


async def test_a_result_that_came_too_late_gives_up_nothing(world: World) -> None:
    owner = await asked_about(world, "a")
    await owner.finish_call(DENIED)
    assert await owner.finish_call(replace(DENIED, approval=VOID)) == STAYED
    assert (await owner.look()).approval("a").decision is None


async def test_no_open_approval_outlives_its_turn(world: World) -> None:
    """Approved and used, approved and not, rejected, undecided, one of which its result says why, one that was left."""
    owner = await asked_about(world, "used", "unused", "rejected", "undecided", "told", "left")
    for call_id, decision in (("used", APPROVED), ("unused", APPROVED), ("rejected", REJECTED)):
        await decide(owner, call_id, decision)
    await owner.start_call(0, arguments_hash=ARGUMENTS)
    await owner.finish_call(done(0, "used"))
    await owner.finish_call(replace(DENIED, index=5, call_id="left"))
    approvals = {row.call_id: row.id for row in owner.loaded.approvals}
    calls = ["used", "unused", "rejected", "undecided"]
    results = [replace(DENIED, index=index, call_id=call_id) for index, call_id in enumerate(calls)]
    told = replace(DENIED, index=4, call_id="told", approval=EXPIRED)
    assert await owner.fail(*results, told, state=TurnState.CANCELLED, outcome="cancelled")
    became = {}
    for call_id, approval_id in approvals.items():
        summary = await world.store.approval(approval_id)
        assert summary is not None
        assert not summary.open
        became[call_id] = summary.approval.decision
    assert became == {
        "used": APPROVED,
        "unused": VOID,
        "rejected": REJECTED,
        "undecided": VOID,
        "told": EXPIRED,
        "left": VOID,
    }
    assert_valid_conversation(await world.store.messages(owner.fence.session_id))


async def test_a_commit_that_closes_a_batch_voids_what_was_open(world: World) -> None:
    owner = await asked_about(world, "halts", "waits", "granted")
    await decide(owner, "granted", APPROVED)
    approvals = [row.id for row in owner.loaded.approvals]
    results = (
        done(0, "halts", halts=True),
        replace(DENIED, index=1, call_id="waits"),
        replace(DENIED, index=2, call_id="granted"),
    )
    committed = await owner.commit(results=results, model_call=None, outcome="halted")
    assert committed == Committed(released=False)
    for approval_id in approvals:
        summary = await world.store.approval(approval_id)
        assert summary is not None
        assert summary.approval.decision is VOID


# --- for people


async def listed(world: World, **values: object) -> list[str]:
    found = await world.store.approvals(**values)  # type: ignore[arg-type]
    return [summary.approval.call_id for summary in found]


async def test_an_approval_is_shown_with_what_a_person_must_see(world: World) -> None:
    owner = await world.own((await world.say(session="ana", tenant="acme", agent="help")).session_id)
    await owner.start()
    await owner.append("a")
    await owner.look()
    await owner.ask("a")
    shown = ApprovalSummary(owner.approval("a"), "acme", "ana", "help", {"n": 1}, open=True)
    assert await world.store.approval(shown.approval.id) == shown
    assert await world.store.approvals() == (shown,)
    assert await world.store.approval("no such approval") is None


async def test_open_approvals_come_first_and_the_oldest_of_them(world: World) -> None:
    owner = await calls_announced(world, "a", "b", "c", "d", "e")
    for call_id in "abcde":
        await owner.ask(call_id)
        world.clock.advance(1)
    await decide(owner, "b", APPROVED)
    await decide(owner, "d", REJECTED)
    assert await listed(world) == ["a", "c", "e", "d", "b"]
    assert await listed(world, limit=4) == ["a", "c", "e", "d"]
    assert await listed(world, limit=2) == ["a", "c"]
    assert await listed(world, open_only=True) == ["a", "c", "e"]
    assert await listed(world, open_only=True, limit=1) == ["a"]


async def test_what_has_expired_or_whose_turn_has_ended_is_not_open(world: World) -> None:
    brief = await asked_about(world, "brief", session="one", valid_s=60)
    await asked_about(world, "long", session="two")
    ended = await asked_about(world, "ended", session="three")
    await ended.fail(replace(DENIED, call_id="ended"))
    world.clock.advance(60)
    assert await listed(world, open_only=True) == ["long"]
    assert sorted(await listed(world)) == ["brief", "ended", "long"]
    shown = await world.store.approval(brief.approval("brief").id)
    assert shown is not None
    assert (shown.open, shown.approval.decision) == (False, None)


async def test_approvals_are_found_by_how_their_ids_begin(world: World) -> None:
    owner = await calls_announced(world, "a", "b", "c", "d")
    for call_id, approval_id in (("a", "12a"), ("b", "12b"), ("c", "2"), ("d", "1_")):
        await owner.ask(call_id, id=approval_id)
    assert list(await world.store.approval_ids("12", 10)) == ["12a", "12b"]
    assert list(await world.store.approval_ids("1", 2)) == ["12a", "12b"]
    assert list(await world.store.approval_ids("1_", 10)) == ["1_"]
    assert list(await world.store.approval_ids("3", 10)) == []
