"""A signal reaches all who listen, in all processes; it may come twice, and it is never in anybody's way."""

from __future__ import annotations

from structlog.testing import capture_logs

from tests.coordination_world import Heard, reach


async def test_a_signal_reaches_every_listener_of_every_process(deployment):
    async with deployment.process() as one, deployment.process() as two, deployment.process() as three:
        a, b, c, d = Heard(), Heard(), Heard(), Heard()
        with one.signals.listen(a), one.signals.listen(b), two.signals.listen(c), three.signals.listen(d):
            await reach(one.signals, a, b, c, d, session_id=1)
            for session_id in range(2, 2_500):
                two.signals.publish(session_id)
            for heard in (a, b, c, d):
                await heard.all_of(*range(2, 2_500))


async def test_nobody_hears_its_own_signal_twice(deployment):
    async with deployment.process() as ours, deployment.process() as others:
        here, there = Heard(), Heard()
        with ours.signals.listen(here), others.signals.listen(there):
            await reach(ours.signals, there, session_id=1)
            await reach(others.signals, here, session_id=2)
            ours.signals.publish(3)
            await there.all_of(3)
            others.signals.publish(4)
            await here.all_of(4)
    assert here.sessions.count(3) == 1


async def test_ids_are_as_large_as_a_database_gives_them(deployment):
    async with deployment.process() as one, deployment.process() as two:
        heard = Heard()
        with two.signals.listen(heard):
            await reach(one.signals, heard, session_id=2**63 - 1)
    assert set(heard.sessions) == {2**63 - 1}


async def test_listeners_are_called_by_the_loop_and_not_by_the_publisher(deployment):
    async with deployment.process() as ours:
        heard = Heard()
        with ours.signals.listen(heard):
            ours.signals.publish(1)
            assert heard.sessions == []
            await heard.all_of(1)


async def test_a_listener_that_raises_does_not_take_the_signal_from_the_others(deployment):
    def broken(session_id: int) -> None:
        raise RuntimeError("what somebody said")

    async with deployment.process() as ours:
        heard = Heard()
        with capture_logs() as log, ours.signals.listen(broken), ours.signals.listen(heard):
            ours.signals.publish(1)
            await heard.all_of(1)
            ours.signals.publish(2)
            await heard.all_of(2)
    assert [line["event"] for line in log] == ["listener_failed", "listener_failed"]


async def test_whoever_has_left_hears_nothing(deployment):
    async with deployment.process() as ours:
        left, stays = Heard(), Heard()
        with ours.signals.listen(stays):
            with ours.signals.listen(left):
                pass
            ours.signals.publish(1)
            await stays.all_of(1)
    assert left.sessions == []


async def test_it_is_well_when_nothing_is_wrong(deployment):
    async with deployment.process() as ours:
        with ours.health.listen(lambda health: None):
            heard = Heard()
            with ours.signals.listen(heard):
                await reach(ours.signals, heard, session_id=1)
        assert (ours.health.degraded, ours.health.since, ours.health.reason) == (False, None, "")
