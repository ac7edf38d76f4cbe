"""One order, one numbering, and nothing lost on the way to a subscriber that keeps up, from whichever process."""

from __future__ import annotations

import asyncio

from insika.events import Event
from tests.coordination_world import AT, event, publish, read_one, read_until, stored, texts


async def test_what_is_published_comes_in_order(deployment):
    async with deployment.process() as ours:
        with ours.events.subscribe() as events:
            publish(ours, range(200))
            assert texts(await read_until(events, 199)) == [str(n) for n in range(200)]


async def test_numbers_only_grow_and_are_exact_in_any_language(deployment):
    async with deployment.process() as ours, deployment.process() as others:
        with ours.events.subscribe() as events:
            for process in (ours, others, ours):
                publish(process, range(50))
                await stored(process)
            numbers = [each.seq for each in await ours.events.since(0)]
            assert len(numbers) == 153
            assert numbers == sorted(set(numbers))
            assert numbers[0] > 0
            assert numbers[-1] < 2**53
            assert [(await read_one(events)).seq for _ in range(3)] == numbers[:3]


async def test_processes_see_each_others_events_in_one_order(deployment):
    async with deployment.process() as ours, deployment.process() as others:
        with ours.events.subscribe(after=0) as here, others.events.subscribe(after=0) as there:
            for number in range(40):
                publish(ours, [f"ours-{number}"])
                publish(others, [f"others-{number}"])
                await asyncio.sleep(0)
            await stored(ours, ours, others)
            publish(ours, ["end"])
            seen = [await read_until(here, "end"), await read_until(there, "end")]
            assert seen[0] == seen[1]
            for whose in ("ours", "others"):
                of_one = [text for text in texts(seen[0]) if text.startswith(whose)]
                assert of_one == [f"{whose}-{number}" for number in range(40)]


async def test_an_event_arrives_as_it_was_published(deployment):
    said = Event(
        "turn_completed",
        AT,
        "turn-9",
        "ana ❤",
        "shop",
        "acme",
        7,
        4,
        2,
        {"usage": {"tokens": [1, 2.5, None]}, "ok": True},
    )
    bare = Event("content", AT, data={"text": '한 글자씩 \u2028 «"\\»\n'})
    async with deployment.process() as ours, deployment.process() as others:
        with others.events.subscribe(after=0) as events:
            ours.events.publish(said)
            ours.events.publish(bare)
            first, second = await read_one(events), await read_one(events)
    assert first == said.numbered(first.seq)
    assert second == bare.numbered(second.seq)
    assert first.at.utcoffset() is not None


async def test_each_subscriber_gets_everything(deployment):
    async with deployment.process() as ours:
        with ours.events.subscribe() as a, ours.events.subscribe() as b, ours.events.subscribe() as c:
            publish(ours, range(20))
            everything = await read_until(a, 19)
            assert len(everything) == 20
            assert await read_until(b, 19) == everything
            assert await read_until(c, 19) == everything


async def test_whoever_leaves_leaves_the_others_in_peace(deployment):
    async with deployment.process() as ours:
        with ours.events.subscribe() as stays:
            with ours.events.subscribe() as leaves:
                publish(ours, ["both"])
                await read_until(leaves, "both")
            publish(ours, ["one"])
            assert texts(await read_until(stays, "one")) == ["both", "one"]
        with ours.events.subscribe() as comes_later:
            ours.events.publish(event("later"))
            assert "later" in texts(await read_until(comes_later, "later"))
