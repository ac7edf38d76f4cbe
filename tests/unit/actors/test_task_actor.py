from __future__ import annotations

import itertools
import json

import pytest
from structlog.testing import capture_logs

from insika.agents.profile import load_profile
from insika.messages import Role
from insika.settings import load_settings
from insika.storage.rows import TurnState, Verdict
from insika.testing import Call, Calls, Fail, Rule, Say, Script
from tests.actor_world import CHANNEL, SECRET, Gate, no_hook, profile, unavailable


async def test_a_job_becomes_a_turn_and_an_answer(place_for):
    place = place_for(Script([Calls([Call("look", {"n": 1}), Call("pay", {"n": 2})]), Say("All done.")]))
    process = await place.process()
    accepted = await process.send("hello", channel=CHANNEL, recipient="bob")
    await process.idle()

    turn = await process.turn(accepted.turn_id)
    assert (turn.state, turn.outcome, turn.attempt) == (TurnState.COMPLETED, "completed", 1)
    assert (turn.agent, turn.channel, turn.recipient) == ("agent", CHANNEL, "bob")
    assert turn.limits["max_tool_calls"] == 50
    assert [message.role for message in await process.messages()] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [(name, n) for name, n, _ in place.shop.ran] == [("look", 1), ("pay", 2)]
    (delivery,) = await process.select("SELECT * FROM outbox")
    assert json.loads(delivery["payload"])["content"] == "All done."
    assert (delivery["recipient"], delivery["state"]) == ("bob", "pending")
    row = await process.row()
    assert (row.lease_id, row.turn_id, row.waiting, row.deaths) == (None, None, 0, 0)
    assert process.deliveries_rung == 1


async def test_what_happened_is_told_in_order_with_ids_and_counts(place_for):
    place = place_for(Script([Call("look", {"n": 1}), Say("Done.")]))
    process = await place.process()
    accepted = await process.send("hello")
    await process.idle()

    types = [type for type in process.events.types if type != "content"]
    assert types == [
        "turn_accepted",
        "turn_started",
        "tool_called",
        "tool_returned",
        "turn_completed",
    ]
    (completed,) = process.events.of("turn_completed")
    assert completed.turn_id == accepted.turn_id
    assert (completed.session, completed.agent, completed.epoch) == ("s", "agent", 1)
    assert completed.data["outcome"] == "completed"
    spent = await process.select("SELECT sum(input) AS input, sum(output) AS output FROM model_calls")
    assert {"input": completed.data["usage"]["input"], "output": completed.data["usage"]["output"]} == spent[0]


async def test_an_answer_without_a_channel_is_kept_and_not_delivered(place_for):
    process = await place_for(Script([Say("Done.")])).process()
    await process.send("hello")
    await process.idle()

    assert await process.answers() == ["Done."]
    assert await process.select("SELECT * FROM outbox") == []


async def test_the_next_turn_sees_what_was_said(place_for):
    process = await place_for(Script([Say("Done.")])).process()
    await process.send("one")
    await process.idle()
    await process.send("two")
    await process.idle()

    assert [message.content for message in process.model.requests[1].messages] == ["one", "Done.", "two"]


async def test_a_turn_that_fails_keeps_what_the_person_said_and_publishes_nothing(place_for):
    script = Script(rules=[Rule([Call("look", {"n": 1}), Fail("no \ud800 model", fatal=True)], when="^bad")])
    process = await place_for(script).process()
    with capture_logs() as logs:
        failing = await process.send("bad", channel=CHANNEL)
        await process.idle()
        await process.send("good", channel=CHANNEL)
        await process.idle()
    endings = [(line["log_level"], line["event"]) for line in logs if line["event"].startswith("turn_")]
    assert endings == [("warning", "turn_failed"), ("info", "turn_completed")]

    turn = await process.turn(failing.turn_id)
    assert turn.state is TurnState.FAILED
    assert turn.error == {"type": "provider_fatal", "message": "no \ufffd model"}
    assert await process.said() == ["bad", "good"]
    assert len(await process.select("SELECT * FROM outbox")) == 1
    (failed,) = process.events.of("turn_failed")
    assert (failed.data["outcome"], failed.data["error"]) == ("failed", "provider_fatal")


