"""The store goes away at any operation, before it took effect or after: nothing is lost, nothing is doubled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from insika.storage.rows import TurnState
from insika.testing import Call, Calls, Fail, Rule, Say, Script, ScriptedModel
from insika.turn import sentences
from tests.actor_world import LEASE_S, Place, Process, profile, unavailable

STORY = Script(
    rules=[
        Rule([Call("pay", {"n": 9}), Fail("closed", fatal=True)], when="^bad"),
        Rule(
            [
                Calls([Call("pay", {"n": 1}), Call("put", {"n": 2}), Call("look", {"n": 3})]),
                Call("pay", {"n": 4}),
                Say("All done."),
            ]
        ),
    ],
    afterwards=Say("All done."),
)
LIMITS = profile(limits={"queue_mode": "steer", "max_tool_calls": 6})
JOBS = ("first", "added", "bad", "last")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("actors.store_patience.STORE_PAUSE_S", 0.0)
    monkeypatch.setattr("actors.runtime.CLAIM_PAUSE_S", 0.0)


class Away:
    """The store is away at one operation of an owner, the nth, for so many tries."""

    def __init__(self, process: Process, when: str, nth: int, tries: int = 1) -> None:
        self._process = process
        self._when = when
        self._left = nth
        self._tries = tries
        self.happened: str | None = None

    async def __call__(self, when: str, operation: str) -> None:
        if when != self._when or operation in ("accept", "wake_due", "due_sessions", "apply_settings", "apply_profile"):
            return
        self._left -= 1
        if self._left < 0 and self._tries:
            self._tries -= 1
            self.happened = operation
            raise unavailable()


def place_at(folder: Path) -> Place:
    folder.mkdir()
    return Place(folder, STORY)


async def tell(folder: Path, when: str = "", nth: int = 10_000, tries: int = 1) -> tuple[Place, Process, str | None]:
    """The story, with the store away once: a turn that is steered after its first batch, one that fails, and a last."""
    place = place_at(folder)
    process = await place.process(LIMITS)
    away = Away(process, when, nth, tries)
    steered = False

    async def hook(instant: str, operation: str) -> None:
        nonlocal steered
        if (instant, operation) == ("after", "append") and not steered:
            steered = True
            await process.send("added", channel="web", id="added")
        await away(instant, operation)

    process.store.hook = hook
    await process.send("first", channel="web", id="first")
    await process.idle()
    await process.send("bad", channel="web", id="bad")
    await process.finish()
    await process.send("last", channel="web", id="last")
    await process.finish()
    return place, process, away.happened


async def hold(place: Place, process: Process) -> None:
    said = await process.said()
    assert Counter(said) == Counter(JOBS)
    assert [text for text in said if text != "added"] == ["first", "bad", "last"]
    place.shop.once_each("pay")
    turns = await process.turns()
    assert turns[0].state is TurnState.COMPLETED
    failed = [turn for turn in turns if turn.state is TurnState.FAILED]
    assert [turn.error["type"] for turn in failed] == ["provider_fatal"]
    completed = [turn for turn in turns if turn.state is TurnState.COMPLETED]
    assert len(await process.select("SELECT id FROM outbox")) == len(completed)
    row = await process.row()
    assert (row.turn_id, row.lease_id, row.waiting, row.open_calls) == (None, None, 0, 0)
    assert not await process.select("SELECT 1 FROM mailbox WHERE ended IS NULL")
    assert not await process.select("SELECT 1 FROM model_calls WHERE state = 'open'")
    notices = [
        entry.message.content for entry in await process.log() if entry.message.content.startswith("[insika] You")
    ]
    assert notices.count(sentences.budget_answer_now(2)) <= 1


async def test_the_undisturbed_story(tmp_path):
    place, process, _ = await tell(tmp_path / "story")
    await hold(place, process)
    assert [turn.state for turn in await process.turns()] == ["completed", "failed", "completed"]
    assert await process.said() == list(JOBS)
    assert place.shop.count("pay") == 4
    await place.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("part", range(4))
async def test_the_store_is_away_once_anywhere(tmp_path, when, part):
    seen = []
    with capture_logs():
        for nth in range(part, 60, 4):
            place, process, operation = await tell(tmp_path / f"{nth}", when, nth)
            await hold(place, process)
            assert place.shop.count("pay") >= 3
            await place.close()
            if operation is None:
                break
            seen.append(operation)
    assert len(seen) >= 5


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_store_is_away_for_a_while(tmp_path, when):
    """Several tries in a row, at the operations that matter most."""
    with capture_logs():
        for nth in range(0, 24, 3):
            place, process, _ = await tell(tmp_path / f"{nth}", when, nth, tries=5)
            await hold(place, process)
            await place.close()


async def test_an_owner_whose_lease_nobody_renews_leaves_its_session_to_others(tmp_path):
    with capture_logs():
        place = Place(tmp_path, STORY)
        owner, other = await place.process(LIMITS), await place.process(LIMITS)

        async def gone(when: str, operation: str) -> None:
            if operation in ("cross_boundary", "confirm"):
                place.clock.advance(LEASE_S / 8)
            if operation == "cross_boundary":
                raise unavailable()

        owner.store.hook = gone
        await owner.send("first", channel="web")
        await owner.idle()
        assert owner.store.operations.count("cross_boundary") in (3, 4)
        await other.finish()

        assert await other.answers() == ["All done."]
        place.shop.once_each("pay")
        await place.close()


@pytest.mark.parametrize(
    "operation", ["load", "start", "append", "start_call", "finish_call", "cross_boundary", "commit"]
)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_outage_that_outlasts_the_lease_costs_no_owner_its_session(tmp_path, when, operation):
    """Nobody could renew it, and nobody took it: it is the owner's as before, and nobody has died."""
    with capture_logs():
        place = Place(tmp_path, STORY)
        owner = await place.process(LIMITS)
        began = ends_at = False

        async def away(instant: str, now: str) -> None:
            nonlocal began, ends_at
            if (instant, now) == (when, operation) and not began:
                began, ends_at = True, place.clock.monotonic() + 2 * LEASE_S
            if began and now not in ("accept", "claim"):
                place.clock.advance(LEASE_S / 10)
                if place.clock.monotonic() < ends_at:
                    raise unavailable()
                owner.keeper.loop_ticked()
                owner.keeper.renew_once()

        owner.store.hook = away
        await owner.send("first", channel="web")
        await owner.idle()

        assert await owner.answers() == ["All done."]
        place.shop.once_each("pay")
        row = await owner.row()
        assert (row.epoch, row.deaths) == (1, 0)
        await place.close()


