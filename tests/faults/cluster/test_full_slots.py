"""A worker whose slots are taken leaves the hints to others: it holds none of them back."""

from __future__ import annotations

from actors.broker.topology import SESSIONS
from tests.faults.cluster.member import until
from tests.faults.shop import job

HELD = job("held", "held-1", "H: letter@held")
MORE = [job(f"s{number}", f"s{number}-1", f"S{number}: charge") for number in range(10)]


def all_wait(hints):
    """Perhaps with one more: that of the session which the worker had found by itself."""
    return hints.ready >= len(MORE) and hints.unsettled == 0


async def test_what_it_has_no_room_for_waits_for_another(cluster):
    await cluster.run("ingress", "outbox")
    full = await cluster.start("worker", INSIKA_SLOTS=1).ready()
    await cluster.publish(HELD)
    await cluster.begun("letter")
    await cluster.publish(*MORE)
    await until(lambda: all_wait(cluster.queues.depth(SESSIONS)), "all to wait", lambda: cluster.queues.depth(SESSIONS))
    (other,) = await cluster.run("worker")
    await until(lambda: len(cluster.received) == len(MORE), "the other to do them all")
    assert {run["pid"] for run in cluster.diary(tool="charge")} == {other.pid}
    assert cluster.session("held")["lease_id"] is not None
    cluster.gates.open("held")
    await cluster.settles(1 + len(MORE))
    cluster.judge([HELD, *MORE])
    assert {run["pid"] for run in cluster.diary(tool="letter")} == {full.pid}