async def test_an_agent_that_is_gone_when_its_turn_comes_fails_it_visibly(place_for):
    place = place_for(Script([Say("Done.")]))
    place.shop.gates["look", 1] = gate = Gate()
    place.script = Script(rules=[Rule([Call("look", {"n": 1}), Say("Done.")])])
    process = await place.process(profile(), profile(id="other"))
    await process.send("first")
    await gate.reached()
    doomed = await process.send("second", agent="other")
    await process.write("DELETE FROM applied_revisions WHERE name = 'other' RETURNING id")
    await process.configuration.refresh()
    gate.open()
    await process.idle()

    turn = await process.turn(doomed.turn_id)
    assert (turn.state, turn.error["type"], turn.error["field"]) == (TurnState.FAILED, "unknown_agent", "agent")
    assert await process.said() == ["first", "second"]
    assert await process.answers() == ["Done."]


async def test_a_running_turn_goes_on_by_its_frozen_revision_when_its_agent_is_gone(place_for):
    place = place_for(Script([Call("look", {"n": 1}), Say("Done.")]))
    place.shop.gates["look", 1] = gate = Gate()
    first = await place.process()
    await first.send("hello")
    await gate.reached()
    await first.die()
    place.shop.gates.clear()
    second = await place.process(profile(id="other"))
    await second.write("DELETE FROM applied_revisions WHERE name = 'agent' RETURNING id")
    await second.configuration.refresh()
    place.clock.advance(20)
    await second.sweep()
    await second.idle()

    assert await second.answers() == ["Done."]


async def test_a_model_nobody_here_knows_fails_the_turn(place_for):
    process = await place_for(Script()).process(profile(model="elsewhere/model"))
    accepted = await process.send("hello")
    await process.idle()

    turn = await process.turn(accepted.turn_id)
    assert (turn.state, turn.error["type"]) == (TurnState.FAILED, "provider_fatal")
    assert "elsewhere" in turn.error["message"]


async def test_a_tool_that_was_denied_meanwhile_is_not_there_any_more(place_for):
    place = place_for(Script([Call("look", {"n": 1}), Call("pay", {"n": 1}), Say("Done.")]))
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process()
    await process.send("hello")
    await gate.reached()
    await process.begin([profile(tools_deny=["pay"])])
    gate.open()
    await process.idle()

    assert place.shop.count("pay") == 0
    assert "no tool pay" in (await process.messages())[4].content
    # What the model is offered is the turn's own, for the sake of the prefix.
    assert [spec.name for spec in process.model.requests[-1].tools] == ["look", "pay", "put"]


async def test_lists_of_tools_are_obeyed(place_for):
    process = await place_for(Script([Say("Done.")])).process(profile(tools_allow=["look"]))
    await process.send("hello")
    await process.idle()

    assert [spec.name for spec in process.model.requests[0].tools] == ["look"]


async def test_a_long_conversation_is_loaded_from_a_turn_s_beginning_and_rarely_moved(place_for):
    script = Script([Call("look", {"n": 1}), Say("x" * 400)])
    place = place_for(script)
    process = await place.process(profile(limits={"context_budget": 500}))
    windows = []
    for number in range(12):
        await process.send(f"message {number}")
        await process.idle()
        windows.append((await process.row()).load_from)
        first = process.model.requests[-1].messages[0]
        assert first.role is Role.USER
        assert first.content.startswith("message ")

    moves = sum(1 for before, after in itertools.pairwise(windows) if before != after)
    assert 1 <= moves <= 6
    assert windows == sorted(windows)
    assert len(await process.messages()) == 12 * 4


