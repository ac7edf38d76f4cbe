"""A moderator at every door: asked about what the detectors let through, once, after the limits; it fails open, is
booked whatever comes of it, and is left when somebody no longer wants to know."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

import actors.moderation
from insika.errors import FailureAction, ProviderError
from insika.messages import Usage, assistant
from insika.pattern_files import read_library
from insika.ports import Finished
from insika.providers.catalog import ModelCatalog
from insika.storage.port import StoreUnavailable
from insika.storage.rows import Ended, TurnState, Verdict
from insika.testing import Call, Rule, Say, Script, ScriptedModel
from tests.actor_world import CHANNEL, LEASE_S, Gate, RefusingGuard, profile

SCRIPT = Script(
    rules=[Rule([Call("look", {"n": 1}), Call("look", {"n": 2}), Say("Done.")], when="long")], afterwards=Say("Short.")
)
MODEL = "judge/small"
REPLY = read_library().replies["en"]["moderated"]
COST = Usage(input=40, output=1)


class Judge:
    """Refuses what holds the word "sly". `asked`: the texts of each request, in order. `says` may answer or raise in
    its place; it waits at `gate`."""

    def __init__(self, says: Callable[[list[str]], str] | None = None, gate: Gate | None = None) -> None:
        self.asked: list[list[str]] = []
        self.requests = []
        self.closed = 0
        self._says = says or self._by_word
        self._gate = gate

    @staticmethod
    def _by_word(texts: list[str]) -> str:
        sly = [str(number) for number, text in enumerate(texts, start=1) if "sly" in text]
        return ",".join(sly) or "allow"

    async def stream(self, request):
        self.requests.append(request)
        texts = list(json.loads(request.messages[0].content).values())
        self.asked.append(texts)
        try:
            if self._gate is not None:
                await self._gate()
            yield Finished(assistant(self._says(texts)), COST)
        finally:
            self.closed += 1


def moderated(**keys):
    return profile(guardrails={"moderator": MODEL, **keys.pop("guardrails", {})}, **keys)


async def started(place, judge, *profiles, model=None, **others):
    model = model or ScriptedModel(SCRIPT)
    models = ModelCatalog({"offline": model, "judge": judge})
    return await place.process(*(profiles or (moderated(),)), model=model, models=models, **others)


async def calls(process, turn_id):
    rows = await process.store.real.model_calls(turn_id)
    return [(row.step, row.attempt, row.state, row.usage) for row in rows if row.purpose == "moderate"]


async def delivered(process) -> list[tuple[str, str]]:
    payloads = [
        json.loads(row["payload"]) for row in await process.select("SELECT payload FROM outbox ORDER BY lane_pos")
    ]
    return [(payload["outcome"], payload["content"]) for payload in payloads]


def flagged(process) -> list[dict]:
    return [dict(event.data) for event in process.events.of("guardrail_flagged")]


async def nothing_sly_was_said(process) -> None:
    assert not [text for text in await process.said() if "sly" in text]
    for request in process.model.requests:
        assert not [message for message in request.messages if "sly" in message.content]
    row = await process.row()
    assert (row.waiting, row.turn_id, row.lease_id) == (0, None, None)
    assert await process.select("SELECT * FROM model_calls WHERE state = 'open'") == []


async def test_what_it_lets_through_is_said_and_its_cost_is_booked(place_for):
    judge = Judge()
    process = await started(place_for(SCRIPT), judge)
    sent = await process.send("hello")
    await process.idle()
    assert await process.answers() == ["Short."]
    assert judge.asked == [["hello"]]
    assert await calls(process, sent.turn_id) == [(0, 1, "measured", COST)]
    assert flagged(process) == []


async def test_what_it_refuses_is_answered_and_never_said(place_for):
    judge = Judge()
    process = await started(place_for(SCRIPT), judge)
    sent = await process.send("sly", channel=CHANNEL)
    await process.idle()
    turn = await process.turn(sent.turn_id)
    assert (turn.state, turn.outcome) == (TurnState.REFUSED, "refused")
    assert await delivered(process) == [("refused", REPLY)]
    (event,) = process.events.of("guardrail_blocked")
    assert event.data == {"reason": "moderated", "count": 1}
    assert await calls(process, sent.turn_id) == [(0, 1, "measured", COST)]
    assert process.model.requests == []
    await nothing_sly_was_said(process)


async def test_the_profile_s_reply_for_its_category(place_for):
    process = await started(place_for(SCRIPT), Judge(), moderated(guardrails={"responses": {"moderated": "Not that."}}))
    await process.send("sly", channel=CHANNEL)
    await process.idle()
    assert await delivered(process) == [("refused", "Not that.")]


async def test_what_the_detectors_refuse_costs_no_request(place_for):
    judge = Judge()
    process = await started(place_for(SCRIPT), judge, guard=RefusingGuard())
    await process.send("rude")
    await process.idle()
    assert judge.requests == []


async def test_without_a_moderator_or_with_its_side_switched_off_nobody_is_asked(place_for):
    judge = Judge()
    off = moderated(id="off", guardrails={"input": False})
    process = await started(place_for(SCRIPT), judge, profile(), off)
    await process.send("sly")
    await process.send("sly", "t", agent="off")
    await process.idle()
    assert judge.requests == []


async def test_a_turn_over_its_limit_makes_no_request_at_all(place_for):
    judge = Judge()
    process = await started(place_for(SCRIPT), judge, moderated(limits={"chat_rate_limit": 1}))
    await process.send("hello")
    await process.idle()
    limited = await process.send("hello again")
    await process.idle()
    assert (await process.turn(limited.turn_id)).outcome == "limited"
    assert await process.store.real.model_calls(limited.turn_id) == ()
    assert len(judge.requests) == 1


@pytest.mark.parametrize("sly", [{0}, {1}, {2}, {0, 2}])
async def test_of_several_that_were_collected_each_is_judged_in_one_request(place_for, sly):
    judge = Judge()
    limits = {"queue_mode": "collect", "debounce_ms": 1_000, "chat_rate_limit": 1}
    process = await started(place_for(SCRIPT), judge, moderated(limits=limits))
    texts = [f"{'sly' if at in sly else 'kind'} {at}" for at in range(3)]
    sent = [await process.send(text) for text in texts]
    await process.idle()
    process.clock.advance(2)
    await process.sweep()
    await process.idle()
    assert judge.asked == [texts], "those that are left are not asked about again"
    assert await process.said() == [text for at, text in enumerate(texts) if at not in sly]
    assert (await process.turn(sent[0].turn_id)).outcome == "completed", "one turn begins once, whatever it loses"
    await nothing_sly_was_said(process)


async def test_a_steered_text(place_for):
    gate, place, judge = Gate(), place_for(SCRIPT), Judge()
    place.shop.gates["look", 1] = gate
    process = await started(place, judge, moderated(limits={"queue_mode": "steer"}))
    running = await process.send("long")
    await gate.reached()
    for text in ("kind 1", "sly 2", "kind 3"):
        assert (await process.send(text)).verdict is Verdict.STEERED
    gate.open()
    await process.idle()
    assert await process.said() == ["long", "kind 1", "kind 3"]
    assert judge.asked == [["long"], ["kind 1", "sly 2", "kind 3"]]
    assert await calls(process, running.turn_id) == [(0, 1, "measured", COST), (0, 2, "measured", COST)]
    await nothing_sly_was_said(process)


async def test_steers_that_became_a_turn_are_booked_to_the_one_they_were_said_to(place_for):
    gate, judge = Gate(), Judge()
    process = await started(
        place_for(SCRIPT), judge, moderated(limits={"queue_mode": "steer"}), model=ScriptedModel(SCRIPT, gate)
    )
    running = await process.send("short")
    await gate.reached()
    for text in ("sly 1", "kind 2"):
        assert (await process.send(text)).verdict is Verdict.STEERED
    gate.open()
    await process.idle()
    assert await process.said() == ["short", "kind 2"]
    assert judge.asked == [["short"], ["sly 1", "kind 2"]]
    assert len(await calls(process, running.turn_id)) == 2
    await nothing_sly_was_said(process)


@pytest.mark.parametrize("moment", ["a tool", "the model"])
async def test_an_interrupt_that_it_refuses_does_not_interrupt(place_for, moment):
    gate, place, judge = Gate(), place_for(SCRIPT), Judge()
    model = ScriptedModel(SCRIPT, gate) if moment == "the model" else ScriptedModel(SCRIPT)
    if moment == "a tool":
        place.shop.gates["look", 1] = gate
    process = await started(place, judge, model=model)
    running = await process.send("long", channel=CHANNEL)
    await gate.reached()
    refused = await process.send("sly", channel=CHANNEL, queue_mode="interrupt")
    process.runtime.signal(running.session_id)
    gate.open()
    await process.idle()
    assert (await process.turn(running.turn_id)).outcome == "completed"
    assert (await process.turn(refused.turn_id)).outcome == "refused"
    assert await delivered(process) == [("refused", REPLY), ("completed", "Done.")]
    assert judge.asked == [["long"], ["sly"]]
    await nothing_sly_was_said(process)


async def test_an_interrupt_that_passes_is_not_asked_about_again_as_a_turn(place_for):
    gate, place, judge = Gate(), place_for(SCRIPT), Judge()
    place.shop.gates["look", 1] = gate
    process = await started(place, judge)
    await process.send("long")
    await gate.reached()
    await process.send("stop", queue_mode="interrupt")
    gate.open()
    await process.idle()
    assert await process.said() == ["long", "stop"]
    assert judge.asked == [["long"], ["stop"]]


@pytest.mark.parametrize("origin", ["engine", "scheduled"])
async def test_what_the_engine_or_a_timer_says(place_for, origin):
    process = await started(place_for(SCRIPT), Judge())
    await process.send("sly", origin=origin)
    await process.idle()
    await nothing_sly_was_said(process)


def broken(texts):
    raise RuntimeError("a defect")


def overloaded(texts):
    raise ProviderError("overloaded", action=FailureAction.RETRYABLE)


@pytest.mark.parametrize("says", [broken, overloaded, lambda texts: "I think so", lambda texts: ""])
async def test_one_that_fails_or_gives_no_answer_lets_everything_pass_and_an_event_says_so(place_for, says):
    judge = Judge(says)
    process = await started(place_for(SCRIPT), judge)
    sent = await process.send("hello")
    await process.idle()
    assert await process.answers() == ["Short."]
    assert flagged(process) == [{"reason": "moderator_failed", "model": MODEL, "count": 1}]
    assert process.events.of("guardrail_flagged")[0].turn_id == sent.turn_id
    assert len(judge.requests) == 1
    ((_, _, state, usage),) = await calls(process, sent.turn_id)
    assert state in ("measured", "estimated")
    assert usage.total > 0


async def test_one_that_nobody_here_can_ask_lets_everything_pass(place_for):
    process = await started(place_for(SCRIPT), Judge(), profile(guardrails={"moderator": "nobody/none"}))
    await process.send("sly")
    await process.idle()
    assert await process.answers() == ["Short."]
    assert [event["reason"] for event in flagged(process)] == ["moderator_failed"]


async def test_one_that_is_late_lets_everything_pass(place_for, monkeypatch):
    monkeypatch.setattr(actors.moderation, "LIMIT_S", 0.001)
    judge = Judge(gate=Gate())
    process = await started(place_for(SCRIPT), judge)
    await process.send("hello")
    await process.idle()
    assert await process.answers() == ["Short."]
    assert [event["reason"] for event in flagged(process)] == ["moderator_failed"]
    assert judge.closed == 1


async def test_a_cancel_of_the_turn_abandons_it_and_what_it_may_have_cost_is_booked(place_for):
    judge = Judge(gate=Gate())
    process = await started(place_for(SCRIPT), judge)
    sent = await process.send("hello")
    await judge._gate.reached()
    await process.cancel(sent.turn_id)
    process.runtime.signal(sent.session_id)
    await process.idle()
    assert (await process.turn(sent.turn_id)).state is TurnState.CANCELLED
    assert judge.closed == 1
    ((_, _, state, usage),) = await calls(process, sent.turn_id)
    assert state == "estimated"
    assert usage.input > 0
    assert await process.said() == []
    assert flagged(process) == [], "it was cut, and did not run into its limit"


async def test_news_that_is_no_news_does_not_cut_it(place_for):
    judge = Judge(gate=Gate())
    process = await started(place_for(SCRIPT), judge)
    sent = await process.send("hello")
    await judge._gate.reached()
    process.runtime.signal(sent.session_id)
    await asyncio.gather(*process.runtime._looks)
    judge._gate.open()
    await process.idle()
    assert len(judge.requests) == 1
    assert await process.answers() == ["Short."]


async def test_a_process_that_leaves_books_what_it_may_have_cost(place_for):
    place, judge = place_for(SCRIPT), Judge()
    tool = place.shop.gates["look", 1] = Gate()
    process = await started(place, judge, moderated(limits={"queue_mode": "steer"}))
    running = await process.send("long")
    await tool.reached()
    await process.send("kind")
    judge._gate = Gate()
    tool.open()
    await judge._gate.reached()
    await process.runtime.drain(0)
    _, (_, _, state, usage) = await calls(process, running.turn_id)
    assert state == "estimated"
    assert usage.input > 0
    judge._gate.open()
    heir = await started(place, judge, moderated(limits={"queue_mode": "steer"}))
    await heir.finish()
    assert await heir.said() == ["long", "kind"]


@pytest.mark.parametrize("text", ["hello", "sly"])
@pytest.mark.parametrize(
    "moment",
    [
        ("after", "open_model_call"),
        ("before", "settle_model_call"),
        ("after", "settle_model_call"),
        ("before", "start"),
    ],
)
async def test_an_owner_that_dies_around_its_request_leaves_one_end_and_every_cost(place_for, text, moment):
    place, judge = place_for(SCRIPT), Judge()
    process = await started(place, judge)
    met = asyncio.Event()

    async def hook(when: str, operation: str) -> None:
        if (when, operation) == moment:
            met.set()
            await asyncio.Event().wait()

    process.store.hook = hook
    sent = await process.send(text, channel=CHANNEL)
    if moment == ("before", "start") and text == "sly":
        await process.idle()
    else:
        async with asyncio.timeout(20):
            await met.wait()
    await process.die()
    place.clock.advance(LEASE_S + 1)
    heir = await started(place, judge)
    await heir.finish()
    assert await delivered(heir) == [("completed", "Short.") if text == "hello" else ("refused", REPLY)]
    booked = await calls(heir, sent.turn_id)
    assert len(booked) == len({attempt for _, attempt, _, _ in booked})
    assert all(state != "open" and usage.total > 0 for _, _, state, usage in booked)
    await nothing_sly_was_said(heir)


async def test_a_turn_that_outlives_too_many_owners_books_what_they_asked(place_for):
    place, judge = place_for(SCRIPT), Judge()

    async def hook(when: str, operation: str) -> None:
        if (when, operation) == ("after", "open_model_call"):
            raise RuntimeError("a defect")

    process = await started(place, judge)
    process.store.hook = hook
    sent = await process.send("hello")
    await process.finish()
    assert (await process.turn(sent.turn_id)).error["type"] == "worker_lost"
    booked = await calls(process, sent.turn_id)
    assert len(booked) == 3
    assert all(state == "estimated" and usage.input > 0 for _, _, state, usage in booked)


async def test_a_store_that_goes_away_at_the_booking_costs_no_second_request(place_for):
    judge = Judge()
    process = await started(place_for(SCRIPT), judge)
    failed = []

    async def hook(when: str, operation: str) -> None:
        if (when, operation) == ("before", "settle_model_call") and not failed:
            failed.append(operation)
            raise StoreUnavailable("the store is away")

    process.store.hook = hook
    await process.send("hello")
    await process.finish()
    assert failed
    assert len(judge.requests) == 1
    assert await process.answers() == ["Short."]


async def test_its_tokens_count_towards_the_ceiling(place_for):
    judge = Judge()
    limits = {"agent_token_ceiling": COST.total}
    process = await started(place_for(SCRIPT), judge, moderated(limits=limits))
    await process.send("sly")
    await process.idle()
    limited = await process.send("hello")
    await process.idle()
    assert (await process.turn(limited.turn_id)).outcome == "limited"
    assert [row.ended for row in await process.mail()] == [Ended.REFUSED, Ended.TURN]
