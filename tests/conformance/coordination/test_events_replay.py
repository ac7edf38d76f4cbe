"""Whoever knows a number can go on from there; whoever cannot, because it is no longer kept, is told so."""

from __future__ import annotations

import itertools

import pytest

from tests.coordination_world import publish, read_one, read_until, stored, texts


def numbered(numbers: range) -> list[str]:
    return [str(number) for number in numbers]


async def test_since_replays_what_came_after_a_number(deployment):
    async with deployment.process() as ours, deployment.process() as others:
        publish(ours, range(30))
        await stored(ours)
        everything = await others.events.since(0)
        assert texts(everything) == [*numbered(range(30)), "mark-0"]
        assert await others.events.since(everything[9].seq) == everything[10:]
        assert await others.events.since(everything[-1].seq) == []


async def test_since_gives_at_most_what_is_asked_for_and_can_be_asked_again(deployment):
    async with deployment.process() as ours:
        publish(ours, range(30))
        await stored(ours)
        seq, pages = 0, []
        while page := await ours.events.since(seq, limit=7):
            pages.append(page)
            seq = page[-1].seq
        assert [len(page) for page in pages] == [7, 7, 7, 7, 3]
        assert texts(itertools.chain(*pages)) == [*numbered(range(30)), "mark-0"]


async def test_an_empty_stream_has_nothing_to_replay(deployment):
    async with deployment.process() as ours:
        assert await ours.events.since(0) == []
        with ours.events.subscribe(after=0) as events:
            publish(ours, ["first"])
            assert texts(await read_until(events, "first")) == ["first"]


@pytest.mark.parametrize("seen", [1, 60, 199])
async def test_a_subscriber_resumes_where_it_left_without_loss_or_repetition(deployment, seen):
    async with deployment.process() as ours:
        publish(ours, range(200))
        await stored(ours)
        last = (await ours.events.since(0, limit=seen))[-1].seq
        async with deployment.process() as others:
            with others.events.subscribe(after=last) as events:
                publish(ours, range(200, 220))
                publish(others, ["here"])
                await stored(others, ours, others)
                publish(others, ["end"])
                said = texts(await read_until(events, "end"))
    assert [text for text in said if text.isdigit()] == numbered(range(seen, 220))
    assert said.count("here") == 1
    assert "events_missed" not in said


async def test_an_iteration_that_was_broken_off_goes_on_where_it_stopped(deployment):
    async with deployment.process() as ours:
        with ours.events.subscribe() as events:
            publish(ours, range(10))
            assert [(await read_one(events)).data["text"] for _ in range(10)] == numbered(range(10))


async def test_only_a_bounded_number_is_kept(deployment):
    async with deployment.process() as ours:
        published = 3 * deployment.bound
        publish(ours, range(published))
        await stored(ours)
        kept = await ours.events.since(0, limit=published)
        assert kept[0].type == "events_missed"
        assert kept[0].data == {"after": 0}
        assert deployment.bound <= len(kept[1:]) <= deployment.bound + deployment.slack
        assert texts(kept[1:-1]) == numbered(range(published + 1 - len(kept[1:]), published))


async def test_a_slow_subscriber_holds_nobody_up_and_is_told_what_it_missed(deployment):
    async with deployment.process() as ours:
        with ours.events.subscribe() as slow, ours.events.subscribe() as quick:
            publish(ours, ["first"])
            assert (await read_one(slow)).data["text"] == "first"
            for batch in range(6):
                publish(ours, range(batch * 150, batch * 150 + 150))
                assert "events_missed" not in texts(await read_until(quick, batch * 150 + 149))
            said = texts(await read_until(slow, 899))
    assert said[0] == "events_missed"
    assert "events_missed" not in said[1:]
    assert deployment.bound <= len(said[1:]) <= deployment.bound + deployment.slack
    assert said[1:] == numbered(range(900))[-len(said[1:]) :]


async def test_who_resumes_behind_the_kept_ones_is_told_once(deployment):
    async with deployment.process() as ours:
        publish(ours, ["seen"])
        await stored(ours)
        [seen] = await ours.events.since(0, limit=1)
        publish(ours, range(3 * deployment.bound))
        await stored(ours)
        with ours.events.subscribe(after=seen.seq) as events:
            gap = await read_one(events)
            assert (gap.type, gap.data) == ("events_missed", {"after": seen.seq})
            following = await read_one(events)
        assert seen.seq < gap.seq < following.seq
        with ours.events.subscribe(after=gap.seq) as events:
            assert await read_one(events) == following


async def test_a_number_that_was_never_reached_means_now_and_something_missed(deployment):
    async with deployment.process() as ours:
        publish(ours, ["before"])
        await stored(ours)
        with ours.events.subscribe(after=2**53 - 1) as events:
            publish(ours, ["after"])
            said = await read_until(events, "after")
    assert texts(said) == ["events_missed", "after"]
    assert said[0].seq < said[1].seq


async def test_events_live_longer_than_the_process_that_published_them(deployment):
    async with deployment.process() as watches:
        async with deployment.process() as dies:
            publish(dies, range(50))
            with watches.events.subscribe(after=0) as events:
                await read_one(events)
        with watches.events.subscribe(after=0) as events:
            assert texts(await read_until(events, 49)) == numbered(range(50))