async def test_the_requests_of_a_session_are_prefixes_of_each_other(place_for):
    process = await place_for(Script([Calls([Call("look", {"n": 1}), Call("pay", {"n": 1})]), Say("Ok.")])).process()
    for text in ("one", "two", "three"):
        await process.send(text)
        await process.idle()

    requests = [request.messages for request in process.model.requests]
    assert len(requests) == 6
    for before, after in itertools.pairwise(requests):
        assert after[: len(before)] == before


@pytest.mark.parametrize("text", ["a\0b", "half \ud83d"])
async def test_what_no_store_can_keep_is_replaced_in_what_people_and_models_say(place_for, text):
    script = Script([Call("look", {"n": 1, "why": text}, text=text), Call("look", {"n": 2}, text=text), Say(text)])
    process = await place_for(script).process()
    accepted = await process.send(text)
    await process.idle()

    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED
    assert "\ufffd" in (await process.said())[0]
    assert "\ufffd" in (await process.answers())[0]
    assert accepted.verdict is Verdict.ACCEPTED


async def test_a_window_that_was_moved_by_a_start_nobody_heard_of_counts(place_for, monkeypatch):
    monkeypatch.setattr("actors.store_patience.STORE_PAUSE_S", 0.0)
    process = await place_for(Script([Say("x" * 400)])).process(profile(limits={"context_budget": 300}))
    for number in range(3):
        await process.send(f"message {number}")
        await process.idle()

    async def lost(when: str, operation: str) -> None:
        if (when, operation) == ("after", "start"):
            process.store.hook = no_hook
            raise unavailable()

    process.store.hook = lost
    await process.send("message 3")
    await process.idle()

    row = await process.row()
    assert row.load_from > 1
    kept = [entry.message for entry in await process.log() if entry.seq >= row.load_from]
    assert list(process.model.requests[-1].messages) == kept[:-1]


async def test_a_request_that_was_paid_for_and_could_not_be_written_is_booked_at_its_cost(place_for, monkeypatch):
    monkeypatch.setattr("actors.store_patience.STORE_PAUSE_S", 0.0)
    process = await place_for(Script([Call("look", {"n": 1}, text="x" * 40), Say("Done.")])).process()

    async def lost(when: str, operation: str) -> None:
        if (when, operation) == ("before", "append"):
            process.store.hook = no_hook
            raise unavailable()

    process.store.hook = lost
    await process.send("hello")
    await process.idle()

    rows = await process.select("SELECT step, attempt, state, input, output FROM model_calls ORDER BY step, attempt")
    assert [(row["step"], row["attempt"], row["state"]) for row in rows] == [
        (1, 1, "estimated"),
        (1, 2, "measured"),
        (2, 1, "measured"),
    ]
    assert (rows[0]["input"], rows[0]["output"]) == (rows[1]["input"], rows[1]["output"])


async def test_what_was_applied_a_moment_ago_is_known_when_its_turn_begins(place_for):
    """Another process accepted the message and knows the agent and the channel; this one has not looked since."""
    place = place_for(Script([Say("Said.")]))
    worker, other = await place.process(), await place.process()
    channel = {"id": "new", "url": "https://shop.example/new", "secret": SECRET}
    settings = load_settings({"channels": [channel]}, "test")
    await other.store.apply_settings(settings.revision(), settings.document(), "operator")
    await other.configuration.apply_profiles([load_profile(profile(id="late"), "test")], from_file=False)
    await other.configuration.refresh()
    await other.runtime.drain(0)
    accepted = await other.send("hello", agent="late", channel="new")
    await worker.runtime.take(accepted.session_id)
    await worker.idle()
    assert (await worker.turn(accepted.turn_id)).state is TurnState.COMPLETED
    (row,) = await worker.select("SELECT channel, state FROM outbox")
    assert (row["channel"], row["state"]) == ("new", "pending")
