"""Fault 17: the job and the wakes come again while the first still runs. There is one owner, and one turn."""

from __future__ import annotations

import signal

from tests.faults.cluster.member import until
from tests.faults.shop import job, raw

HELD = job("ana", "ana-1", "A: charge@held")
REPEATS = 20
WAKES = 100


async def test_one_owner_and_one_turn_however_often_it_is_told(cluster):
    await cluster.run("ingress", "worker", "worker", "outbox")
    await cluster.publish(HELD)
    await cluster.begun("charge")
    before = cluster.session("ana")
    for _ in range(REPEATS):
        cluster.queues.publish(raw(HELD), message_id="ana-1")
        cluster.queues.wake(*[before["id"]] * (WAKES // REPEATS))
    await until(lambda: settled_by_the_broker(cluster), "all of it to be dealt with")
    assert {name: value for name, value in cluster.session("ana").items() if name != "lease_until"} == {
        name: value for name, value in before.items() if name != "lease_until"
    }
    cluster.gates.open("held")
    await cluster.settles(1)
    cluster.judge([HELD])
    (turn,) = cluster.turns("ana")
    assert (turn["attempt"], len(cluster.diary()), len(cluster.received)) == (1, 1, 1)


def settled_by_the_broker(cluster):
    return not any(cluster.queues.depth(queue).total for queue in ("insika.turns", "insika.sessions"))


async def test_a_job_whose_ingress_died_before_it_was_settled_is_the_same_job(cluster):
    """It has been accepted, and the broker does not know: it gives it to the next one."""
    dying = await cluster.start("ingress", composed={"point": "accepted"}).ready()
    await cluster.run("ingress", "worker", "worker", "outbox")
    jobs = [HELD, job("ana", "ana-2", "B: charge", queue_mode="followup")]
    await cluster.publish(*jobs)
    assert await dying.ends() == -signal.SIGKILL
    await cluster.begun("charge")
    await until(lambda: settled_by_the_broker(cluster), "the other one to take over the queue")
    cluster.gates.open("held")
    await cluster.settles(len(jobs))
    cluster.judge(jobs)
    assert [turn["attempt"] for turn in cluster.turns("ana")] == [1, 1]
    assert [run["order"] for run in cluster.diary()] == ["A.0.0", "B.0.0"]
