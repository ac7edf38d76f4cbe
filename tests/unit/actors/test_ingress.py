from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from actors.ingress import Kept
from insika.agents.profile import load_profile
from insika.settings import load_settings
from insika.storage.port import StoreUnavailable
from insika.storage.rows import Accepted, Verdict
from insika.testing import Say, Script
from tests.actor_world import CHANNEL, SECRET, profile, unavailable

ECHO = Script([lambda scene: Say(f"re {scene.text}")])


@pytest.mark.parametrize(
    ("raw", "type", "field"),
    [
        (b"not json", "invalid_job", "body"),
        (b'{"session": "s", "agent": "agent"}', "invalid_job", "text"),
        (b'{"session": "s", "agent": "agent", "text": ""}', "invalid_job", "text"),
        (b'{"session": "s", "agent": "agent", "text": "hi", "colour": 1}', "invalid_job", "colour"),
        (b'{"session": "s", "agent": "nobody", "text": "hi"}', "unknown_agent", "agent"),
        (b'{"session": "s", "agent": "agent", "text": "hi", "channel": "nowhere"}', "invalid_job", "channel"),
    ],
)
async def test_what_cannot_be_run_is_kept_raw_with_the_field_and_the_next_goes_on(place_for, raw, type, field):
    process = await place_for(ECHO).process()
    kept = await process.ingress.take(raw, source="test")
    await process.send("fine")
    await process.idle()

    assert isinstance(kept, Kept)
    assert (kept.error.type, kept.error.field) == (type, field)
    row = await process.store.rejected_job(kept.number)
    assert (row.raw, row.source) == (raw, "test")
    assert (row.error["type"], row.error["field"]) == (type, field)
    assert await process.answers() == ["re fine"]


async def test_an_agent_that_was_applied_elsewhere_is_found(place_for):
    place = place_for(ECHO)
    process = await place.process()
    other = await place.process(profile(id="new"))
    assert other.configuration.agents.current("new")
    accepted = await process.send("hi", agent="new")
    await process.idle()

    assert accepted.verdict is Verdict.ACCEPTED
    assert await process.answers() == ["re hi"]


async def test_a_channel_that_was_applied_elsewhere_is_found(place_for):
    place = place_for(ECHO)
    process = await place.process()
    settings = load_settings({"channels": [{"id": "new", "url": "https://example.com/", "secret": SECRET}]}, "test")
    await process.store.apply_settings(settings.revision(), settings.document(), "operator")
    accepted = await process.send("hi", channel="new")
    await process.idle()

    assert accepted.verdict is Verdict.ACCEPTED


async def test_an_answer_to_a_channel_that_was_taken_away_meanwhile_is_not_lost_unseen(place_for):
    place = place_for(ECHO)
    process = await place.process()
    await process.send("hi", channel=CHANNEL)
    settings = load_settings({}, "test")
    await process.store.apply_settings(settings.revision(), settings.document(), "operator")
    await process.configuration.refresh()
    await process.idle()

    assert process.configuration.settings().channel(CHANNEL) is None
    (row,) = await process.select("SELECT channel, state FROM outbox")
    assert (row["channel"], row["state"]) == (CHANNEL, "pending")


PUBLIC = [{"id": "open", "url": "https://shop.example/hook", "secret": SECRET, "public": True}]


@pytest.mark.parametrize(
    ("of_agent", "of_platform", "taken"),
    [
        ({}, {}, False),
        ({"chat_rate_limit": 5}, {}, True),
        ({}, {"chat_rate_limit": 5}, True),
        ({"chat_rate_limit": 0}, {"chat_rate_limit": 5}, False),
        ({"chat_rate_limit": None}, {"chat_rate_limit": 5}, False),
        ({"agent_token_ceiling": 5}, {"agent_token_ceiling": 5}, False),
    ],
)
async def test_a_public_channel_is_taken_only_for_agents_with_a_rate_limit_in_force(
    place_for, of_agent, of_platform, taken
):
    process = await place_for(ECHO).process(
        profile(limits=of_agent), settings={"channels": PUBLIC, "edge": of_platform}
    )
    raw = json.dumps({"session": "s", "agent": "agent", "text": "hi", "channel": "open"}).encode()
    assert (process.ingress.read(raw) is not None) is taken
    said = await process.ingress.take(raw, source="test")
    if taken:
        assert isinstance(said, Accepted)
        return
    assert isinstance(said, Kept)
    assert (said.error.type, said.error.field) == ("invalid_job", "channel")
    assert "limits.chat_rate_limit" in said.error.message
    assert "edge.chat_rate_limit" in said.error.message
    row = await process.store.rejected_job(said.number)
    assert row.raw == raw
    assert await process.store.real.session("s") is None


async def test_an_agent_without_a_limit_may_use_a_channel_that_is_not_public_or_none(place_for):
    process = await place_for(ECHO).process(settings={"channels": [{**PUBLIC[0], "public": False}]})
    for fields in ({"channel": "open"}, {}):
        assert (await process.send("hi", **fields)).verdict is Verdict.ACCEPTED


