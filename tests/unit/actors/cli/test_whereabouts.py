"""Where messages went, in words, for each verdict and each end; and what a session is doing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from insika.messages import NO_USAGE
from insika.storage.operations import Fence, SettleMail
from insika.storage.rows import Ended, TurnState
from tests.store_world import Owner, World, done


def went(command_line: Any) -> list[str]:
    """Where each message of the session went, as it is printed, with `A`, `B` for the turns in their order."""
    told = command_line.run("sessions", "show", "s").output
    table = told.partition("Messages and where they went\n")[2]
    lines = [re.split(" {2,}", row)[-1] for row in table.splitlines()[1:]]
    for letter, turn in zip("ABCDEFGH", command_line.json("sessions", "show", "s")["turns"], strict=False):
        lines = [line.replace(turn["turn_id"], letter) for line in lines]
    return lines


async def working(world: World, **values: Any) -> Owner:
    """The owner of a turn whose one call runs."""
    accepted = await world.say("one", job_id="m1", **values)
    owner = await world.own(accepted.session_id)
    await owner.start()
    await owner.append("c1")
    await owner.start_call()
    return owner


async def finish(owner: Owner, *absorbed: int) -> None:
    await owner.look()
    await owner.finish_call(done(0, "c1"))
    await owner.cross(done(0, "c1"), absorbed=owner.absorbing(*absorbed))
    assert await owner.commit(2) is not None
    await owner.look()


def test_messages_that_wait(command_line: Any) -> None:
    async def fill(world: World) -> None:
        await working(world, mode="steer")
        await world.say("two", mode="steer")
        await world.say("three", mode="collect")
        await world.say("four", mode="collect")
        await world.say("five", mode="interrupt")

    command_line.seed(fill)
    assert went(command_line) == [
        "got its own turn A",
        "waits to join turn A at its next boundary",
        "waits for its own turn B",
        "merged into turn B, which waits to begin",
        "interrupts turn A; then gets its own turn C",
    ]
    assert command_line.json("sessions", "show", "s")["state"] == "running"


def test_a_steer_that_joined_and_one_that_was_released(command_line: Any) -> None:
    async def fill(world: World) -> None:
        owner = await working(world, mode="steer")
        await world.say("two", mode="steer")
        await world.say("three", mode="steer")
        await finish(owner, 2)

    command_line.seed(fill)
    assert went(command_line)[1:] == [
        "joined turn A at its boundary after step 1",
        "turn A could not take it; waits for a turn of its own",
    ]


def test_a_released_steer_names_both_turns(command_line: Any) -> None:
    async def fill(world: World) -> None:
        owner = await working(world, mode="steer")
        await world.say("two", mode="steer")
        await finish(owner)
        await owner.start(turn_id="another", positions=(2,))

    command_line.seed(fill)
    assert went(command_line)[1:] == ["steered, but turn A could not take it; released as turn B"]


def test_merged_messages_and_their_turn(command_line: Any) -> None:
    async def fill(world: World) -> None:
        await world.say("one", mode="collect")
        accepted = await world.say("two", mode="collect")
        await (await world.own(accepted.session_id)).start()

    command_line.seed(fill)
    assert went(command_line) == ["got its own turn A", "merged into turn A before it began"]


def test_an_interrupt_names_the_turn_that_it_ended(command_line: Any) -> None:
    async def fill(world: World) -> None:
        owner = await working(world)
        await world.say("two", mode="interrupt")
        await owner.look()
        assert await owner.fail(done(0, "c1"), state=TurnState.CANCELLED)
        await owner.look()

    command_line.seed(fill)
    assert went(command_line) == ["got its own turn A", "interrupted turn A; waits for its own turn B"]


def test_what_a_guard_refused(command_line: Any) -> None:
    async def fill(world: World) -> None:
        owner = await working(world)
        accepted = await world.say("two", mode="interrupt")
        await owner.look()
        mail = SettleMail((2,), Ended.REFUSED, accepted.turn_id, TurnState.REFUSED)
        assert await owner.store.settle_mail(owner.fence, owner.seen, mail)

    command_line.seed(fill)
    assert went(command_line)[1:] == ["refused by the input guard; it did not interrupt turn A"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("interrupted", "withdrawn; it had interrupted turn A"),
        ("cancelled", "withdrawn"),  # by somebody else
    ],
)
def test_an_interrupt_that_was_taken_back_names_the_turn_that_it_ended(
    command_line: Any, error: str, told: str
) -> None:
    async def fill(world: World) -> None:
        owner = await working(world)
        accepted = await world.say("two", job_id="m2", mode="interrupt")
        await owner.look()
        assert await owner.fail(
            done(0, "c1"), state=TurnState.CANCELLED, error={"type": error, "message": "it was ended"}
        )
        await owner.look()
        await world.store.withdraw("s", "m2", request_id="w2")
        await owner.look()
        mail = SettleMail((2,), Ended.WITHDRAWN, accepted.turn_id, TurnState.CANCELLED, (3,))
        assert await owner.store.settle_mail(owner.fence, owner.seen, mail)

    command_line.seed(fill)
    assert went(command_line)[1:] == [told, "took back message 2"]


@pytest.mark.parametrize(("by", "cut"), [("interrupt", "interrupted"), ("cancel", "cancelled")])
def test_a_held_session_says_that_its_turn_is_cut_already(command_line: Any, by: str, cut: str) -> None:
    async def fill(world: World) -> str:
        owner = await working(world)
        if by == "interrupt":
            await world.say("two", mode="interrupt")
        else:
            await world.store.cancel(owner.turn_id, request_id="c")
        await world.store.set_paused("s", True)
        return owner.turn_id

    turn_id = command_line.seed(fill)
    told = command_line.run("sessions", "show", "s").output
    assert f"held: turn {turn_id} was {cut}, and ends in spite of the hold; no other begins\n" in told
    assert command_line.json("sessions", "show", "s")["state"] == "held"


@pytest.mark.parametrize(
    ("by", "then"), [("interrupt", "ends when the hold does"), ("cancel", "ends in spite of the hold; no other begins")]
)
def test_of_a_held_turn_that_nobody_owns_only_a_cancel_comes_before_the_end_of_the_hold(
    command_line: Any, by: str, then: str
) -> None:
    """Nobody claims a held session but for a control message, and an interrupt is none."""

    async def fill(world: World) -> str:
        owner = await working(world)
        await world.store.set_paused("s", True)
        assert await owner.store.release_for_drain(owner.fence, unknown_result="unknown", estimate=NO_USAGE)
        if by == "interrupt":
            await world.say("two", mode="interrupt")
        else:
            await world.store.cancel(owner.turn_id, request_id="c")
        claim = await world.store.claim(owner.fence.session_id, 15.0)
        assert (claim is not None) == (by == "cancel")
        if claim is not None:
            assert await world.store.release_for_drain(
                Fence(claim.session_id, claim.lease_id), unknown_result="unknown", estimate=NO_USAGE
            )
        return owner.turn_id

    turn_id = command_line.seed(fill)
    told = command_line.run("sessions", "show", "s").output
    assert f"held: turn {turn_id} was {by}{'ed' if by == 'interrupt' else 'led'}, and {then}\n" in told


def test_messages_taken_back_and_the_requests(command_line: Any) -> None:
    async def fill(world: World) -> None:
        owner = await working(world)
        accepted = await world.say("two", job_id="m2")
        await world.store.withdraw("s", "m2", request_id="w2")
        await owner.look()
        mail = SettleMail((2,), Ended.WITHDRAWN, accepted.turn_id, TurnState.CANCELLED, (3,))
        assert await owner.store.settle_mail(owner.fence, owner.seen, mail)
        fourth = await world.say("four", job_id="m4")
        await world.store.cancel(str(fourth.turn_id), request_id="c4")
        await owner.look()
        mail = SettleMail((4,), Ended.WITHDRAWN, fourth.turn_id, TurnState.CANCELLED, (5,))
        assert await owner.store.settle_mail(owner.fence, owner.seen, mail)
        await world.say("six", job_id="m6")
        await world.store.withdraw("s", "m6", request_id="w6")

    command_line.seed(fill)
    assert went(command_line)[1:] == [
        "withdrawn",
        "took back message 2",
        "withdrawn with turn C, which was cancelled before it began",
        "ended turn C",
        "waits for its own turn D",
        "asks to take back message 6",
    ]


def test_requests_that_came_too_late(command_line: Any) -> None:
    async def fill(world: World) -> None:
        accepted = await world.say("one", job_id="m1")
        await world.store.withdraw("s", "m1", request_id="w1")
        await world.store.cancel(str(accepted.turn_id), request_id="c1")
        owner = await world.own(accepted.session_id)
        await owner.start(positions=(1,))
        await owner.fail(control=(3,))
        await owner.look()
        mail = SettleMail((), Ended.WITHDRAWN, None, TurnState.CANCELLED, (2,))
        assert await owner.store.settle_mail(owner.fence, owner.seen, mail)

    command_line.seed(fill)
    assert went(command_line) == [
        "got its own turn A",
        "too late to take back message 1",
        "too late to end turn A",
    ]


@pytest.mark.parametrize("moment", ["nothing", "waiting", "running", "suspended"])
@pytest.mark.parametrize("held", [False, True])
def test_a_session_says_what_it_is_doing(command_line: Any, moment: str, held: bool) -> None:
    async def fill(world: World) -> str:
        accepted = await world.say("one")
        if moment != "waiting":
            owner = await world.own(accepted.session_id)
            await owner.start()
            if moment == "nothing":
                await owner.commit()
                await owner.release()
            if moment == "suspended":
                await owner.append("c1")
                assert await owner.ask("c1", valid_s=86_400.0 * 365 * 100)
                assert await owner.suspend()
        if held:
            await world.store.set_paused("s", True)
        return str(accepted.turn_id)

    turn_id = command_line.seed(fill)
    state, words, held_words = {
        "nothing": ("idle", "idle", "held: no turn begins"),
        "waiting": ("queued", "waits for a turn to begin", "held: no turn begins"),
        "running": ("running", f"turn {turn_id} runs", f"held: turn {turn_id} goes on to its next boundary"),
        "suspended": (
            "waiting",
            f"turn {turn_id} waits for a person",
            f"held: turn {turn_id} has stopped at a boundary",
        ),
    }[moment]
    shown = command_line.json("sessions", "show", "s")
    assert shown["state"] == ("held" if held else state)
    told = command_line.run("sessions", "show", "s").output
    assert re.search(rf"^state +{held_words if held else words}$", told, re.MULTILINE)
    assert len(shown["approvals"]) == (1 if moment == "suspended" else 0)
    assert ("Waits for a person" in told) is (moment == "suspended")