async def test_an_owner_that_was_held_up_beyond_its_lease_goes_on_if_nobody_came_instead(tmp_path):
    with capture_logs():
        place = Place(tmp_path, STORY)
        owner = await place.process(LIMITS)

        async def sleep_over() -> None:
            place.clock.advance(2 * LEASE_S)

        async def renewed(when: str, operation: str) -> None:
            if (when, operation) == ("after", "confirm"):
                owner.keeper.loop_ticked()
                owner.keeper.renew_once()

        place.shop.gates["look", 3] = sleep_over
        owner.store.hook = renewed
        await owner.send("first", channel="web")
        await owner.idle()

        assert await owner.answers() == ["All done."]
        place.shop.once_each("pay")
        row = await owner.row()
        assert (row.epoch, row.deaths) == (1, 0)
        await place.close()


async def test_an_owner_whose_store_never_comes_back_gives_up_at_last(tmp_path):
    with capture_logs():
        place = Place(tmp_path, STORY)
        owner = await place.process(LIMITS)

        async def gone(when: str, operation: str) -> None:
            if operation not in ("accept", "claim"):
                place.clock.advance(LEASE_S / 10)
                raise unavailable()

        owner.store.hook = gone
        await owner.send("first", channel="web")
        await owner.idle()

        assert owner.store.operations.count("load") < 12
        await place.close()


async def test_a_store_that_refuses_for_ever_costs_a_few_tries_and_then_the_session_is_let_go(tmp_path):
    """A write that keeps coming to nothing while loading works: better a visible failure than asking for ever."""
    with capture_logs() as log:
        place = Place(tmp_path, Script([Say("never out")]))
        process = await place.process(LIMITS)

        async def refuse(when: str, operation: str) -> None:
            if (when, operation) == ("before", "commit"):
                raise unavailable()

        process.store.hook = refuse
        accepted = await process.send("first", channel="web")
        for _ in range(6):
            await process.idle()
            place.clock.advance(LEASE_S + 1)
            await process.sweep()
        await process.idle()

        turn = await process.turn(accepted.turn_id)
        assert (turn.state, turn.error["type"]) == (TurnState.FAILED, "worker_lost")
        assert len(process.model.requests) < 100
        assert any("stuck" in entry["event"] for entry in log)
        await place.close()


READS = frozenset({"load", "current_profiles", "current_settings", "next_due_at", "profile"})


async def test_a_store_that_can_only_be_read_has_nothing_done_again_and_again(tmp_path):
    """A full disk: what was loaded shows the same open batch each time, and its last result cannot be written."""
    with capture_logs():
        place = Place(tmp_path, Script([Call("look", {"n": 1}), Say("All done.")]))
        process = await place.process(LIMITS)
        refused = 0

        async def read_only(when: str, operation: str) -> None:
            nonlocal refused
            if place.shop.count("look") and operation not in READS and refused < 12:
                refused += 1
                raise unavailable()

        process.store.hook = read_only
        await process.send("first", channel="web")
        await process.finish()

        assert refused == 12
        assert place.shop.count("look") <= 2
        assert await process.answers() == ["All done."]
        await place.close()


async def test_an_answer_that_can_never_be_written_does_not_ask_its_model_for_ever(tmp_path):
    """The disk has room for everything but this: the turn fails where all can see it."""
    with capture_logs():
        place = Place(tmp_path, Script([Say("All done.")]))
        model = ScriptedModel(place.script)
        process = await place.process(LIMITS, model=model)

        async def no_room(when: str, operation: str) -> None:
            if operation == "commit":
                raise unavailable()

        process.store.hook = no_room
        await process.send("first", channel="web")
        await process.finish()

        (turn,) = await process.turns()
        assert (turn.state, turn.error["type"]) == (TurnState.FAILED, "worker_lost")
        assert len(model.requests) <= 3 * 7
        await place.close()
