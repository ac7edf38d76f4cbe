"""A second message of every mode at every moment of the first one's turn: its verdict, and what becomes of both; while
one process does it all, when another takes the message, and when the owner dies just then."""

from __future__ import annotations

import pytest

from insika.storage.rows import TurnState, Verdict
from insika.testing import Call, Rule, Say, Script, ScriptedModel
from tests.actor_world import LEASE_S, Gate, Place, Process, profile

MODES = ("followup", "collect", "steer", "interrupt")
RUNNING = ("during the model call", "during a tool", "at the last boundary", "before the answer is written")
HELD_BACK = ("while suspended", "while paused")
JOINS = ("during the model call", "during a tool", *HELD_BACK)
MOMENTS = ("before the turn", *RUNNING, "before the release", *HELD_BACK)
SCRIPT = Script(
    rules=[Rule([Call("pay", {"n": 1}), Call("look", {"n": 2}), Say("Done.")], when="long")], afterwards=Say("Short.")
)


class HeldModel(ScriptedModel):
    """Holds its nth request."""

    def __init__(self, nth: int) -> None:
        super().__init__(SCRIPT, self._hold)
        self.gate = Gate()
        self._nth = nth

    async def _hold(self, request, chunk, /):
        if len(self.requests) == self._nth:
            await self.gate()


class Scene:
    """A turn that stands still at a moment, until it is told to go on."""

    def __init__(self, place: Place, mode: str, moment: str) -> None:
        self.place = place
        self.moment = moment
        asks = ["pay"] if moment == "while suspended" else []
        self.profile = profile(limits={"queue_mode": mode}, approvals_required=asks)
        self.gate = Gate()
        self.owner: Process

    async def arrive(self) -> None:
        nth = {"during the model call": 1, "at the last boundary": 3}.get(self.moment)
        model = HeldModel(nth) if nth is not None else ScriptedModel(SCRIPT)
        self.owner = await self.place.process(self.profile, model=model)
        if isinstance(model, HeldModel):
            self.gate = model.gate
        if self.moment in ("during a tool", "while paused"):
            self.place.shop.gates["pay", 1] = self.gate
        self.owner.store.hook = self._stand
        if self.moment == "before the turn":
            self.owner.deaf = True
        self.first = await self.owner.send("long", channel="web")
        if self.moment == "while suspended":
            await self.owner.idle()
        elif self.moment != "before the turn":
            await self.gate.reached()
        if self.moment == "while paused":
            await self.owner.control.pause("s")
            self.gate.open()
            await self.owner.idle()

    async def _stand(self, when: str, operation: str) -> None:
        stands = {"before the answer is written": ("before", "commit"), "before the release": ("after", "commit")}
        if stands.get(self.moment) == (when, operation):
            await self.gate()

    async def go_on(self, heir: Process | None) -> Process:
        """`heir`: who takes over from the owner, which dies; None: it lives."""
        self.place.shop.gates.clear()
        if heir is not None:
            await self.owner.die()
            heir.deaf = False
            self.place.clock.advance(LEASE_S + 1)
        now = heir or self.owner
        self.gate.open()
        self.owner.deaf = False
        if self.moment == "while suspended":
            for approval in await now.approvals():
                if approval.decision is None:
                    await now.approve()
        if self.moment == "while paused":
            await now.control.resume("s")
        await now.idle()
        await now.sweep()
        await now.idle()
        return now


def verdict(mode: str, moment: str) -> Verdict:
    if moment == "before the turn":
        return Verdict.MERGED if mode == "collect" else Verdict.ACCEPTED
    if moment == "before the release" or mode in ("followup", "collect"):
        return Verdict.ACCEPTED
    return Verdict.STEERED if mode == "steer" else Verdict.INTERRUPTING


@pytest.mark.parametrize("who", ["one process", "another takes the message", "the owner dies just then"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_second_message(place_for, mode, moment, who):
    place = place_for(SCRIPT)
    scene = Scene(place, mode, moment)
    await scene.arrive()
    other = await place.process(scene.profile) if who != "one process" else None
    if other is not None:
        other.deaf = True  # it only takes messages, until it has to take over
    second = await (other or scene.owner).send("more", channel="web")
    now = await scene.go_on(other if who == "the owner dies just then" else None)

    assert second.verdict == verdict(mode, moment)
    assert await now.said() == ["long", "more"]
    cut = second.verdict is Verdict.INTERRUPTING
    together = second.verdict is Verdict.MERGED or (second.verdict is Verdict.STEERED and moment in JOINS)
    turns = await now.turns()
    assert [turn.state for turn in turns] == [
        TurnState.CANCELLED if cut else TurnState.COMPLETED,
        *([] if together else [TurnState.COMPLETED]),
    ]
    if cut:
        assert turns[0].error["type"] == "interrupted"
    answers = await now.answers()
    assert answers == (["Short."] if cut or together else ["Done.", "Short."])
    sent = await now.select("SELECT turn_id FROM outbox")
    assert [row["turn_id"] for row in sent] == [turn.id for turn in turns if turn.state is TurnState.COMPLETED]
    released = [event for process in place.processes for event in process.events.of("turn_steer_released")]
    assert len(released) == (1 if second.verdict is Verdict.STEERED and not together else 0)
    place.shop.once_each("pay")
    row = await now.row()
    assert (row.waiting, row.turn_id, row.lease_id, row.open_calls) == (0, None, None, 0)
