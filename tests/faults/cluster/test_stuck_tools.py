"""Fault 24: tools that block past their time limit, more of them than there are slots. None costs a slot for good, nor
a thread that reads the queue."""

from __future__ import annotations

from tests.faults.cluster.member import until
from tests.faults.shop import job

SLOTS = 3
STUCK = [job(f"stuck-{number}", f"stuck-{number}", f"S{number}: weigh@never", "hasty") for number in range(3 * SLOTS)]
NEXT = [job(f"next-{number}", f"next-{number}", f"N{number}: charge@held") for number in range(SLOTS)]
WAKES = 50


async def test_as_many_run_at_once_as_before(cluster):
    cluster.configure({"hasty": {"tool_timeout": 0.5}})
    await cluster.run("ingress", "outbox")
    worker = await cluster.start("worker", INSIKA_SLOTS=SLOTS).ready()
    await cluster.publish(*STUCK)
    await cluster.settles(len(STUCK))
    assert len(cluster.diary(tool="weigh")) == len(STUCK)
    cluster.queues.wake(*[cluster.session("stuck-0")["id"]] * WAKES)
    await until(lambda: not cluster.queues.depth("insika.sessions").total, "the hints to be read")
    await cluster.publish(*NEXT)
    runs = await cluster.begun("charge", SLOTS)
    assert {run["pid"] for run in runs} == {worker.pid}
    cluster.gates.open("held")
    await cluster.settles(len(STUCK) + len(NEXT))
    evidence = cluster.judge([*STUCK, *NEXT])
    timed_out = [row for row in evidence.tool_calls if row["name"] == "weigh"]
    assert [(row["state"], row["is_error"]) for row in timed_out] == [("done", True)] * len(STUCK)
