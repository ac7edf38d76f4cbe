"""An owner that lost its lease writes nothing; and nothing starts while something urgent is unseen.

Every operation is brought to where it would succeed, and then asked for by the owner that may not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from insika.clock import NEVER
from insika.messages import ToolCall, assistant
from insika.storage.operations import AnnouncedCall, AppendStep, FailQueued, Fence, Release, Seen, SettleMail
from insika.storage.rows import TERMINAL, ApprovalDecision, CallStart, TurnState
from tests.store_world import ARGUMENTS, ESTIMATE, Owner, World, answer_call, classifier_call, done, measured

Prepare = Callable[[World], Awaitable[Owner]]
Operation = Callable[[Owner, Fence, Seen], Awaitable[Any]]
NOT_HELD = CallStart(held=False, moved=False)


@dataclass(frozen=True)
class Case:
    """`run` succeeds for the present owner after `prepare`. `urgent`: it demands that nothing urgent is unseen."""

    name: str
    prepare: Prepare
    run: Operation
    urgent: bool


async def waiting(world: World) -> Owner:
    return await world.own((await world.say("one")).session_id)


async def running(world: World) -> Owner:
    owner = await waiting(world)
    await owner.start()
    return owner


async def classifying(world: World) -> Owner:
    owner = await waiting(world)
    await owner.start(model_call=classifier_call())
    return owner


async def batch_open(world: World) -> Owner:
    owner = await running(world)
    await owner.append("a")
    return await owner.look()


async def call_started(world: World) -> Owner:
    owner = await batch_open(world)
    await owner.start_call()
    return await owner.look()


async def call_done(world: World) -> Owner:
    owner = await call_started(world)
    await owner.finish_call(done(0, "a"))
    return await owner.look()


async def steer_waits(world: World) -> Owner:
    owner = await call_done(world)
    await world.say("also", mode="steer")
    return await owner.look()


async def asked(world: World) -> Owner:
    owner = await batch_open(world)
    await owner.ask("a")
    return owner


async def approved(world: World) -> Owner:
    owner = await asked(world)
    await world.store.decide(owner.approval("a").id, ApprovalDecision.APPROVED, by="ops")
    return await owner.look()


async def suspended(world: World) -> Owner:
    owner = await asked(world)
    assert await owner.suspend()
    await world.say("two")
    return await world.own(owner.fence.session_id)


async def idle(world: World) -> Owner:
    owner = await running(world)
    await owner.commit()
    return await owner.look()


async def start(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.start(fence, seen, owner.opening())


async def append(owner: Owner, fence: Fence, seen: Seen) -> Any:
    call = ToolCall("b", "look_up", {})
    announced = (AnnouncedCall("b", "look_up", {}, side_effect=True),)
    step = AppendStep(owner.turn_id, 1, assistant("let me see", call), announced, measured(1))
    return await owner.store.append(fence, step)


async def retry_model(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.retry_model(fence, seen, owner.turn_id, answer_call(1, 2), estimate=ESTIMATE)


async def start_call(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.start_call(fence, seen, owner.turn_id, 1, 0)


async def start_approved_call(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.start_call(fence, seen, owner.turn_id, 1, 0, arguments_hash=ARGUMENTS)


async def ask_approvals(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.ask_approvals(fence, seen, owner.turn_id, [owner.question("a")])


async def suspend(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.suspend(fence, seen, owner.turn_id)


async def resume_turn(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.resume_turn(fence, seen, owner.turn_id)


async def finish_call(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.finish_call(fence, owner.turn_id, 1, done(0, "a"))


async def cross_boundary(owner: Owner, fence: Fence, seen: Seen) -> Any:
    boundary = owner.boundary(done(0, "a"), notices=("notice",), absorbed=owner.absorbing(2))
    return await owner.store.cross_boundary(fence, seen, boundary)


async def commit(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.commit(fence, seen, owner.ending(release_due=NEVER))


async def commit_halted(owner: Owner, fence: Fence, seen: Seen) -> Any:
    ending = owner.ending(release_due=NEVER, results=(done(0, "a", halts=True),), model_call=None)
    return await owner.store.commit(fence, seen, ending)


async def end(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.end(fence, owner.failing(done(0, "a")))


async def fail_queued(owner: Owner, fence: Fence, seen: Seen) -> Any:
    error = {"type": "worker_lost", "message": "its workers died"}
    opening = owner.opening()
    failed = FailQueued(opening.turn_id, opening.positions, "shop", "web", "bob", "customer", error)
    return await owner.store.fail_queued(fence, seen, failed)


async def route_turn(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.route_turn(fence, seen, owner.routing())


async def redirect_turn(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.redirect_turn(fence, seen, owner.redirecting())


async def open_model_call(owner: Owner, fence: Fence, seen: Seen) -> Any:
    turn_id = owner.loaded.session.turn_id or owner.opening().turn_id
    return await owner.store.open_model_call(
        fence, seen, turn_id, 0, purpose="moderate", model="offline/moderator", estimate=ESTIMATE
    )


async def finish_at_once(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.finish_at_once(fence, seen, owner.finishing())


async def settle_mail(owner: Owner, fence: Fence, seen: Seen) -> Any:
    withdrawn = SettleMail((1,), "withdrawn", owner.opening().turn_id, TurnState.CANCELLED)
    return await owner.store.settle_mail(fence, seen, withdrawn)


async def confirm(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.confirm(fence)


async def release(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.release(fence, seen, Release(NEVER))


async def drain(owner: Owner, fence: Fence, seen: Seen) -> Any:
    return await owner.store.release_for_drain(fence, unknown_result="unknown", estimate=ESTIMATE)


CASES = [
    Case("start", waiting, start, urgent=True),
    Case("route_turn", classifying, route_turn, urgent=True),
    Case("redirect_turn", running, redirect_turn, urgent=True),
    Case("open_model_call", running, open_model_call, urgent=True),
    Case("open_model_call before the turn", waiting, open_model_call, urgent=True),
    Case("append", running, append, urgent=False),
    Case("retry_model", running, retry_model, urgent=True),
    Case("start_call", batch_open, start_call, urgent=True),
    Case("start_call of an approved one", approved, start_approved_call, urgent=True),
    Case("ask_approvals", batch_open, ask_approvals, urgent=True),
    Case("suspend", asked, suspend, urgent=True),
    Case("suspend again", suspended, suspend, urgent=True),
    Case("resume_turn", suspended, resume_turn, urgent=True),
    Case("finish_call", call_started, finish_call, urgent=False),
    Case("cross_boundary", steer_waits, cross_boundary, urgent=True),
    Case("commit", running, commit, urgent=True),
    Case("commit of a halted batch", call_started, commit_halted, urgent=True),
    Case("end", call_started, end, urgent=False),
    Case("fail_queued", waiting, fail_queued, urgent=True),
    Case("finish_at_once", waiting, finish_at_once, urgent=True),
    Case("settle_mail", waiting, settle_mail, urgent=False),
    Case("confirm", call_started, confirm, urgent=False),
    Case("release", idle, release, urgent=False),
    Case("release_for_drain", call_started, drain, urgent=False),
]

HARMLESS = (confirm, ask_approvals, resume_turn)
"""Said a second time they answer that it is so."""


def succeeded(answer: Any) -> bool:
    return answer not in (None, False, NOT_HELD)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_an_owner_that_lost_its_lease_writes_nothing(world: World, case: Case) -> None:
    owner = await case.prepare(world)
    if case.run is release:
        await world.say("two")  # so that there is something to take over
        await owner.look()
    taken = await world.take_over(owner.fence.session_id)
    before = await world.everything()
    assert not succeeded(await case.run(owner, owner.fence, owner.seen))
    assert await world.everything() == before
    if case.run is not release:
        assert succeeded(await case.run(owner, taken.fence, taken.seen)), "it was the lease that made the difference"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_lease_that_never_was_writes_nothing(world: World, case: Case) -> None:
    owner = await case.prepare(world)
    before = await world.everything()
    assert not succeeded(await case.run(owner, Fence(owner.fence.session_id, "0" * 32), owner.seen))
    assert await world.everything() == before
    assert succeeded(await case.run(owner, owner.fence, owner.seen))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_lease_does_not_reach_into_another_session(world: World, case: Case) -> None:
    other = await world.own((await world.say("other", session="other")).session_id)
    owner = await case.prepare(world)
    before = await world.everything()
    assert not succeeded(await case.run(owner, Fence(owner.fence.session_id, other.fence.lease_id), owner.seen))
    assert await world.everything() == before


@pytest.mark.parametrize("case", [case for case in CASES if case.run is not release], ids=lambda case: case.name)
async def test_a_released_lease_writes_nothing(world: World, case: Case) -> None:
    owner = await case.prepare(world)
    assert await world.store.release_for_drain(owner.fence, unknown_result="unknown", estimate=ESTIMATE)
    before = await world.everything()
    assert not succeeded(await case.run(owner, owner.fence, owner.seen))
    assert await world.everything() == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_what_starts_anything_demands_that_nothing_urgent_is_unseen(world: World, case: Case) -> None:
    owner = await case.prepare(world)
    first = (await world.store.turns(owner.fence.session_id))[0]
    if first.state not in TERMINAL:
        assert await world.store.cancel(first.id, request_id="r") is not None
    before = await world.everything()
    unseen = await case.run(owner, owner.fence, owner.seen)
    assert succeeded(unseen) is not case.urgent
    if case.urgent:
        assert await world.everything() == before
        session = await world.session()
        seen = replace(owner.seen, mail=session.mail_seq, urgent=session.urgent_seq)
        assert succeeded(await case.run(owner, owner.fence, seen)), "it was the unseen cancel that stopped it"


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.run is not open_model_call], ids=lambda case: case.name
)
async def test_doing_it_a_second_time_writes_nothing(world: World, case: Case) -> None:
    """An owner that did not learn whether its write happened may ask again; the log says what happened. (Who asks a
    model again begins another attempt.)"""
    owner = await case.prepare(world)
    assert succeeded(await case.run(owner, owner.fence, owner.seen))
    before = await world.everything()
    again = await case.run(owner, owner.fence, owner.seen)
    assert not succeeded(again) or again == CallStart(held=True, moved=False) or case.run in HARMLESS
    assert await world.everything() == before


async def test_a_plain_message_that_is_unseen_stops_no_start_and_no_commit(world: World) -> None:
    owner = await waiting(world)
    await world.say("two")
    assert await owner.start() == 1
    await world.say("three")
    assert await owner.commit() is not None


async def test_a_boundary_may_demand_that_nothing_at_all_is_unseen(world: World) -> None:
    owner = await call_done(world)
    await world.say("also", mode="steer")
    before = await world.everything()
    assert await owner.cross(done(0, "a"), nothing_unseen=True) is None
    assert await world.everything() == before
    await owner.look()
    assert await owner.cross(done(0, "a"), nothing_unseen=True, absorbed=owner.absorbing(2)) == 4


async def test_nothing_starts_while_another_turn_runs(world: World) -> None:
    owner = await running(world)
    await world.say("two")
    await owner.look()
    before = await world.everything()
    assert await owner.start() is None
    assert await fail_queued(owner, owner.fence, owner.seen) is None
    assert await world.everything() == before


@pytest.mark.parametrize("run", [retry_model, commit, append], ids=lambda run: run.__name__)
async def test_the_model_is_asked_for_nothing_inside_an_open_batch(world: World, run: Operation) -> None:
    owner = await batch_open(world)
    before = await world.everything()
    if run is commit:
        with pytest.raises(ValueError, match="a of step 1 is open"):
            await run(owner, owner.fence, owner.seen)
    else:
        assert not succeeded(await run(owner, owner.fence, owner.seen))
    assert await world.everything() == before


async def test_a_start_that_names_a_message_which_is_gone_writes_nothing(world: World) -> None:
    owner = await waiting(world)
    await world.say("two")
    before = await world.everything()
    assert await owner.start(positions=(1, 3)) is None
    assert await owner.start(positions=(1, 1)) is None
    assert await owner.start(refused=(7,)) is None
    assert await world.everything() == before


async def test_a_start_cannot_consume_a_control_message(world: World) -> None:
    owner = await waiting(world)
    second = await world.say("two")
    await world.store.cancel(second.turn_id or "", request_id="r")
    await owner.look()
    before = await world.everything()
    assert await owner.start(positions=(1, 3)) is None
    assert await world.everything() == before


async def test_a_turn_that_has_ended_does_not_start_again(world: World) -> None:
    owner = await waiting(world)
    opening = owner.opening()
    await world.say("two")
    await owner.start()
    await owner.commit()
    await owner.look()
    before = await world.everything()
    assert await world.store.start(owner.fence, owner.seen, replace(opening, positions=(2,))) is None
    assert await world.everything() == before


async def test_a_turn_of_another_session_is_not_started(world: World) -> None:
    other = await world.say("other", session="other")
    owner = await waiting(world)
    before = await world.everything()
    assert await owner.start(turn_id=other.turn_id) is None
    assert await world.everything() == before


async def test_a_step_of_an_older_turn_is_not_written_into_the_one_that_runs(world: World) -> None:
    owner = await running(world)
    old_turn = owner.turn_id
    await owner.fail()
    await world.say("two")
    await owner.look()
    await owner.start()
    call = ToolCall("b", "look_up", {})
    announced = (AnnouncedCall("b", "look_up", {}, side_effect=True),)
    step = AppendStep(old_turn, 1, assistant("let me see", call), announced, measured(1))
    before = await world.everything()
    assert await world.store.append(owner.fence, step) is None
    retried = await world.store.retry_model(owner.fence, owner.seen, old_turn, answer_call(1, 2), estimate=ESTIMATE)
    assert retried is False
    assert await world.store.commit(owner.fence, owner.seen, replace(owner.ending(), turn_id=old_turn)) is None
    assert await world.everything() == before


async def test_a_call_of_another_turn_is_out_of_reach(world: World) -> None:
    owner = await call_started(world)
    old_turn, seen = owner.turn_id, owner.seen
    await owner.fail(done(0, "a"))
    await world.say("two")
    await owner.look()
    await owner.start()
    await owner.append("b")
    before = await world.everything()
    assert (
        await world.store.cross_boundary(owner.fence, seen, replace(owner.boundary(done(0, "b")), turn_id=old_turn))
        is None
    )
    assert await world.store.start_call(owner.fence, seen, old_turn, 1, 0) == NOT_HELD
    assert await world.store.finish_call(owner.fence, old_turn, 1, done(0, "a")) == NOT_HELD
    assert await world.everything() == before
