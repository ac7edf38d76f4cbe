"""Redis goes away, in every way there is, and comes back: publishers never notice, subscribers go on, and it is told
once that it went and once that it is back."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from insika.coordination.redis.events import Bounds
from tests.coordination_world import Heard, Watched, publish, reach, read_one, read_until, stored, texts

TELLING = ("coordination_degraded", "coordination_recovered")


def told(log: list[dict[str, object]]) -> list[object]:
    return [line["event"] for line in log if line["event"] in TELLING]


async def killed(server):
    await server.kill()


async def paused(server):
    server.pause()


async def started_again(server):
    await server.start()


async def continued(server):
    server.resume()


@pytest.mark.parametrize(("away", "back"), [(killed, started_again), (paused, continued)])
async def test_publisher_and_subscriber_survive_an_outage(server, process, away, back):
    ours, others = process(), process()
    here, there, heard = Watched(ours.health), Watched(others.health), Heard()
    with (
        capture_logs() as log,
        ours.health.listen(here),
        others.health.listen(there),
        others.signals.listen(heard),
        others.events.subscribe(after=0) as events,
    ):
        publish(ours, range(5))
        await read_until(events, 4)
        await reach(ours.signals, heard, session_id=1)
        await away(server)
        publish(ours, range(5, 10))
        ours.signals.publish(2)
        await here.becomes(degraded=True)
        await there.becomes(degraded=True)
        assert ours.health.reason.startswith("Redis ")
        publish(ours, range(10, 15))
        await back(server)
        await reach(ours.signals, heard, session_id=3)
        assert texts(await read_until(events, 14)) == [str(number) for number in range(5, 15)]
        await here.becomes(degraded=False)
        await there.becomes(degraded=False)
    assert (ours.health.reason, ours.events.dropped) == ("", 0)
    assert here.told == there.told == [True, False]
    assert sorted(told(log)) == sorted(TELLING * 2)


async def test_nothing_begins_by_waiting_for_redis(server, process):
    await server.kill()
    ours = process()
    health = Watched(ours.health)
    with ours.health.listen(health), ours.events.subscribe() as events:
        publish(ours, ["before"])
        await health.becomes(degraded=True)
        await server.start()
        assert texts(await read_until(events, "before")) == ["before"]
        await health.becomes(degraded=False)


async def test_an_outage_is_noticed_also_by_who_has_nothing_to_say(server, process):
    ours, heard = process(), Heard()
    health = Watched(ours.health)
    with ours.health.listen(health), ours.signals.listen(heard):
        while not await server.do("PUBLISH", "insika:0:signals", '["x",1]'):
            pass
        await heard.all_of(1)
        server.pause()
        await health.becomes(degraded=True)
        server.resume()
        await health.becomes(degraded=False)


async def test_signals_stay_within_the_process_while_redis_is_away(server, process):
    await server.kill()
    ours, heard = process(), Heard()
    with ours.signals.listen(heard):
        ours.signals.publish(7)
        await heard.all_of(7)


async def test_a_long_outage_costs_the_oldest_events_and_no_more_memory_or_tasks(server, process):
    ours, others = process(bounds=Bounds(waiting=1_000)), process()
    health = Watched(ours.health)
    with ours.health.listen(health), others.events.subscribe(after=0) as events:
        publish(ours, ["first"])
        await read_until(events, "first")
        server.pause()
        publish(ours, ["the last to be taken"])
        await health.becomes(degraded=True)
        tasks = len(asyncio.all_tasks())
        for session_id in range(30_000):
            ours.signals.publish(session_id)
        publish(ours, range(20_000))
        assert ours.events.dropped >= 18_000
        assert len(ours.events._writer._waiting) == 1_000
        assert len(ours.signals._waiting) <= 10_000
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) <= tasks + 1  # the listeners' own time limits come and go
        server.resume()
        said = await read_until(events, 19_999)
    gap = said[-1_001]
    assert (gap.type, gap.data) == ("events_missed", {"count": ours.events.dropped})
    assert texts(said[-1_000:]) == [str(number) for number in range(19_000, 20_000)]


async def test_flushing_loses_old_events_and_nothing_else(server, process):
    ours, others = process(), process()
    heard = Heard()
    with capture_logs() as log, others.signals.listen(heard), others.events.subscribe(after=0) as events:
        publish(ours, range(10))
        seen = await read_until(events, 9)
        await server.do("FLUSHALL")
        await server.do("SCRIPT", "FLUSH")
        assert await others.events.since(0) == []
        publish(ours, range(10, 20))
        after = await read_until(events, 19)
        await reach(ours.signals, heard, session_id=1)
    # Nobody can know whether something stood there that was lost.
    assert texts(after) == ["events_missed", *(str(number) for number in range(10, 20))]
    assert after[0].seq > seen[-1].seq
    assert told(log) == []


async def test_flushing_again_and_again_under_load_stops_nobody(server, process):
    ours, others = process(), process()
    with others.events.subscribe(after=0) as events:
        for number in range(0, 1_500, 50):
            publish(ours, range(number, number + 50))
            await server.do("FLUSHALL")
        publish(ours, ["end"])
        said = await read_until(events, "end")
    numbers = [each.seq for each in said]
    assert numbers == sorted(set(numbers))
    assert [int(text) for text in texts(said) if text.isdigit()] == sorted({int(t) for t in texts(said) if t.isdigit()})


async def test_a_redis_that_lost_everything_goes_on_with_higher_numbers(server, process):
    ours, others = process(), process()
    publish(ours, ["before"])
    await stored(ours)
    [before] = await others.events.since(0, limit=1)
    with others.events.subscribe(after=before.seq) as events:
        await read_until(events, "mark-0")
        await server.do("FLUSHALL")
        await server.restart()
        publish(ours, ["after"])
        assert texts(await read_until(events, "after"))[-2:] == ["events_missed", "after"]
    after = (await others.events.since(0))[-1]
    assert before.seq < after.seq < 2**53


async def test_numbers_grow_although_the_clock_of_redis_was_set_back(server, process):
    """By hand the stream runs an hour ahead of the clock; then all is lost, and with it the last number."""
    ours = process()
    publish(ours, ["now"])
    await stored(ours)
    now = (await ours.events.since(0))[-1].seq
    ahead = now + 3_600_000_000
    await server.do(
        "XADD", "insika:events", f"{ahead}-0", "before", now, "event", '{"type":"x","at":"2030-01-01T00:00:00Z"}'
    )
    with ours.events.subscribe() as events:
        publish(ours, ["ahead"])
        first = await read_one(events)
        assert first.seq == ahead + 1
        await server.do("FLUSHALL")
        publish(ours, ["lost"])
        assert (await read_until(events, "lost"))[-1].seq == ahead + 2


async def test_waiting_events_are_sent_before_the_end(server, process):
    ours, others = process(), process()
    with others.events.subscribe(after=0) as events:
        publish(ours, range(3_000))
        await ours.aclose()
        assert len(await read_until(events, 2_999)) == 3_000


@pytest.mark.parametrize("away", [killed, paused])
async def test_the_end_does_not_wait_for_redis(server, process, away):
    ours = process()
    health = Watched(ours.health)
    with ours.health.listen(health), ours.events.subscribe(after=0) as events:
        publish(ours, ["first"])
        await read_until(events, "first")
        await away(server)
        publish(ours, range(3_000))
        await health.becomes(degraded=True)
        reading = asyncio.create_task(read_until(events, "never"))
        await asyncio.wait_for(ours.aclose(), 10)
        with pytest.raises(AssertionError, match="the stream ended"):
            await reading
    server.resume()