async def test_a_limit_that_was_applied_elsewhere_opens_a_public_channel(place_for):
    process = await place_for(ECHO).process(settings={"channels": PUBLIC})
    agent = load_profile(profile(limits={"chat_rate_limit": 5}), "test")
    await process.store.apply_profile(agent.id, agent.revision(), agent.document(), "operator")
    assert (await process.send("hi", channel="open")).verdict is Verdict.ACCEPTED


async def test_the_broker_s_id_counts_where_the_job_has_none(place_for):
    process = await place_for(ECHO).process()
    raw = json.dumps({"session": "s", "agent": "agent", "text": "hi"}).encode()
    first = await process.ingress.take(raw, message_id="m-1")
    again = await process.ingress.take(raw, message_id="m-1")
    await process.idle()

    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (again.verdict, again.turn_id) == (Verdict.DUPLICATE, first.turn_id)
    assert await process.said() == ["hi"]


async def test_the_job_s_own_id_counts_before_the_broker_s(place_for):
    process = await place_for(ECHO).process()
    for message_id in ("m-1", "m-2"):
        raw = json.dumps({"session": "s", "agent": "agent", "text": "hi", "id": "job"}).encode()
        await process.ingress.take(raw, message_id=message_id)
    await process.idle()

    assert await process.said() == ["hi"]


async def test_without_any_id_two_are_two(place_for):
    process = await place_for(ECHO).process()
    raw = json.dumps({"session": "s", "agent": "agent", "text": "hi"}).encode()
    for _ in range(2):
        await process.ingress.take(raw)
    await process.idle()

    assert await process.said() == ["hi", "hi"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("with_id", [True, False])
async def test_a_store_that_is_away_for_a_moment_neither_loses_nor_doubles_a_job(place_for, when, with_id):
    process = await place_for(ECHO).process()
    failures = 2

    async def away(instant: str, operation: str) -> None:
        nonlocal failures
        if (instant, operation) == (when, "accept") and failures:
            failures -= 1
            raise unavailable()

    process.store.hook = away
    job = {"session": "s", "agent": "agent", "text": "hi", **({"id": "job"} if with_id else {})}
    accepted = await process.ingress.take(json.dumps(job).encode())
    await process.idle()  # also where the first try was written: a turn that is queued still wants an owner

    assert accepted.verdict is (Verdict.ACCEPTED if when == "before" else Verdict.DUPLICATE)
    assert await process.said() == ["hi"]


async def test_a_refused_job_is_kept_also_when_the_store_is_away_for_a_moment(place_for):
    process = await place_for(ECHO).process()
    failures = 1

    async def away(instant: str, operation: str) -> None:
        nonlocal failures
        if instant == "before" and operation in ("reject", "current_profiles") and failures:
            failures -= 1
            raise unavailable()

    process.store.hook = away
    kept = await process.hand_in("hi", agent="nobody")
    assert isinstance(kept, Kept)
    failures = 1
    kept = await process.ingress.take(b"{")
    assert isinstance(kept, Kept)


async def test_a_store_that_stays_away_is_told_to_the_producer(place_for, monkeypatch):
    monkeypatch.setattr("actors.ingress.PATIENCE_S", 0.0)
    process = await place_for(ECHO).process()

    async def away(instant: str, operation: str) -> None:
        raise unavailable()

    process.store.hook = away
    with pytest.raises(StoreUnavailable):
        await process.send("hi")


async def test_a_full_mailbox_refuses_visibly(place_for):
    process = await place_for(ECHO).process(profile(limits={"mailbox_max": 2}))
    await process.store.set_paused("s", True)
    process.runtime._leaving = True
    verdicts = [(await process.send(str(number))).verdict for number in range(3)]

    assert verdicts == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.REJECTED]
    (kept,) = await process.store.rejected_jobs()
    assert kept.error["type"] == "mailbox_full"


async def test_what_a_session_remembers_of_its_vars_decides_its_queue_mode(place_for):
    process = await place_for(ECHO).process()
    await process.send("hi", vars={"queue_mode": "steer", "name": "Ana"})
    await process.idle()
    assert (await process.row()).vars == {"queue_mode": "steer", "name": "Ana"}

    await process.send("hi", vars={"queue_mode": None, "name": "Ben"})
    await process.idle()
    assert (await process.row()).vars == {"name": "Ana"}


async def test_no_word_of_a_person_gets_into_the_log_or_the_events(place_for):
    with capture_logs() as log:
        process = await place_for(Script([Say("a secret answer")])).process()
        await process.send("a secret question")
        await process.ingress.take(b'{"session": "s", "agent": "agent", "text": "a secret", "x": 1}')
        await process.idle()

    assert log
    assert "secret" not in repr(log)
    assert "secret" not in repr([event for event in process.events.events if event.type != "content"])
