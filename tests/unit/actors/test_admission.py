"""Edge limits and calendar budgets at a turn's beginning, from the job to its row, its alert and its delivery."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from insika.limits.edge import LIMIT_RESPONSE
from insika.providers.script import Call, Cut, Say
from insika.storage.rows import TurnState
from insika.testing import Script, ScriptedModel
from tests.actor_world import CHANNEL, Gate, Process, profile

WEBHOOK = "https://ops.example.com/insika"
DAY_S, MINUTE_S = 86_400, 60


def told(process: Process, type: str) -> list[Mapping[str, Any]]:
    return [event.data for event in process.events.of(type)]


async def alerts(process: Process) -> list[dict[str, Any]]:
    return [
        json.loads(row["payload"]) for row in await process.select("SELECT payload FROM outbox WHERE kind = 'alert'")
    ]


async def say(process: Process, text: str = "hello", **fields: Any) -> Any:
    accepted = await process.send(text, **fields)
    await process.idle()
    return await process.turn(accepted.turn_id)


def limited(**limits: Any) -> dict[str, Any]:
    return profile(limits=limits)


async def test_a_breach_is_answered_without_a_model_and_the_answer_is_delivered(place_for) -> None:
    process = await place_for(Script(afterwards=Say("Done."))).process(limited(chat_rate_limit=2))
    for _ in range(2):
        await say(process)
    turn = await say(process, "hello again", channel=CHANNEL)

    assert (turn.state, turn.outcome) == (TurnState.COMPLETED, "limited")
    assert (await process.answers())[-1] == LIMIT_RESPONSE
    assert await process.store.real.model_calls(turn.id) == ()
    (delivery,) = await process.select("SELECT payload FROM outbox")
    payload = json.loads(delivery["payload"])
    assert (payload["outcome"], payload["content"]) == ("limited", LIMIT_RESPONSE)
    assert process.deliveries_rung == 1
    (breached,) = told(process, "limit_breached")
    assert (breached["kind"], breached["limit"], breached["window"]) == ("chat_rate_limit", 2, 60)
    assert told(process, "turn_completed")[-1]["outcome"] == "limited"


async def test_a_blocked_attempt_counts_and_the_next_window_is_open_again(place_for) -> None:
    place = place_for(Script(afterwards=Say("Done.")))
    process = await place.process(limited(chat_rate_limit=1))
    outcomes = [(await say(process)).outcome for _ in range(3)]
    place.clock.advance(MINUTE_S)
    outcomes.append((await say(process)).outcome)
    assert outcomes == ["completed", "limited", "limited", "completed"]


async def test_sessions_have_windows_of_their_own_and_the_response_is_the_platforms(place_for) -> None:
    settings = {"edge": {"chat_rate_limit": 1, "limit_response": "Später, bitte."}}
    process = await place_for(Script(afterwards=Say("Done."))).process(profile(), settings=settings)
    assert [(await say(process, session=name)).outcome for name in ("a", "b", "a")] == [
        "completed",
        "completed",
        "limited",
    ]
    assert (await process.answers("a"))[-1] == "Später, bitte."


@pytest.mark.parametrize("off", [None, 0])
async def test_an_agent_may_switch_the_platforms_limit_off(place_for, off) -> None:
    process = await place_for(Script(afterwards=Say("Done."))).process(
        limited(chat_rate_limit=off), settings={"edge": {"chat_rate_limit": 1}}
    )
    assert [(await say(process)).outcome for _ in range(3)] == ["completed"] * 3


async def test_a_turn_that_is_taken_up_again_is_not_counted_again(place_for) -> None:
    place = place_for(Script([Call("look", {"n": 1}), Say("Done.")]))
    place.shop.gates["look", 1] = gate = Gate()
    first = await place.process(limited(chat_rate_limit=1))
    await first.send("hello")
    await gate.reached()
    await first.die()
    place.shop.gates.clear()
    second = await place.process(limited(chat_rate_limit=1))
    place.clock.advance(20)
    await second.sweep()
    await second.idle()
    assert await second.answers() == ["Done."]
    assert told(second, "limit_breached") == []


async def test_the_ceiling_counts_what_the_agents_calls_cost(place_for) -> None:
    place = place_for(Script(afterwards=Say("x" * 4_000)))
    process = await place.process(limited(agent_token_ceiling=1_000))
    assert (await say(process, session="a")).outcome == "completed"
    assert (await say(process, session="b")).outcome == "limited"
    (breached,) = told(process, "limit_breached")
    assert (breached["kind"], breached["window"]) == ("agent_token_ceiling", DAY_S)
    place.clock.advance(DAY_S)
    assert (await say(process, session="b")).outcome == "completed"


# --- budgets ----------------------------------------------------------------------------------------------------------


def on_budget(**budget: Any) -> dict[str, Any]:
    return profile(budget=budget, alerts={"webhook": WEBHOOK})


async def test_a_used_up_budget_fails_the_turn_and_says_when_to_come_back(place_for) -> None:
    process = await place_for(Script(afterwards=Say("x" * 400))).process(on_budget(daily=100))
    assert (await say(process)).outcome == "completed"
    turn = await say(process, "again", channel=CHANNEL)
    assert turn.state is TurnState.FAILED
    assert turn.error["type"] == "budget_exceeded"
    assert 0 < turn.error["retry_after"] <= DAY_S
    assert await process.store.real.model_calls(turn.id) == ()
    assert await process.select("SELECT 1 FROM outbox WHERE kind = 'answer'") == []
    assert [event["level"] for event in told(process, "budget_warning")] == ["alert", "cap"]


async def test_the_day_rolls_at_midnight(place_for) -> None:
    place = place_for(Script(afterwards=Say("x" * 400)))
    process = await place.process(on_budget(daily=100))
    await say(process)
    assert (await say(process)).state is TurnState.FAILED
    place.clock.advance(DAY_S)
    assert (await say(process)).outcome == "completed"


async def test_a_soft_budget_runs_with_a_note_that_the_conversation_does_not_keep(place_for) -> None:
    seen: list[str] = []

    class Watching:
        def __init__(self, model) -> None:
            self.model = model

        async def stream(self, request):
            seen.append(request.note)
            async for event in self.model.stream(request):
                yield event

    place = place_for(Script(afterwards=Say("x" * 400)))
    process = await place.process(on_budget(daily=100, soft=True), model=Watching(ScriptedModel(place.script)))
    await say(process)
    assert (await say(process)).outcome == "completed"
    assert seen[0] == ""
    assert "budget" in seen[1]
    assert not any("budget" in text for text in await process.said())
    assert [event["level"] for event in told(process, "budget_warning")] == ["alert", "cap"]


async def test_each_level_is_told_once_in_its_window_and_by_one_alert(place_for) -> None:
    place = place_for(Script(afterwards=Say("x" * 400)))
    process = await place.process(on_budget(daily=100, soft=True))
    for name in "abcde":
        await say(process, session=name)
    assert [event["level"] for event in told(process, "budget_warning")] == ["alert", "cap"]
    told_to_ops = await alerts(process)
    assert [(alert["type"], alert["data"]["level"], alert["data"]["window"]) for alert in told_to_ops] == [
        ("budget_warning", "alert", "daily"),
        ("budget_warning", "cap", "daily"),
    ]
    place.clock.advance(DAY_S)
    await say(process)
    await say(process)
    assert len(await alerts(process)) == 4


async def test_without_a_webhook_the_event_comes_once_all_the_same(place_for) -> None:
    process = await place_for(Script(afterwards=Say("x" * 400))).process(profile(budget={"daily": 100, "soft": True}))
    for _ in range(4):
        await say(process)
    assert len(told(process, "budget_warning")) == 2
    assert await alerts(process) == []


async def test_failed_turns_have_been_paid_for(place_for) -> None:
    process = await place_for(Script(afterwards=Cut(Say("x " * 400), 300))).process(on_budget(daily=100))
    assert (await say(process)).error["type"] == "provider_unavailable"
    assert (await say(process)).error["type"] == "budget_exceeded"


async def test_tenants_have_budgets_of_their_own(place_for) -> None:
    process = await place_for(Script(afterwards=Say("x" * 400))).process(on_budget(daily=100))
    await say(process, session="a")
    accepted = await process.send("hello", "b", tenant="acme")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).outcome == "completed"
