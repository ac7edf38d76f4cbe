"""Fault 41: a call that the output limit fell into is not run, whoever's model wrote it and whoever takes up its turn,
nor is anybody asked about it. Its model is told so, and the turn goes on."""

from __future__ import annotations

import pytest

from insika.crash_points import CrashPoint
from insika.providers.script import Call, Calls, Say, Script
from insika.storage.rows import TurnState
from insika.turn import sentences
from tests.actor_world import LEASE_S, Died, profile
from tests.faults.hosted import ANTHROPIC, DEEPSEEK, OPENAI, trading
from tests.vendors.steps import CutOff, Think

WHOLE, CUT, AGAIN = 111_111_111_111, 222_222_222_222, 333_333_333_333
NARRATED, SAID = "I pay both.", "Both are paid, in two steps."
LONG = Calls([Call("pay", {"n": WHOLE}), Call("pay", {"n": CUT})], text=NARRATED)
SCRIPT = Script(
    [
        Think("Two at once will do.", CutOff(LONG)),
        Think("One by one, then.", Call("pay", {"n": AGAIN})),
        Think("It is done.", Say(SAID)),
    ]
)


@pytest.fixture(params=[ANTHROPIC, DEEPSEEK, OPENAI])
async def trade(request):
    async with trading(SCRIPT, request.param) as trade:
        yield trade


def agent(trade, **values):
    (name,) = trade.vendors
    return profile(model=trade.reference(name), params={} if name == OPENAI else {"thinking": "low"}, **values)


async def the_cut_one_came_to_nothing(process, trade):
    assert sorted(n for _, n, _ in process.place.shop.ran) == [WHOLE, AGAIN]
    said = [(str(message.role), message.content) for message in await process.messages()]
    assert said == [
        ("user", "pay"),
        ("assistant", NARRATED),
        ("tool", f"pay {WHOLE} done"),
        ("tool", sentences.CUT_OFF),
        ("assistant", ""),
        ("tool", f"pay {AGAIN} done"),
        ("assistant", SAID),
    ]
    rows = await process.select("SELECT state, arguments FROM tool_calls ORDER BY step, idx")
    assert [row["state"] for row in rows] == ["done", "not_run", "done"]
    assert str(CUT)[:6] not in rows[1]["arguments"]
    trade.nothing_was_refused()
    ((_, seen),) = [(name, vendor.requests[-1]) for name, vendor in trade.vendors.items()]
    assert "your output reached its limit in the middle of it" in seen.raw.decode()


async def test_it_is_not_run_and_the_turn_goes_on(place_for, trade):
    process = await place_for(SCRIPT).process(agent(trade), models=trade.models, settings=trade.settings)
    accepted = await process.send("pay")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED
    await the_cut_one_came_to_nothing(process, trade)
    rows = await process.store.real.model_calls(accepted.turn_id)
    assert [row.state for row in rows] == ["measured"] * 3


@pytest.mark.parametrize("point", [CrashPoint.STEP_APPENDED, CrashPoint.CALL_RECORDED, CrashPoint.BATCH_RAN])
async def test_nor_is_it_by_whoever_takes_the_turn_up(place_for, trade, point):
    place = place_for(SCRIPT)
    first = await place.process(agent(trade), models=trade.models, settings=trade.settings)

    def die(reached):
        if reached is point:
            first.store.dead = True
            raise Died

    first.crash = die
    await first.send("pay")
    await first.idle()
    await first.die()
    second = await place.process(agent(trade), models=trade.models, settings=trade.settings)
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.idle()
    await the_cut_one_came_to_nothing(second, trade)


async def test_nobody_is_asked_about_it(place_for, trade):
    process = await place_for(SCRIPT).process(
        agent(trade, approvals_required=["pay"]), models=trade.models, settings=trade.settings
    )
    await process.send("pay")
    for _ in range(2):
        await process.idle()
        asked = [at for at, row in enumerate(await process.approvals()) if row.decision is None]
        assert len(asked) == 1
        await process.approve(*asked)
        await process.sweep()
    await process.idle()
    await the_cut_one_came_to_nothing(process, trade)
    assert len(await process.approvals()) == 2
